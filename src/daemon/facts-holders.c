/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the users of an allocation's devices before a job binds or releases the devices. */

#include <errno.h>

#include "facts.h"
#include "host/holders.h"
#include "model/mdev-slots.h"
#include "util/strings.h"

/* Sets *ret to a query for those uses of the device that `check` does not allow. Returns false when no query is needed:
 * every use is allowed, or no use is possible. */
static bool query_device(const Manager *m, const Allocation *a, const AllocationDevice *d, UseCheck check,
                         HolderQuery *ret) {
        const PciDevice *dev = inventory_find(m->host.inventory, d->address);
        const Pool *pool = d->pool ? config_find_pool(m->host.config, d->pool) : NULL;
        bool bound = streq_ptr(dev->driver, allocation_driver(a, d));

        *ret = (HolderQuery) { .address = pci_address_function(dev->address),
                               .group = dev->iommu_group,
                               .is_vf = dev->type == PCI_TYPE_VF };
        /* A mediated device without a UUID was not created yet, so no process uses it. */
        if (pci_device_is_slot(dev) && !*d->mdev)
                return false;
        /* A guest opens its mediated device, not the parent of it. The job does not touch the other mediated devices of
         * the parent. */
        ret->only_parts = bound && dev->mdev_parent;
        if (ret->only_parts && *d->mdev)
                ret->mdev = d->mdev;
        if (bound || dev->vfio)
                return !bound || check != USE_RESUME;
        /* A release does not change a device that is on neither its allocation_driver() nor a VFIO driver, so the users
         * of the device do not matter. Xen is an exception: a guest keeps a device that another program has unbound
         * from pciback. */
        if (check == USE_RELEASE) {
                ret->group = -1;
                ret->is_vf = true;
                return m->host.inventory->xen;
        }
        /* Do not search for users of the group, which the guest of the same allocation may have open. A PF without a
         * driver may still have VFs in use. */
        if (!dev->driver) {
                ret->group = -1;
                return !ret->is_vf || m->host.inventory->xen;
        }
        ret->driver = dev->driver;
        ret->nvidia_minor = manager_gpu_minor(m, dev);
        /* Ignore users that are processes of these services: the job stops the services before it unbinds the device,
         * and then checks again. */
        if (pool) {
                ret->ignored = pool->stop_services;
                ret->n_ignored = pool->n_stop_services;
        }
        return true;
}

Verdict refuse_use_unknown(const PciAddress *device, int error, Refusal *ret) {
        if (error == -ENOMEM)
                return refuse_no_memory(ret);
        if (error == -ETIMEDOUT)
                return refuse(ret, VERDICT_BUSY, device, "Find out which process has so many files open.",
                              "The users of %s cannot be determined: too many files are open on this node.",
                              PCI_ADDRESS_STR(*device));
        if (error == -E2BIG)
                return refuse(ret, VERDICT_BUSY, device, "Remove the devices that the host has created on it.",
                              "The users of %s cannot be determined: it has too many entries in sysfs.",
                              PCI_ADDRESS_STR(*device));
        if (error == -EHOSTDOWN)
                return refuse(ret, VERDICT_BUSY, device,
                              "Check the service: systemctl status passthroughd-holders.socket passthroughd-holders.",
                              "The users of %s cannot be determined: passthroughd-holders does not answer.",
                              PCI_ADDRESS_STR(*device));
        return refuse(ret, VERDICT_BUSY, device, "Give the daemon the right to read /proc/PID/fd of all processes.",
                      "The users of %s cannot be determined: %s.", PCI_ADDRESS_STR(*device), strerror(-error));
}

/* Makes a query for each device of `a` that needs one. Returns the number of queries, at most a->n_devices. */
static size_t make_queries(const Manager *m, const Allocation *a, UseCheck check, HolderQuery *queries) {
        size_t n = 0;

        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(m->host.inventory, a->devices[i].address);

                /* Skip another card at the address of the allocated one: it does not belong to the allocation. */
                if (dev && allocation_device_is(&a->devices[i], dev))
                        n += query_device(m, a, &a->devices[i], check, &queries[n]);
        }
        return n;
}

int manager_find_open(const Manager *m, const Sysfs *fs, Allocation *const *allocations, size_t n, size_t *ret) {
        _cleanup_free_ HolderQuery *queries = NULL;
        _cleanup_free_ size_t *owners = NULL;
        size_t n_devices = 0, n_queries = 0;
        Holder holder;
        int r;

        for (size_t i = 0; i < n; i++)
                n_devices += allocations[i]->n_devices;
        queries = calloc(n_devices + 1, sizeof(*queries));
        owners = calloc(n_devices + 1, sizeof(*owners));
        if (!queries || !owners)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                for (size_t k = make_queries(m, allocations[i], USE_RELEASE, &queries[n_queries]); k > 0; k--)
                        owners[n_queries++] = i;
        r = n_queries > 0 ? holders_find(fs, queries, n_queries, &holder) : 0;
        if (r <= 0)
                return r;
        *ret = owners[holder.device];
        return holder.pid > 0 || holder.by_guest ? 1 : -EBUSY;
}

Verdict manager_check_use(const Manager *m, const Allocation *a, UseCheck check, Refusal *ret) {
        _cleanup_free_ HolderQuery *queries = calloc(a->n_devices + 1, sizeof(*queries));
        Holder holder;
        int r;

        if (!queries)
                return refuse_no_memory(ret);
        r = holders_find(m->fs, queries, make_queries(m, a, check, queries), &holder);
        if (r < 0)
                return refuse_use_unknown(&queries[0].address, r, ret);
        if (r == 0)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_BUSY, &queries[holder.device].address, holder.remedy, "%s is in use by %s.",
                      holder.subject, holder.text);
}

Verdict manager_check_use_again(Manager *m, const Allocation *a, UseCheck check, Refusal *ret) {
        if (manager_refresh_groups(m, a) < 0)
                return refuse_no_memory(ret);
        return manager_check_use(m, a, check, ret);
}
