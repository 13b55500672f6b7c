/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decides which devices leave an allocation with the detached one, and whether the rest still works. */

#include "plan/plan.h"
#include "util/strings.h"

static int group_of(const HostView *view, const AllocationDevice *d) {
        const PciDevice *dev = d->lost ? NULL : inventory_find(view->inventory, d->address);

        return dev ? dev->iommu_group : -1;
}

/* Returns the assigned device in the slot, or NULL. */
static AllocationDevice *find_slot(Allocation *a, const char *slot) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (a->devices[i].role == DEVICE_ROLE_ASSIGNED && streq_ptr(a->devices[i].slot, slot))
                        return &a->devices[i];
        return NULL;
}

/* Returns an assigned device other than `detached` in the IOMMU group of `d`, or NULL. */
static const AllocationDevice *find_other(const HostView *view, const Allocation *a, const AllocationDevice *detached,
                                          const AllocationDevice *d) {
        int group = group_of(view, d);

        for (size_t i = 0; i < a->n_devices; i++)
                if (&a->devices[i] != detached && a->devices[i].role == DEVICE_ROLE_ASSIGNED && group >= 0 &&
                    group_of(view, &a->devices[i]) == group)
                        return &a->devices[i];
        return NULL;
}

/* Returns whether `h` is held only because of `d`. If the IOMMU group of `d` is unknown, because `d` is missing or
 * lost, returns whether `h` is held and no other assigned device is known to be in the group of `h`. */
static bool is_held_for(const HostView *view, const Allocation *a, const AllocationDevice *d,
                        const AllocationDevice *h) {
        int group = group_of(view, d);

        return h->role == DEVICE_ROLE_HELD && (group < 0 || group_of(view, h) == group) && !find_other(view, a, d, h);
}

/* Returns whether a device of `a` is a GPU of the partition. Sets *ret_model to whether such a GPU has the model of
 * `d`. */
static bool finds_gpus(const HostView *view, const Allocation *a, const FabricPartition *p, const AllocationDevice *d,
                       bool *ret_model) {
        bool found = false;

        *ret_model = false;
        for (size_t i = 0; p && i < a->n_devices; i++) {
                const AllocationDevice *other = &a->devices[i];
                const PciDevice *dev = inventory_find(view->inventory, other->address);

                if (!dev || !(p->modules & fabric_bit(config_module(view->config, dev))))
                        continue;
                found = true;
                *ret_model = *ret_model || (other->vendor == d->vendor && other->device == d->device);
        }
        return found;
}

/*
 * Returns whether `d` is a GPU of the NVLink partition of `a`. If `a` has a partition, each of its GPUs from pools with
 * Fabric=yes is in it. But the pool of `d` may have lost Fabric= since the allocation, or be gone; then the module id
 * of `d` decides. The module id may be unknown, for example while the GPU is lost (a lost GPU may come back), or the
 * configuration may no longer have the partition. Then `d` counts as a GPU of the partition in two cases: `a` has a GPU
 * of the same model whose module is in the partition, or no GPU of `a` is known to be in the partition.
 */
static bool is_in_partition(const HostView *view, const Allocation *a, const AllocationDevice *d) {
        const Pool *pool = d->pool ? config_find_pool(view->config, d->pool) : NULL;
        const PciDevice *dev = d->lost ? NULL : inventory_find(view->inventory, d->address);
        const FabricPartition *p = fabric_table_find(&view->config->fabric, (unsigned) a->partition);
        unsigned module = dev ? config_module(view->config, dev) : 0;
        bool is_model;

        if (a->partition < 0 || d->is_vf || (dev && !pci_device_is_gpu(dev)))
                return false;
        if (pool && pool->fabric)
                return true;
        if (module > 0 && p)
                return p->modules & fabric_bit(module);
        return !finds_gpus(view, a, p, d, &is_model) || is_model;
}

/* Marks as detaching the device, its companions, and the devices held only because of it. Refuses for a confidential
 * guest, a GPU of an NVLink partition, and a device whose IOMMU group has another assigned device of `a`. */
