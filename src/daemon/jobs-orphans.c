/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Orphans. A process of a job that is blocked in the kernel outlives its daemon, and its write may take effect after
 * another job has the device. So the processes of a job hold a lock on a file (host/joblock.h). If a lock is held when
 * the daemon starts, or after the child of a job has died, its holder is an orphan, and the devices of the orphan stay
 * blocked until it exits. */

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "facts.h"
#include "util/log.h"
#include "util/strings.h"

/* A child that was killed together with its daemon takes a moment to exit. So while the search finds orphans, it is
 * repeated up to FIND_TRIES times, after a pause each time. */
#define FIND_TRIES 50
#define FIND_PAUSE (20L * 1000L * 1000L) /* nsec */

bool orphan_changes_vfs(const JobLock *lock) {
        return strncmp(lock->job, MANAGER_VERB_VFS " ", sizeof(MANAGER_VERB_VFS)) == 0;
}

const char *orphans_find_at_vfs(const Orphans *o) {
        for (size_t i = 0; i < o->n; i++)
                if (orphan_changes_vfs(&o->locks[i]))
                        return o->locks[i].job;
        return NULL;
}

static void orphans_block_devices(Manager *m, const JobLock *lock) {
        const char *also = orphan_changes_vfs(lock) ? step_hang(&(Step) { .kind = STEP_NUMVFS }) : NULL;

        for (size_t i = 0; i < lock->n_devices; i++) {
                PciAddress device = lock->devices[i];
                _cleanup_free_ char *message = NULL;

                if (string_replace(
                            &message,
                            "%s is stuck: the kernel has not returned from a job of an earlier daemon, '%s'.%s%s",
                            PCI_ADDRESS_STR(device), QUOTABLE(lock->job), also ? " " : "", also ?: "") < 0)
                        continue;
                manager_set_stuck(m, device, message);
        }
}

static int find(Orphans *o) {
        int r = job_locks_find(o->dir_fd, &o->locks, &o->n);

        for (int i = 0; r >= 0 && o->n > 0 && i < FIND_TRIES; i++) {
                (void) nanosleep(&(struct timespec) { .tv_nsec = FIND_PAUSE }, NULL);
                o->locks = job_locks_free(o->locks, o->n);
                o->n = 0;
                r = job_locks_find(o->dir_fd, &o->locks, &o->n);
        }
        return r;
}

void manager_find_orphans(Manager *m, const char *state_dir) {
        Orphans *o = &m->jobs.orphans;
        int r;

        o->dir_fd = job_locks_open(state_dir);
        r = o->dir_fd < 0 ? o->dir_fd : find(o);
        if (r < 0) {
                log_warning_errno(r, "Failed to look in %s/jobs for processes of an earlier daemon, ignoring: %m",
                                  state_dir);
                o->unwritten = o->dir_fd < 0;
        }
        for (size_t i = 0; i < o->n; i++) {
                m->jobs.last_id = MAX(m->jobs.last_id, o->locks[i].id);
                orphans_block_devices(m, &o->locks[i]);
        }
}

void orphans_done(Orphans *o) {
        sd_event_source_disable_unref(o->timer);
        (void) job_locks_free(o->locks, o->n);
        cleanup_close(&o->dir_fd);
}

/* The contents of a job's lock file. */
typedef struct LockText {
        char *job;
        unsigned *chains; /* number of the chain of each device */
} LockText;

static void cleanup_lock_text(LockText *t) {
        free(t->job);
        free(t->chains);
}

static int compare_addresses(const void *a, const void *b) {
        return pci_address_compare(*(const PciAddress *) a, *(const PciAddress *) b);
}

/* Makes the contents of the lock file of a job. devices must be sorted. Returns 0 or -ENOMEM. */
static int make_text(const Job *job, const PciAddress *devices, size_t n, LockText *ret) {
        ret->chains = calloc(n + 1, sizeof(*ret->chains));
        if (!ret->chains)
                return -ENOMEM;
        for (const Step *s = job->steps->steps; s < step_list_end(job->steps); s++) {
                const PciAddress *device =
                        s->chain > 0 ? bsearch(&s->device, devices, n, sizeof(*devices), compare_addresses) : NULL;

                if (device)
                        ret->chains[device - devices] = s->chain;
        }
        return string_replace(&ret->job, "%s %s", job->kind->verb, job->subject);
}

