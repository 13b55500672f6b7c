/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PFs whose number of VFs another program changed. */

#include "inventory.h"
#include "operations.h"
#include "util/strings.h"

static bool has_job(const Manager *m, PciAddress pf) {
        for (size_t i = 0; i < m->jobs.n; i++)
                if (streq(job_verb(m->jobs.list[i].job), MANAGER_VERB_VFS) &&
                    streq(job_subject(m->jobs.list[i].job), PCI_ADDRESS_STR(pf)))
                        return true;
        return false;
}

/*
 * Another program changed the number of VFs. Not counted: a change of the PF's driver, which removes the VFs, and
 * mlx4_core, which creates the number of VFs in its module options when it is loaded.
 */
static bool was_changed(const Manager *m, const PciDevice *before, const PciDevice *now) {
        return before->n_virtfns != now->n_virtfns && now->driver && streq_ptr(before->driver, now->driver) &&
               !pci_device_is_mlx4_pf(now) && policy_vf_pool(m->host.policy, now) && !has_job(m, now->address) &&
               !manager_is_orphaned(m, now->address);
}

static void contest(Manager *m, const PciDevice *before, const PciDevice *now) {
        bool known = device_status_get(&m->host.status, now->address, DEVICE_CONTESTED);
        size_t ours = known ? device_status_find(&m->host.status, now->address)->n_vfs : before->n_virtfns;
        const char *address = PCI_ADDRESS_STR(now->address);
        _cleanup_free_ char *message = NULL;

        if (now->n_virtfns == ours) {
                (void) device_status_set(&m->host.status, now->address, DEVICE_CONTESTED, NULL);
                manager_record(m, HISTORY_UNCONTESTED, now->address, NULL, "%s has %zu VF%s again.", address, ours,
                               PLURAL(ours));
                return;
        }
        if (string_replace(&message, "Another program changed the number of its VFs from %zu to %zu.", ours,
                           now->n_virtfns) < 0 ||
            device_status_set_contested(&m->host.status, now->address, ours, message) < 0)
                return;
        manager_record(m, HISTORY_CONTESTED, now->address, NULL,
                       "Another program changed the number of VFs of %s from %zu to %zu.", address, ours,
                       now->n_virtfns);
}

void manager_check_vfs(Manager *m, const Inventory *old) {
        for (size_t i = 0; m->announced && i < m->host.inventory->n_devices; i++) {
                const PciDevice *now = &m->host.inventory->devices[i];
                const PciDevice *before = inventory_find(old, now->address);

                if (now->type != PCI_TYPE_PF)
                        continue;
                if (!before || before->instance != now->instance)
                        (void) device_status_set(&m->host.status, now->address, DEVICE_CONTESTED, NULL);
                else if (was_changed(m, before, now))
                        contest(m, before, now);
        }
}
