/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Accept: at an admin's request, an allocation takes the cards that replaced its devices. */

#include <errno.h>

#include "inventory.h"
#include "operations.h"
#include "util/log.h"
#include "util/strings.h"

static const PciDevice *find_replacement(const Manager *m, const AllocationDevice *d) {
        const PciDevice *dev = d->lost ? NULL : inventory_find(m->host.inventory, d->address);

        return dev && !allocation_device_is(d, dev) ? dev : NULL;
}

/* The allocation must contain every group member that allocating dev would take. */
static Verdict check_group(const Manager *m, const Allocation *a, const PciDevice *dev, Refusal *ret) {
        const IommuGroup *g = inventory_find_group(m->host.inventory, dev->iommu_group);

        for (size_t i = 0; g && i < g->n_members; i++) {
                const PciDevice *member = &m->host.inventory->devices[g->members[i]];
                GroupRole role = member == dev ? GROUP_ROLE_LEAVE : policy_group_role(m->host.policy, dev, member);

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

static Verdict check_assigned(const Manager *m, const Allocation *a, const AllocationDevice *d, const PciDevice *dev,
                              Refusal *ret) {
        const Pool *pool = policy_pool(m->host.policy, dev);
        Verdict v = policy_check(m->host.policy, dev, ret);

        if (v != VERDICT_NONE)
                return v;
        if (!pool || !streq_ptr(pool->name, d->pool))
                return refuse(ret, VERDICT_NOT_IN_POOL, &dev->address, "Release the allocation, and allocate again.",
                              "%s is in pool '%s', but '%s' was promised a device of pool '%s'.",
                              PCI_ADDRESS_STR(dev->address), pool ? pool->name : "", a->name, d->pool ?: "");
        return check_group(m, a, dev, ret);
}

/* dev has the group role of d, the device that it replaces, for an assigned device of the allocation. */
static bool has_group_role(const Manager *m, const Allocation *a, const AllocationDevice *d, const PciDevice *dev) {
        GroupRole wanted = d->role == DEVICE_ROLE_COMPANION ? GROUP_ROLE_COMPANION : GROUP_ROLE_HOLD;

        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *assigned = a->devices[i].role == DEVICE_ROLE_ASSIGNED
                                                    ? inventory_find(m->host.inventory, a->devices[i].address)
                                                    : NULL;

                if (assigned && assigned->iommu_group >= 0 && assigned->iommu_group == dev->iommu_group &&
                    policy_group_role(m->host.policy, assigned, dev) == wanted)
                        return true;
        }
        return false;
}

static Verdict check_device(const Manager *m, const Allocation *a, const AllocationDevice *d, const PciDevice *dev,
                            Refusal *ret) {
        Verdict v;

        if (d->is_vf != (dev->type == PCI_TYPE_VF))
                return refuse(ret, VERDICT_HARDWARE_CHANGED, &dev->address, "Release the allocation.",
                              d->is_vf ? "%s is not a VF, but the allocated device was."
                                       : "%s is a VF, but the allocated device was not.",
                              PCI_ADDRESS_STR(dev->address));
        v = ledger_check_device(m->host.ledger, &m->host.status, m->host.inventory, dev, a, ret);
        if (v != VERDICT_NONE)
                return v;
        if (d->role == DEVICE_ROLE_ASSIGNED)
                return check_assigned(m, a, d, dev, ret);
        if (has_group_role(m, a, d, dev))
                return VERDICT_NONE;
        return refuse(ret, VERDICT_GROUP_NOT_VIABLE, &dev->address, "Release the allocation, and allocate again.",
                      "%s does not have the role in its IOMMU group that the replaced device of '%s' had.",
                      PCI_ADDRESS_STR(dev->address), a->name);
}

static Verdict check_replacements(const Manager *m, const Allocation *a, Refusal *ret) {
        Verdict v = VERDICT_NONE;
        size_t n = 0;

        for (size_t i = 0; v == VERDICT_NONE && i < a->n_devices; i++) {
                const PciDevice *dev = find_replacement(m, &a->devices[i]);

                n += dev != NULL;
                if (dev)
                        v = check_device(m, a, &a->devices[i], dev, ret);
        }
        if (v != VERDICT_NONE || n > 0)
                return v;
        v = manager_check_hardware(m, a, ret);
        if (v == VERDICT_MISSING)
                return v;
        return refuse(ret, VERDICT_WRONG_STATE, NULL, NULL, "No device of '%s' was replaced by another card.", a->name);
}

/* Makes dev the device d, as in a new allocation: a release restores the present driver of dev. */
static int replace_device(const Manager *m, AllocationDevice *d, const PciDevice *dev) {
        const char *own = m->host.config->variants ? inventory_variant_driver(m->host.inventory, dev) : NULL;

        d->has_baseline = false;
        d->serial = 0;
        if (string_copy(&d->vfio_driver, own) < 0 || string_copy(&d->prior_driver, dev->driver) < 0 ||
            string_copy(&d->prior_override, dev->driver_override) < 0 || string_copy(&d->prior_reset, NULL) < 0)
                return -ENOMEM;
        d->prior_runtime_pm = dev->runtime_pm;
        d->prior_d3cold = dev->d3cold;
        d->prior_persistence = false;
        return allocation_device_identify(d, dev);
}

static int take_replacements(Manager *m, Allocation *b) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < b->n_devices; i++) {
                const PciDevice *dev = find_replacement(m, &b->devices[i]);

                if (dev)
                        r = replace_device(m, &b->devices[i], dev);
        }
        return r;
}