static Verdict mark_device(const HostView *view, Allocation *a, AllocationDevice *d, Refusal *ret) {
        const AllocationDevice *other = find_other(view, a, d, d);
        bool follows = false;

        if (a->confidential != CONFIDENTIAL_NONE)
                return refuse(ret, VERDICT_NOT_SUPPORTED, NULL, "Release the allocation, and allocate anew.",
                              "'%s' is for a confidential guest, whose devices do not change.", a->name);
        if (is_in_partition(view, a, d))
                return refuse(ret, VERDICT_NOT_SUPPORTED, &d->address, "Release the allocation, and allocate anew.",
                              "%s is one of the GPUs of NVLink partition %d, which '%s' has as a whole.",
                              PCI_ADDRESS_STR(d->address), a->partition, a->name);
        if (other)
                return refuse(ret, VERDICT_GROUP_NOT_VIABLE, &d->address, "Release the allocation, and allocate anew.",
                              "%s shares its IOMMU group with %s, which '%s' has too.", PCI_ADDRESS_STR(d->address),
                              PCI_ADDRESS_STR(other->address), a->name);
        for (size_t i = 0; i < a->n_devices; i++) {
                /* Companions follow their device in the list. */
                if (a->devices[i].role != DEVICE_ROLE_COMPANION)
                        follows = &a->devices[i] == d;
                if (follows || is_held_for(view, a, d, &a->devices[i]))
                        a->devices[i].phase = DEVICE_PHASE_DETACHING;
        }
        return VERDICT_NONE;
}

/* Returns whether the allocation keeps an assigned device of the pool. */
static bool keeps_device_of(const Allocation *a, const char *pool) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (a->devices[i].role == DEVICE_ROLE_ASSIGNED && allocation_device_is_settled(&a->devices[i]) &&
                    streq_ptr(a->devices[i].pool, pool))
                        return true;
        return false;
}

/* Refuses to detach the last device of a pool through which the guest reaches a service with Via=. */
static Verdict check_via(const HostView *view, const Allocation *a, const AllocationDevice *d, Refusal *ret) {
        for (size_t i = 0; i < a->n_services; i++) {
                const RemoteService *s = config_find_service(view->config, a->services[i].name);

                if (s && s->via && streq_ptr(d->pool, s->via) && !keeps_device_of(a, s->via))
                        return refuse(ret, VERDICT_WRONG_STATE, &d->address,
                                      "Release the allocation, or attach another device of the pool first.",
                                      "%s is the last device of pool '%s' that '%s' has, and its slots of service '%s' "
                                      "need one.",
                                      PCI_ADDRESS_STR(d->address), s->via, a->name, s->name);
        }
        return VERDICT_NONE;
}

/* Refuses if neither devices nor CPUs would be left. */
static Verdict check_rest(const Allocation *a, Refusal *ret) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (a->devices[i].role == DEVICE_ROLE_ASSIGNED && allocation_device_is_settled(&a->devices[i]))
                        return VERDICT_NONE;
        if (a->n_pins > 0)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_WRONG_STATE, NULL, "Release the allocation.", "'%s' has nothing else.", a->name);
}

Verdict plan_detach(const HostView *view, Allocation *a, const char *slot, Refusal *ret) {
        AllocationDevice *d = find_slot(a, slot);
        Verdict v;

        if (!d)
                return refuse(ret, VERDICT_NO_SUCH_DEVICE, NULL, "'passthroughctl allocations' lists the slots.",
                              "'%s' has no device in slot '%s'.", a->name, QUOTABLE(slot));
        /* An earlier attach or detach was interrupted: all its devices are detached together. */
        if (allocation_is_changing(a)) {
                if (allocation_device_is_settled(d))
                        return refuse(ret, VERDICT_WRONG_STATE, NULL, "Detach these devices first.",
                                      "'%s' has devices that are neither attached nor detached.", a->name);
                for (size_t i = 0; i < a->n_devices; i++)
                        if (!allocation_device_is_settled(&a->devices[i]))
                                a->devices[i].phase = DEVICE_PHASE_DETACHING;
                return VERDICT_NONE;
        }
        v = mark_device(view, a, d, ret);
        if (v == VERDICT_NONE)
                v = check_via(view, a, d, ret);
        return v != VERDICT_NONE ? v : check_rest(a, ret);
}