int orphans_lock_job(Orphans *o, const Job *job) {
        _cleanup_(cleanup_lock_text) LockText text = { 0 };
        _cleanup_free_ PciAddress *devices = NULL;
        size_t n = 0;
        int r;

        if (o->dir_fd < 0)
                return o->dir_fd;
        r = step_list_devices(job->steps, &devices, &n);
        if (r >= 0)
                r = make_text(job, devices, n, &text);
        if (r >= 0)
                r = job_lock_make(o->dir_fd, job->id, text.job, devices, text.chains, n);
        if (r < 0 && !o->unwritten)
                log_warning_errno(r, "Failed to write the lock of a job: if its process hangs, a restarted daemon does "
                                     "not find it, ignoring: %m");
        o->unwritten = r < 0;
        return r;
}

void orphans_narrow_lock(const Orphans *o, const Job *job) {
        _cleanup_(cleanup_lock_text) LockText text = { 0 };
        _cleanup_free_ PciAddress *devices = NULL;
        size_t n = 0;

        /* If this fails, the file still names all devices of the job, and a later daemon blocks them all. */
        if (o->dir_fd >= 0 && job_busy_devices(job, &devices, &n) >= 0 && make_text(job, devices, n, &text) >= 0)
                (void) job_lock_change(o->dir_fd, job->id, text.job, devices, text.chains, n);
}

void orphans_unlock_job(const Orphans *o, const Job *job) {
        if (o->dir_fd >= 0)
                job_lock_remove(o->dir_fd, job->id);
}

#define POLL_USEC   (2U * 1000U * 1000U)
/* The kernel kills the processes of a job when the child that started them dies. manager_adopt_orphan() blocks the
 * event loop for up to DEATH_TRIES pauses while they exit. */
#define DEATH_TRIES 50
#define DEATH_PAUSE (2L * 1000L * 1000L) /* nsec */

/* Notes the device and its VFs as new. */
static void queue_device(Manager *m, PciAddress address) {
        const PciDevice *dev = inventory_find(m->host.inventory, address);

        note_arrived(m, address);
        for (size_t i = 0; dev && i < dev->n_vfs; i++)
                note_arrived(m, dev->vfs[i]);
}

/* Notes as new the PFs that still need VFs: no VFs could be created while the orphan held the kernel's lock for adding
 * and removing VFs. */
static void queue_pfs(Manager *m) {
        for (size_t i = 0; i < m->host.inventory->n_devices; i++) {
                const PciDevice *dev = &m->host.inventory->devices[i];

                if (dev->n_vfs == 0 && policy_vf_pool(m->host.policy, dev))
                        note_arrived(m, dev->address);
        }
}

/* Checks whether processes of orphan i have exited. If any has, scans the node again, unblocks the devices on which no
 * orphan works any more, and returns true. */
static bool handle_exits(Manager *m, size_t i) {
        Orphans *o = &m->jobs.orphans;
        size_t n_held = job_lock_split(&o->locks[i]);
        bool ended = job_lock_is_free(o->dir_fd, &o->locks[i]);
        JobLock lock;

        if (n_held == o->locks[i].n_devices && !ended)
                return false;
        /* Scan while the orphan is still in the list, so that a change of the number of VFs by the orphan is not
         * reported as contested. */
        (void) manager_scan(m);
        lock = o->locks[i];
        if (ended)
                o->locks[i] = o->locks[--o->n];
        else {
                o->locks[i].n_devices = n_held;
                /* The scan did not read driver_override and the vGPU of these devices, because they still counted as
                 * devices of the orphan. */
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
        note_devices(m, lock.devices, lock.n_devices);
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
                m->notes.released = true;
                note_turn(m);
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