/* Records the replaced cards. a: with the identity of the old cards. */
static void record(Manager *m, const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (find_replacement(m, &a->devices[i]))
                        history_record(HISTORY_ACCEPTED, a->devices[i].address, a,
                                       "%s is a different card than before, and was accepted for '%s'.",
                                       PCI_ADDRESS_STR(a->devices[i].address), a->name);
}

static Verdict accept_replacements(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *b = allocation_copy(a);
        Allocation *accepted = b;
        Verdict v;

        if (!b || take_replacements(m, b) < 0)
                return refuse_no_memory(ret);
        manager_note_serials(m, b);
        v = manager_check_hardware(m, b, ret);
        if (v == VERDICT_NONE)
                v = manager_check_drivers(&m->host, b, ret);
        if (v != VERDICT_NONE)
                return v;
        b->state = ALLOCATION_PREPARING;
        b->resume_refused = false;
        if (string_copy(&b->reason, NULL) < 0)
                return refuse_no_memory(ret);
        v = manager_replace_allocation(m, a, &b, ret);
        if (v != VERDICT_NONE)
                return v;
        /* While the old allocation still has the identity of the old cards. */
        record(m, b);
        v = manager_start_prepare(m, accepted, true, ret_job, ret);
        if (v != VERDICT_NONE) {
                (void) manager_set_state(m, accepted, ALLOCATION_FAILED, ret->message);
                return v;
        }
        /* As for a resumed job, only a release undoes a failure. */
        job_queue_find(&m->jobs, *ret_job)->resumed = true;
        manager_tell_allocation(m, accepted);
        manager_publish_allocation(m, accepted);
        return VERDICT_NONE;
}

Verdict manager_accept(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret) {
        Allocation *a = ledger_find(m->host.ledger, name);
        Verdict v;

        v = manager_check_tenancy(m, a, name, generation, ret);
        if (v == VERDICT_NONE)
                v = manager_check_blocked(m, a, false, ret);
        if (v == VERDICT_NONE)
                v = job_queue_check_room(&m->jobs, ret);
        if (v == VERDICT_NONE && manager_refresh_host(m) < 0)
                v = refuse_no_memory(ret);
        if (v == VERDICT_NONE && manager_refresh_groups(m, a) < 0)
                v = refuse_no_memory(ret);
        if (v == VERDICT_NONE)
                v = check_replacements(m, a, ret);
        return v != VERDICT_NONE ? v : accept_replacements(m, a, ret_job, ret);
}
