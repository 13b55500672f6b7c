/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of processes of the daemon before: their devices are looked at and taken up again. */

#include <errno.h>

#include "manager.h"
#include "orphans.h"
#include "util/log.h"

#define LOOK_USEC (2U * 1000U * 1000U)

/* It gets what start would have given it, and its VFs. */
static void take_up(Manager *m, PciAddress address) {
        const PciDevice *dev = inventory_find(m->host.inventory, address);

        manager_arrived(m, address);
        for (size_t i = 0; dev && i < dev->n_vfs; i++)
                manager_arrived(m, dev->vfs[i]);
}

/* PFs that could be given no VFs as long as the kernel's lock for that was taken. */
static void take_up_pfs(Manager *m) {
        for (size_t i = 0; i < m->host.inventory->n_devices; i++) {
                const PciDevice *dev = &m->host.inventory->devices[i];

                if (dev->n_vfs == 0 && policy_vf_pool(m->host.policy, dev))
                        manager_arrived(m, dev->address);
        }
}

/* It has let go of its lock: look what is true now, and what of it is nobody else's is free again. */
static void end(Manager *m, size_t i) {
        Orphans *o = m->orphans;
        JobLock lock;

        /* Still among them, so that a number of VFs which it changed is no quarrel. */
        (void) manager_scan(m);
        lock = o->locks[i];
        o->locks[i] = o->locks[--o->n];
        for (size_t j = 0; j < lock.n_devices; j++) {
                PciAddress device = lock.devices[j];

                if (manager_is_orphaned(m, device))
                        continue;
                ledger_unblock(m->host.ledger, device);
                manager_record(m, HISTORY_UNSTUCK, device, ledger_holder(m->host.ledger, device),
                               "%s is not stuck any more.", PCI_ADDRESS_STR(device));
                take_up(m, device);
        }
        if (orphan_changes_vfs(&lock))
                take_up_pfs(m);
        manager_publish_devices(m, lock.devices, lock.n_devices);
        job_lock_done(&lock);
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;
        Orphans *o = m->orphans;
        size_t before = o->n;

        for (size_t i = o->n; i-- > 0;)
                if (job_lock_is_free(o->dir_fd, &o->locks[i]))
                        end(m, i);
        if (o->n < before) {
                m->released = true;
                manager_want_reconcile(m);
        }
        if (o->n == 0) {
                o->timer = sd_event_source_disable_unref(o->timer);
                return 0;
        }
        (void) sd_event_source_set_time_relative(source, LOOK_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int manager_follow_orphans(Manager *m) {
        int r;

        if (m->orphans->n == 0)
                return 0;
        r = sd_event_add_time_relative(m->event, &m->orphans->timer, CLOCK_MONOTONIC, LOOK_USEC, 0, on_look, m);
        return r < 0 ? log_error_errno(r, "Failed to follow processes of the daemon before: %m") : 0;
}
