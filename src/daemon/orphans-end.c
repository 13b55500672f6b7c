/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handles the exit of orphans: unblocks their devices and reads them again. */

#include <errno.h>
#include <time.h>

#include "inventory.h"
#include "util/log.h"

#define POLL_USEC   (2U * 1000U * 1000U)
/* The processes of a job are killed with the child that started them: so long the event loop waits for their end. */
#define DEATH_TRIES 50
#define DEATH_PAUSE (2L * 1000L * 1000L) /* nsec */

/* Queues the device and its VFs as new devices. */
static void queue_device(Manager *m, PciAddress address) {
        const PciDevice *dev = inventory_find(m->host.inventory, address);

        reconcile_queue(&m->reconcile, address);
        for (size_t i = 0; dev && i < dev->n_vfs; i++)
                reconcile_queue(&m->reconcile, dev->vfs[i]);
}

/* Queues the PFs that could get no VFs while the orphan held the kernel's lock for adding and removing VFs. */
static void queue_pfs(Manager *m) {
        for (size_t i = 0; i < m->host.inventory->n_devices; i++) {
                const PciDevice *dev = &m->host.inventory->devices[i];

                if (dev->n_vfs == 0 && policy_vf_pool(m->host.policy, dev))
                        reconcile_queue(&m->reconcile, dev->address);
        }
}

/* Processes of the orphan have exited: scans the node, and unblocks the devices on which none works any more. */
static bool handle_exits(Manager *m, size_t i) {
        Orphans *o = &m->jobs.orphans;
        size_t n_held = job_lock_split(&o->locks[i]);
        bool ended = job_lock_is_free(o->dir_fd, &o->locks[i]);
        JobLock lock;

        if (n_held == o->locks[i].n_devices && !ended)
                return false;
        /* Scan before the orphan is removed, so that its change of the number of VFs is not reported as contested. */
        (void) manager_scan(m);
        lock = o->locks[i];
        if (ended)
                o->locks[i] = o->locks[--o->n];
        else {
                o->locks[i].n_devices = n_held;
                /* The scan took them for devices of the orphan still. */
                (void) manager_refresh(m, &lock.devices[n_held], lock.n_devices - n_held, false);
        }
        for (size_t j = ended ? 0 : n_held; j < lock.n_devices; j++) {
                PciAddress device = lock.devices[j];

                if (orphans_have(o, device))
                        continue;
                manager_set_stuck(m, device, NULL);
                queue_device(m, device);
        }
        if (ended && orphan_changes_vfs(&lock))
                queue_pfs(m);
        manager_publish_devices(m, lock.devices, lock.n_devices);
        if (ended)
                job_lock_done(&lock);
        return true;
}

static int on_poll(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;
        Orphans *o = &m->jobs.orphans;
        bool any = false;

        for (size_t i = o->n; i-- > 0;)
                any = handle_exits(m, i) || any;
        if (any) {
                m->reconcile.released = true;
                reconcile_want(&m->reconcile);
        }
        if (o->n == 0) {
                o->timer = sd_event_source_disable_unref(o->timer);
                return 0;
        }
        (void) sd_event_source_set_time_relative(source, POLL_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int manager_follow_orphans(Manager *m) {
        int r;

        if (m->jobs.orphans.n == 0)
                return 0;
        r = sd_event_add_time_relative(m->event, &m->jobs.orphans.timer, CLOCK_MONOTONIC, POLL_USEC, 0, on_poll, m);
        return r < 0 ? log_error_errno(r, "Failed to watch the processes of an earlier daemon: %m") : 0;
}

bool manager_adopt_orphan(Manager *m, const Job *job) {
        Orphans *o = &m->jobs.orphans;
        JobLock lock;
        int r = o->dir_fd < 0 ? o->dir_fd : job_lock_find(o->dir_fd, job->id, &lock);

        for (int i = 0; r > 0 && i < DEATH_TRIES; i++) {
                (void) nanosleep(&(struct timespec) { .tv_nsec = DEATH_PAUSE }, NULL);
                job_lock_done(&lock);
                r = job_lock_find(o->dir_fd, job->id, &lock);
        }
        if (r <= 0)
                return false;
        if (ARRAY_RESERVE(o->locks, o->n) < 0) {
                job_lock_done(&lock);
                return false;
        }
        o->locks[o->n++] = lock;
        orphans_block_devices(m, &lock);
        if (!o->timer)
                (void) manager_follow_orphans(m);
        return true;
}
