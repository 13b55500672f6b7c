/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who uses the devices of an allocation, asked before a job takes or releases them. */

#include <errno.h>

#include "host/holders.h"
#include "manager.h"
#include "util/strings.h"

/* Fills in *ret with the use of the device that forbids what the check is for; false when no use does. */
static bool query_device(const Manager *m, const Allocation *a, const AllocationDevice *d, UseCheck check,
                         HolderQuery *ret) {
        const PciDevice *dev = inventory_find(m->host.inventory, d->address);
        const Pool *pool = d->pool ? config_find_pool(m->host.config, d->pool) : NULL;
        const ProbeAnswer *gpu = probe_cache_find(&m->gpus, dev);
        bool bound = streq_ptr(dev->driver, allocation_driver(a, d));

        *ret = (HolderQuery){ .address = dev->address, .group = dev->iommu_group, .is_vf = dev->type == PCI_TYPE_VF };
        if (bound || dev->vfio)
                return !bound || check != USE_RESUME;
        /* A release leaves a device where it is that is not on its VFIO driver. */
        if (check == USE_RELEASE)
                return false;
        /* The group may be open by the guest of the same allocation. A PF without a driver may still have VFs. */
        if (!dev->driver) {
                ret->group = -1;
                return !ret->is_vf;
        }
        ret->driver = dev->driver;
        ret->nvidia_minor = gpu ? gpu->value : NVIDIA_MINOR_UNKNOWN;
        /* The job stops these services before it takes the device, and then looks again. */
        if (pool) {
                ret->ignored = pool->stop_services;
                ret->n_ignored = pool->n_stop_services;
        }
        return true;
}

Verdict manager_refuse_use_unknown(const PciAddress *device, int error, Refusal *ret) {
        if (error == -ENOMEM)
                return refuse_no_memory(ret);
        if (error == -ETIMEDOUT)
                return refuse(ret, VERDICT_BUSY, device, "Find out which process has so many files open.",
                              "It cannot be told who uses %s: too many files are open on this node.",
                              PCI_ADDRESS_STR(*device));
        if (error == -E2BIG)
                return refuse(ret, VERDICT_BUSY, device, "Find out what the host has made of it, and remove that.",
                              "It cannot be told who uses %s: there is too much in sysfs below it.",
                              PCI_ADDRESS_STR(*device));
        return refuse(ret, VERDICT_BUSY, device, "Give the daemon the right to read /proc/PID/fd of all processes.",
                      "It cannot be told who uses %s: %s.", PCI_ADDRESS_STR(*device), strerror(-error));
}

/* Returns how many queries about devices of a it wrote; there is room for all its devices. */
static size_t make_queries(const Manager *m, const Allocation *a, UseCheck check, HolderQuery *queries) {
        size_t n = 0;

        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(m->host.inventory, a->devices[i].address);

                /* Another card at the address is not ours to ask about. */
                if (dev && allocation_device_is(&a->devices[i], dev))
                        n += query_device(m, a, &a->devices[i], check, &queries[n]);
        }
        return n;
}

size_t manager_find_open(const Manager *m, Allocation *const *allocations, size_t n) {
        _cleanup_free_ HolderQuery *queries = NULL;
        _cleanup_free_ size_t *owners = NULL;
        size_t n_devices = 0, n_queries = 0;
        Holder holder;

        for (size_t i = 0; i < n; i++)
                n_devices += allocations[i]->n_devices;
        queries = calloc(n_devices + 1, sizeof(*queries));
        owners = calloc(n_devices + 1, sizeof(*owners));
        for (size_t i = 0; queries && owners && i < n; i++)
                for (size_t k = make_queries(m, allocations[i], USE_RELEASE, &queries[n_queries]); k > 0; k--)
                        owners[n_queries++] = i;
        if (n_queries == 0 || holders_find(m->fs, queries, n_queries, &holder) <= 0 || holder.pid == 0)
                return n;
        return owners[holder.device];
}

Verdict manager_check_use(const Manager *m, const Allocation *a, UseCheck check, Refusal *ret) {
        _cleanup_free_ HolderQuery *queries = calloc(a->n_devices + 1, sizeof(*queries));
        Holder holder;
        int r;

        if (!queries)
                return refuse_no_memory(ret);
        r = holders_find(m->fs, queries, make_queries(m, a, check, queries), &holder);
        if (r < 0)
                return manager_refuse_use_unknown(&queries[0].address, r, ret);
        if (r == 0)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_BUSY, &queries[holder.device].address, holder.remedy, "%s is in use by %s.",
                      holder.subject, holder.text);
}
