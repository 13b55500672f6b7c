/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes of jobs outlive their daemon when the kernel does not let go of them: what they write may still come, after
 * their devices were given to somebody else. So each holds a lock on a file (host/joblock.h), and where one is held at
 * start by a process of the daemon before, its devices are stuck until it is gone.
 */

#include <errno.h>
#include <time.h>

#include "host/joblock.h"
#include "manager.h"
#include "util/log.h"
#include "util/strings.h"

#define LOOK_USEC  (2U * 1000U * 1000U)
/* A process that was killed with its daemon needs a moment to end; those that do not are looked for so often. */
#define FIND_TRIES 50
#define FIND_PAUSE (20L * 1000L * 1000L) /* nsec */

struct Orphans {
        int dir_fd;     /* negative: no locks can be made */
        bool unwritten; /* which has been said */
        JobLock *locks;
        size_t n;
        sd_event_source *timer;
};

size_t manager_orphans(const Manager *m) {
        return m->orphans->n;
}

bool manager_is_orphaned(const Manager *m, PciAddress address) {
        for (size_t i = 0; i < m->orphans->n; i++)
                for (size_t j = 0; j < m->orphans->locks[i].n_devices; j++)
                        if (pci_address_equal(m->orphans->locks[i].devices[j], address))
                                return true;
        return false;
}

int manager_orphaned_devices(const Manager *m, PciAddress **devices, size_t *n) {
        int r = 0;

        for (size_t i = 0; i < m->orphans->n; i++) {
                const JobLock *lock = &m->orphans->locks[i];

                for (size_t j = 0; r >= 0 && lock->fd >= 0 && j < lock->n_devices; j++)
                        r = pci_address_append(devices, n, lock->devices[j]);
        }
        return r;
}

static bool changes_vfs(const JobLock *lock) {
        return strncmp(lock->job, MANAGER_VERB_VFS " ", sizeof(MANAGER_VERB_VFS)) == 0;
}

const char *manager_find_orphan_at_vfs(const Manager *m) {
        for (size_t i = 0; i < m->orphans->n; i++)
                if (changes_vfs(&m->orphans->locks[i]))
                        return m->orphans->locks[i].job;
        return NULL;
}

static void withhold(Manager *m, const JobLock *lock) {
        const char *also = changes_vfs(lock) ? step_hang(&(Step){ .kind = STEP_NUMVFS }) : NULL;

        for (size_t i = 0; i < lock->n_devices; i++) {
                PciAddress device = lock->devices[i];
                _cleanup_free_ char *message = NULL;

                if (string_replace(
                            &message,
                            "%s is stuck: the kernel has not come back from a job of the daemon before, '%s'.%s%s",
                            PCI_ADDRESS_STR(device), QUOTABLE(lock->job), also ? " " : "", also ?: "") < 0)
                        continue;
                manager_record(m, HISTORY_STUCK, device, ledger_holder(m->node.ledger, device), "%s", message);
                (void) ledger_withhold(m->node.ledger, device, VERDICT_STUCK, message);
        }
}

static int find(Orphans *o) {
        int r = job_locks_find(o->dir_fd, &o->locks, &o->n);

        for (int i = 0; r >= 0 && o->n > 0 && i < FIND_TRIES; i++) {
                (void) nanosleep(&(struct timespec){ .tv_nsec = FIND_PAUSE }, NULL);
                o->locks = job_locks_free(o->locks, o->n);
                o->n = 0;
                r = job_locks_find(o->dir_fd, &o->locks, &o->n);
        }
        return r;
}

int manager_find_orphans(Manager *m, const char *state_dir) {
        Orphans *o = calloc(1, sizeof(*o));
        int r;

        if (!o)
                return -ENOMEM;
        m->orphans = o;
        o->dir_fd = job_locks_open(state_dir);
        r = o->dir_fd < 0 ? o->dir_fd : find(o);
        if (r < 0) {
                log_warning_errno(r, "Failed to look in %s/jobs for processes of the daemon before, ignoring: %m",
                                  state_dir);
                o->unwritten = o->dir_fd < 0;
        }
        for (size_t i = 0; i < o->n; i++) {
                m->last_job = MAX(m->last_job, o->locks[i].id);
                withhold(m, &o->locks[i]);
        }
        return 0;
}

void manager_forget_orphans(Manager *m) {
        if (!m->orphans)
                return;
        sd_event_source_disable_unref(m->orphans->timer);
        (void) job_locks_free(m->orphans->locks, m->orphans->n);
        cleanup_close(&m->orphans->dir_fd);
        free(m->orphans);
        m->orphans = NULL;
}

/* It gets what start would have given it, and its VFs. */
static void take_up(Manager *m, PciAddress address) {
        const PciDevice *dev = inventory_find(m->node.inventory, address);

        manager_arrived(m, address);
        for (size_t i = 0; dev && i < dev->n_vfs; i++)
                manager_arrived(m, dev->vfs[i]);
}

/* PFs that could be given no VFs as long as the kernel's lock for that was taken. */
static void take_up_pfs(Manager *m) {
        for (size_t i = 0; i < m->node.inventory->n_devices; i++) {
                const PciDevice *dev = &m->node.inventory->devices[i];

                if (dev->n_vfs == 0 && policy_vf_pool(m->node.policy, dev))
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
                ledger_unwithhold(m->node.ledger, device);
                manager_record(m, HISTORY_UNSTUCK, device, ledger_holder(m->node.ledger, device),
                               "%s is not stuck any more.", PCI_ADDRESS_STR(device));
                take_up(m, device);
        }
        if (changes_vfs(&lock))
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
                manager_live_job_gone(m);
                manager_attributes_job_gone(m);
                manager_go_on_starting(m);
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

int manager_lock_job(Manager *m, const Job *job) {
        Orphans *o = m->orphans;
        _cleanup_free_ PciAddress *devices = NULL;
        _cleanup_free_ char *text = NULL;
        size_t n = 0;
        int r;

        if (o->dir_fd < 0)
                return o->dir_fd;
        r = step_list_devices(job_steps(job), &devices, &n);
        if (r >= 0)
                r = string_replace(&text, "%s %s", job_verb(job), job_subject(job));
        if (r >= 0)
                r = job_lock_make(o->dir_fd, job_id(job), text, devices, n);
        if (r < 0 && !o->unwritten)
                log_warning_errno(r, "Failed to write which jobs have a process: should one hang, a restart does not "
                                     "know of it, ignoring: %m");
        o->unwritten = r < 0;
        return r;
}

void manager_unlock_job(Manager *m, const Job *job) {
        if (m->orphans->dir_fd >= 0)
                job_lock_remove(m->orphans->dir_fd, job_id(job));
}
