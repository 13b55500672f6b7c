/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which devices jobs and orphans work on. */

#include <errno.h>

#include "state.h"
#include "util/strings.h"

int job_busy_devices(const Job *job, PciAddress **devices, size_t *n) {
        int r = 0;

        if (job_is_gone(job) || job->held)
                return 0;
        if (!job->has_result)
                return step_list_devices(job->steps, devices, n);
        for (size_t i = 0; i < job->n_stuck; i++)
                for (size_t j = 0; r == 0 && j < job->stuck[i].n_devices; j++)
                        r = pci_address_append(devices, n, job->stuck[i].devices[j]);
        pci_addresses_sort(*devices, n);
        return r;
}

bool orphans_have(const Orphans *o, PciAddress address) {
        for (size_t i = 0; i < o->n; i++)
                for (size_t j = 0; j < o->locks[i].n_devices; j++)
                        if (pci_address_equal(o->locks[i].devices[j], address))
                                return true;
        return false;
}

int orphans_devices(const Orphans *o, PciAddress **devices, size_t *n) {
        int r = 0;

        for (size_t i = 0; i < o->n; i++) {
                const JobLock *lock = &o->locks[i];

                for (size_t j = 0; r >= 0 && lock->fd >= 0 && j < lock->n_devices; j++)
                        r = pci_address_append(devices, n, lock->devices[j]);
        }
        return r;
}

/* Returns true when work on the allocation was interrupted or has failed. A lease needs no work. */
static bool is_interrupted(const Allocation *a) {
        return a->state != ALLOCATION_READY && a->state != ALLOCATION_RESERVED;
}

/* Appends the device and its VFs. All VFs of a GPU with vGPUs count as one device, because its vGPUs change together.
 * So do a GPU and all its slots of mediated devices. */
static int append_with_vfs(const Manager *m, PciAddress address, PciAddress **busy, size_t *n) {
        const Inventory *inv = m->host.inventory;
        const PciDevice *dev = inv ? inventory_find_vgpu_parent(inv, inventory_find(inv, address)) : NULL;
        int r = pci_address_append(busy, n, address);

        if (r == 0 && address.instance > 0)
                r = pci_address_append(busy, n, pci_address_function(address));
        for (size_t i = 0; r == 0 && dev && i < dev->n_vfs; i++)
                r = pci_address_append(busy, n, dev->vfs[i]);
        return r;
}

int manager_busy_devices(const Manager *m, PciAddress **ret, size_t *ret_n) {
        _cleanup_free_ PciAddress *busy = NULL, *at = NULL;
        size_t n = 0, n_at = 0;
        int r = orphans_devices(&m->jobs.orphans, &at, &n_at);

        for (size_t i = 0; r == 0 && i < m->jobs.n; i++)
                r = job_busy_devices(m->jobs.list[i], &at, &n_at);
        for (size_t i = 0; r == 0 && i < n_at; i++)
                r = append_with_vfs(m, at[i], &busy, &n);
        /* Before the first scan, the devices of an interrupted allocation count as busy: a child of an earlier daemon
         * may work on them. */
        for (size_t i = 0; r == 0 && !m->host.inventory && i < m->host.ledger->n_allocations; i++) {
                const Allocation *a = m->host.ledger->allocations[i];

                for (size_t j = 0; r == 0 && is_interrupted(a) && j < a->n_devices; j++)
                        r = pci_address_append(&busy, &n, pci_address_function(a->devices[j].address));
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(busy);
        *ret_n = n;
        return 0;
}

bool manager_is_busy(const Manager *m, PciAddress address) {
        _cleanup_free_ PciAddress *busy = NULL;
        size_t n = 0;

        /* If memory runs out, assume that the device is busy. */
        if (m->jobs.n + m->jobs.orphans.n > 0 && manager_busy_devices(m, &busy, &n) < 0)
                return true;
        for (size_t i = 0; i < n; i++)
                if (pci_address_equal(busy[i], address))
                        return true;
        return false;
}
