/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides whether the cards that are now at the addresses of an allocation's cards may take their place. */

#include <errno.h>

#include "plan-internal.h"
#include "plan/promise.h"
#include "util/strings.h"

const PciDevice *plan_find_replacement(const HostView *view, const AllocationDevice *d) {
        const PciDevice *dev = d->lost ? NULL : inventory_find(view->inventory, d->address);

        return dev && !allocation_device_is(d, dev) ? dev : NULL;
}

/* Refuses dev if a member of its IOMMU group would be a companion or held, but is not in the allocation. */
static Verdict check_group(const HostView *view, const Allocation *a, const PciDevice *dev, Refusal *ret) {
        const IommuGroup *g = inventory_find_group(view->inventory, dev->iommu_group);

        for (size_t i = 0; g && i < g->n_members; i++) {
                const PciDevice *member = &view->inventory->devices[g->members[i]];
                GroupRole role = member == dev ? GROUP_ROLE_LEAVE : policy_group_role(view->policy, dev, member);

                if ((role == GROUP_ROLE_COMPANION || role == GROUP_ROLE_HOLD) &&
                    !allocation_find_device(a, member->address))
                        return refuse(ret, VERDICT_GROUP_NOT_VIABLE, &member->address,
                                      "Release the allocation, and allocate again.",
                                      "%s must be allocated together with its IOMMU group member %s, but is not part "
                                      "of '%s'.",
                                      PCI_ADDRESS_STR(member->address), PCI_ADDRESS_STR(dev->address), a->name);
        }
        return VERDICT_NONE;
}

static Verdict check_assigned(const HostView *view, const Allocation *a, const AllocationDevice *d,
                              const PciDevice *dev, Refusal *ret) {
        const Pool *pool = policy_pool(view->policy, dev);
        Verdict v = policy_check(view->policy, dev, ret);

        if (v != VERDICT_NONE)
                return v;
        if (!pool || !streq_ptr(pool->name, d->pool))
                return refuse(ret, VERDICT_NOT_IN_POOL, &dev->address, "Release the allocation, and allocate again.",
                              "%s is in pool '%s', but '%s' was promised a device of pool '%s'.",
                              PCI_ADDRESS_STR(dev->address), pool ? pool->name : "", a->name, d->pool ?: "");
        return check_group(view, a, dev, ret);
}

/* Returns whether dev has the role of `d`, companion or held, in the IOMMU group of an assigned device. */
static bool has_group_role(const HostView *view, const Allocation *a, const AllocationDevice *d, const PciDevice *dev) {
        GroupRole wanted = d->role == DEVICE_ROLE_COMPANION ? GROUP_ROLE_COMPANION : GROUP_ROLE_HOLD;

        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *assigned = a->devices[i].role == DEVICE_ROLE_ASSIGNED
                                                    ? inventory_find(view->inventory, a->devices[i].address)
                                                    : NULL;

                if (assigned && assigned->iommu_group >= 0 && assigned->iommu_group == dev->iommu_group &&
                    policy_group_role(view->policy, assigned, dev) == wanted)
                        return true;
        }
        return false;
}

static Verdict check_device(const HostView *view, const Allocation *a, const AllocationDevice *d, const PciDevice *dev,
                            Refusal *ret) {
        Verdict v;

        if (d->is_vf != (dev->type == PCI_TYPE_VF))
                return refuse(ret, VERDICT_HARDWARE_CHANGED, &dev->address, "Release the allocation.",
                              d->is_vf ? "%s is not a VF, but the allocated device was."
                                       : "%s is a VF, but the allocated device was not.",
                              PCI_ADDRESS_STR(dev->address));
        v = ledger_check_device(view->ledger, view->status, view->inventory, dev, a, ret);
        if (v != VERDICT_NONE)
                return v;
        if (d->role == DEVICE_ROLE_ASSIGNED)
                return check_assigned(view, a, d, dev, ret);
        if (has_group_role(view, a, d, dev))
                return VERDICT_NONE;
        return refuse(ret, VERDICT_GROUP_NOT_VIABLE, &dev->address, "Release the allocation, and allocate again.",
                      "%s does not have the role in its IOMMU group that the replaced device of '%s' had.",
                      PCI_ADDRESS_STR(dev->address), a->name);
}

Verdict plan_check_accept(const HostView *view, const Allocation *a, Refusal *ret) {
        Verdict v = VERDICT_NONE;
        size_t n = 0;

        for (size_t i = 0; v == VERDICT_NONE && i < a->n_devices; i++) {
                const PciDevice *dev = plan_find_replacement(view, &a->devices[i]);

                n += dev != NULL;
                if (dev)
                        v = check_device(view, a, &a->devices[i], dev, ret);
        }
        if (v != VERDICT_NONE || n > 0)
                return v;
        v = promise_check_hardware(view, a, ret);
        if (v == VERDICT_MISSING)
                return v;
        return refuse(ret, VERDICT_WRONG_STATE, NULL, NULL, "No device of '%s' was replaced by another card.", a->name);
}

/* Makes dev the device of `d`, as in a new allocation: a release restores the driver that dev has now. 0 or -ENOMEM. */
static int replace_device(const HostView *view, AllocationDevice *d, const PciDevice *dev) {
        d->has_baseline = false;
        d->serial = 0;
        d->prior_persistence = false;
        if (planner_record_device(d, view, dev) < 0)
                return -ENOMEM;
        /* A VF with a vGPU keeps its host driver. */
        return d->vgpu_type > 0 ? string_copy(&d->vfio_driver, dev->driver) : 0;
}

int plan_accept(const HostView *view, Allocation *a) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < a->n_devices; i++) {
                const PciDevice *dev = plan_find_replacement(view, &a->devices[i]);

                if (dev)
                        r = replace_device(view, &a->devices[i], dev);
        }
        return r;
}
