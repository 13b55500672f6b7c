/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Devices that a job or an orphan may be working on. */

#include <errno.h>

#include "manager.h"

/* Appends the device and its VFs. The vGPUs of a GPU change together, so all its VFs count as one device, and so do all
 * its slots of mediated devices and the GPU itself. */
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

/* A lease has no job. */
static bool is_interrupted(const Allocation *a) {
        return a->state != ALLOCATION_READY && a->state != ALLOCATION_RESERVED;
}

int manager_busy_devices(const Manager *m, PciAddress **ret, size_t *ret_n) {
        _cleanup_free_ PciAddress *busy = NULL, *at = NULL;
        size_t n = 0, n_at = 0;
        int r = orphans_devices(&m->jobs.orphans, &at, &n_at);

        for (size_t i = 0; r == 0 && i < m->jobs.n; i++)
                r = job_busy_devices(m->jobs.list[i], &at, &n_at);
        for (size_t i = 0; r == 0 && i < n_at; i++)
                r = append_with_vfs(m, at[i], &busy, &n);
        /* Before the first scan a child of an earlier daemon may still work on an interrupted allocation. */
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

void manager_set_stuck(Manager *m, PciAddress device, const char *message) {
        const Allocation *holder = ledger_holder(m->host.ledger, device);

        (void) device_status_set(&m->host.status, device, DEVICE_STUCK, message);
        if (message)
                history_record(HISTORY_STUCK, device, holder, "%s", message);
        else
                history_record(HISTORY_UNSTUCK, device, holder, "%s is no longer stuck.", PCI_ADDRESS_STR(device));
}

bool manager_is_busy(const Manager *m, PciAddress address) {
        _cleanup_free_ PciAddress *busy = NULL;
        size_t n = 0;

        /* Out of memory: assume that the device is busy. */
        if (m->jobs.n + m->jobs.orphans.n > 0 && manager_busy_devices(m, &busy, &n) < 0)
                return true;
        for (size_t i = 0; i < n; i++)
                if (pci_address_equal(busy[i], address))
                        return true;
        return false;
}
