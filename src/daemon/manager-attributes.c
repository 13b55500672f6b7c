/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What VFs had before they were prepared: kept with the allocation before anything is written, so that a release can
 * go back to it whatever comes between. */

#include "daemon/manager.h"
#include "util/log.h"
#include "util/messages.h"

static AllocationDevice *find_vf(const Manager *m, Allocation *a, const Step *step) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(m->node.inventory, a->devices[i].address);

                if (dev && a->devices[i].is_vf && pci_address_equal(a->devices[i].physfn, step->device) &&
                    dev->vf_index == (int) step->vf)
                        return &a->devices[i];
        }
        return NULL;
}

void manager_found_attributes(Manager *m, const ManagerJob *mj, const Step *step, const VfAttributes *found) {
        Allocation *a = ledger_find(m->node.ledger, job_subject(mj->job));
        AllocationDevice *d = a ? find_vf(m, a, step) : NULL;

        /* What an earlier run wrote is no baseline. */
        if (!d || d->has_baseline)
                return;
        d->baseline = *found;
        d->has_baseline = true;
        /* A PF that offers no way to set them leaves the VF as it is; what was asked for fails at its step. */
        vf_attributes_keep(&d->attributes, found->set | ~d->generated);
        d->generated &= found->set;
}

int manager_all_attributes_found(Manager *m, const ManagerJob *mj) {
        Allocation *a = ledger_find(m->node.ledger, job_subject(mj->job));
        int r = store_save(m->store, a);

        if (r < 0)
                log_full(LOG_ERR, r, (&(LogFields){ .id = MESSAGE_LEDGER_WRITE, .allocation = a->name }),
                         "Failed to write what the VFs of '%s' had before to the ledger: %m", a->name);
        server_allocation_changed(m->server, a->name);
        return r;
}
