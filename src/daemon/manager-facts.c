/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the manager knows of the node. */

#include <errno.h>

#include "daemon/manager.h"
#include "host/critical.h"
#include "host/numa.h"
#include "host/scan.h"
#include "util/log.h"
#include "util/strings.h"

/* Devices are in the same order in both inventories. */
static void signal_differences(Manager *m, const Inventory *old, const Inventory *new) {
        size_t i = 0, j = 0;

        while (m->server && (i < old->n_devices || j < new->n_devices)) {
                int c = i == old->n_devices   ? 1
                        : j == new->n_devices ? -1
                                              : pci_address_compare(old->devices[i].address, new->devices[j].address);

                if (c < 0)
                        server_device_removed(m->server, old->devices[i++].address);
                else if (c > 0)
                        server_device_added(m->server, new->devices[j++].address);
                else {
                        if (!streq_ptr(old->devices[i].driver, new->devices[j].driver) ||
                            old->devices[i].iommu_group != new->devices[j].iommu_group ||
                            old->devices[i].n_vfs != new->devices[j].n_vfs)
                                server_device_changed(m->server, new->devices[j].address);
                        i++;
                        j++;
                }
        }
}

/* Devices whose lock a running job may hold: reading their override would wait for it, perhaps for ever. */
static int busy_devices(const Manager *m, PciAddress **ret, size_t *ret_n) {
        _cleanup_free_ PciAddress *busy = NULL;
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; i < m->n_jobs; i++) {
                const StepList *steps = job_steps(m->jobs[i].job);

                for (size_t j = 0; r == 0 && !job_is_gone(m->jobs[i].job) && j < steps->n; j++) {
                        const PciDevice *dev =
                                m->inventory ? inventory_find(m->inventory, steps->steps[j].device) : NULL;

                        r = pci_address_append(&busy, &n, steps->steps[j].device);
                        for (size_t k = 0; r == 0 && dev && k < dev->n_vfs; k++)
                                r = pci_address_append(&busy, &n, dev->vfs[k]);
                }
        }
        /* At start a child of the daemon before this one may still be at it: what was in order nobody touches. */
        for (size_t i = 0; r == 0 && !m->inventory && i < m->ledger->n_allocations; i++) {
                const Allocation *a = m->ledger->allocations[i];

                for (size_t j = 0; r == 0 && a->state != ALLOCATION_READY && j < a->n_devices; j++)
                        r = pci_address_append(&busy, &n, a->devices[j].address);
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(busy);
        *ret_n = n;
        return 0;
}

/* What is not read keeps its last known value. */
static void keep_overrides(const Inventory *old, Inventory *new, const PciAddress *busy, size_t n) {
        for (size_t i = 0; old && i < n; i++) {
                const PciDevice *before = inventory_find(old, busy[i]), *now = inventory_find(new, busy[i]);

                if (before && now)
                        (void) string_copy(&new->devices[inventory_device_index(new, now)].driver_override,
                                           before->driver_override);
        }
}

int manager_scan(Manager *m) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = NULL, *old = NULL;
        _cleanup_(cleanup_locality_free) Locality *locality = NULL;
        _cleanup_(cleanup_policy_free) Policy *policy = NULL;
        _cleanup_free_ PciAddress *busy = NULL;
        size_t n_busy = 0;
        int r = busy_devices(m, &busy, &n_busy);

        if (r >= 0)
                r = scan_inventory_around(m->fs, busy, n_busy, &inv);
        if (r >= 0) {
                keep_overrides(m->inventory, inv, busy, n_busy);
                r = critical_mark(m->fs, inv);
        }
        if (r >= 0)
                r = locality_new(inv, &locality);
        if (r >= 0)
                r = policy_new(m->config, inv, &policy);
        if (r < 0)
                return log_error_errno(r, "Failed to read the node: %m");
        if (!m->inventory)
                manager_log_policy(policy);
        if (m->phase == START_ANNOUNCED && policy->conflict.verdict != VERDICT_NONE &&
            m->policy->conflict.verdict == VERDICT_NONE)
                log_warning("%s %s", policy->conflict.message, policy->conflict.remedy);
        policy_free(m->policy);
        locality_free(m->locality);
        old = m->inventory;
        m->inventory = TAKE_PTR(inv);
        m->locality = TAKE_PTR(locality);
        m->policy = TAKE_PTR(policy);
        if (old)
                signal_differences(m, old, m->inventory);
        return 0;
}

static int remake_policy(Manager *m) {
        Policy *policy;
        int r = policy_new(m->config, m->inventory, &policy);

        if (r < 0)
                return r;
        policy_free(m->policy);
        m->policy = policy;
        return 0;
}

/* 1: something differs. -ESTALE: more than can be mended in place. */
static int refresh_device(Manager *m, PciAddress address) {
        const PciDevice *found = inventory_find(m->inventory, address);
        _cleanup_free_ char *driver = NULL, *override = NULL;
        PciDevice *dev;
        int r;

        if (!found)
                return 0;
        dev = &m->inventory->devices[inventory_device_index(m->inventory, found)];
        r = string_copy(&driver, dev->driver);
        if (r >= 0)
                r = string_copy(&override, dev->driver_override);
        if (r < 0)
                return r;
        r = scan_refresh(m->fs, dev);
        if (r < 0)
                return r == -ENOMEM ? r : -ESTALE;
        return !streq_ptr(driver, dev->driver) || !streq_ptr(override, dev->driver_override);
}

static int take_refreshed(Manager *m, int r) {
        if (r == -ESTALE)
                r = manager_scan(m) < 0 ? -ENOMEM : 1;
        else if (r > 0)
                /* Whether a group can be given away hangs on its members' drivers. */
                r = remake_policy(m) < 0 ? -ENOMEM : 1;
        return r;
}

int manager_refresh(Manager *m, const PciAddress *devices, size_t n) {
        int differs = 0;

        for (size_t i = 0; differs >= 0 && i < n; i++) {
                int r = refresh_device(m, devices[i]);

                differs = r < 0 ? r : differs | r;
        }
        return take_refreshed(m, differs);
}

/* What the host stands on, as one number. */
static uint64_t critical_digest(const Inventory *inv) {
        uint64_t digest = inv->critical_unknown ? 1 : 14695981039346656037ULL;

        for (size_t i = 0; i < inv->n_devices; i++)
                for (const char *c = inv->devices[i].critical; c && *c; c++)
                        digest = (digest ^ (uint8_t) *c ^ i) * 1099511628211ULL;
        return digest;
}

int manager_refresh_host(Manager *m) {
        uint64_t before = critical_digest(m->inventory);
        int r = numa_refresh(m->fs, m->inventory);

        if (r == 0)
                r = critical_mark(m->fs, m->inventory);
        if (r == 0)
                r = critical_digest(m->inventory) != before;
        return take_refreshed(m, r);
}
