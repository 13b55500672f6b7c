/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts that several operations and jobs share: checks, state changes, removal, shared memory. Also the operation
 * Accept. */

#include "facts.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>

#include "host/region.h"
#include "operations.h"
#include "plan/promise.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

Verdict manager_check_may_change(const Manager *m, Refusal *ret) {
        if (m->host.ledger->read_only)
                return refuse(ret, VERDICT_READ_ONLY, NULL, NULL, "%s", m->host.ledger->read_only);
        if (m->stopping)
                return refuse(ret, VERDICT_BUSY, NULL, "Try again when the daemon runs again.",
                              "The daemon is stopping.");
        return VERDICT_NONE;
}

Verdict refuse_storage(Refusal *ret, int error) {
        log_full(LOG_ERR, error, (&(LogFields) { .id = MESSAGE_LEDGER_WRITE }),
                 "A call is refused because the ledger could not be written: %m");
        return refuse(ret, VERDICT_READ_ONLY, NULL,
                      "Free disk space, or repair the file system of the state directory.",
                      "The ledger could not be written: %s.", strerror(-error));
}

static Verdict check_blocked(const Manager *m, PciAddress device, bool only_orphaned, Refusal *ret) {
        return only_orphaned && !orphans_have(&m->jobs.orphans, device)
                       ? VERDICT_NONE
                       : device_status_check_blocked(&m->host.status, device, ret);
}

/* A VF also counts as blocked when its PF is blocked, because a VF is changed through its PF. */
Verdict manager_check_blocked(const Manager *m, const Allocation *a, bool only_orphaned, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; v == VERDICT_NONE && i < a->n_devices; i++) {
                v = check_blocked(m, a->devices[i].address, only_orphaned, ret);
                if (v == VERDICT_NONE && a->devices[i].is_vf)
                        v = check_blocked(m, a->devices[i].physfn, only_orphaned, ret);
        }
        return v;
}

Verdict manager_next_generation(Manager *m, Allocation *a, Refusal *ret) {
        int r = store_next_generation(m->store, &a->generation);

        return r < 0 ? refuse_storage(ret, r) : VERDICT_NONE;
}

Allocation *manager_find_subject(const Manager *m, const Job *job) {
        Allocation *a = ledger_find(m->host.ledger, job->subject);

        assert(a);
        return a;
}

int manager_set_state(Manager *m, Allocation *a, AllocationState state, const char *reason) {
        int r;

        ledger_set_state(m->host.ledger, a, state);
        if (string_copy(&a->reason, reason) < 0)
                a->reason = NULL;
        r = m->host.ledger->read_only ? 0 : store_save(m->store, a);
        if (r < 0)
                log_full(LOG_ERR, r, (&(LogFields) { .id = MESSAGE_LEDGER_WRITE, .allocation = a->name }),
                         "Failed to write the state of '%s' to the ledger: %m", a->name);
        note_allocation(m, a);
        return r;
}

/* Marks `a` as failed, because a change of `a` was refused although the file may have that change. Only a release,
 * which removes the file, is possible then. */
static void set_uncertain(Manager *m, Allocation *a) {
        ledger_set_state(m->host.ledger, a, ALLOCATION_FAILED);
        a->hold = 0;
        a->lease_end = 0;
        (void) string_replace(&a->reason,
                              "The disk may have a change that was refused because it could not be written. "
                              "Release it.");
        note_allocation(m, a);
}

Verdict manager_begin_state(Manager *m, Allocation *a, AllocationState state, Refusal *ret) {
        AllocationState before = a->state;
        bool written;
        int r;

        ledger_set_state(m->host.ledger, a, state);
        r = store_save(m->store, a);
        if (r >= 0)
                return VERDICT_NONE;
        written = store_may_have(m->store, a);
        ledger_set_state(m->host.ledger, a, before);
        if (written && store_save(m->store, a) < 0)
                set_uncertain(m, a);
        return refuse_storage(ret, r);
}

Verdict manager_replace_allocation(Manager *m, Allocation *a, Allocation **b, Refusal *ret) {
        const Allocation *removed;
        Verdict v;
        int r;

        assert(a != *b && streq(a->name, (*b)->name));
        removed = ledger_remove(m->host.ledger, a->name);
        assert(removed == a);
        v = ledger_adopt(m->host.ledger, *b, ret);
        if (v != VERDICT_NONE) {
                (void) ledger_adopt(m->host.ledger, a, NULL);
                return v;
        }
        r = store_save(m->store, *b);
        /* The file may have the new or the old allocation. Unless the old one has more devices, keep the new one in
         * memory, so that none of the devices is allocated again. */
        if (r < 0 &&
            (!store_may_have(m->store, *b) || store_save(m->store, a) >= 0 || (*b)->n_devices < a->n_devices)) {
                (void) ledger_remove(m->host.ledger, a->name);
                (void) ledger_adopt(m->host.ledger, a, NULL);
                return refuse_storage(ret, r);
        }
        if (r < 0) {
                (*b)->status.halted = true;
                if (!allocation_is_changing(*b))
                        set_uncertain(m, *b);
                note_allocation(m, *b);
        }
        *b = a;
        return r < 0 ? refuse_storage(ret, r) : VERDICT_NONE;
}

void manager_delete_allocation(Manager *m, Allocation *a) {
        int r = a->state == ALLOCATION_RELEASING || a->state == ALLOCATION_RESERVED ? store_note_released(m->store, a)
                                                                                    : 0;

        if (r < 0)
                log_full(LOG_ERR, r, (&(LogFields) { .id = MESSAGE_LEDGER_WRITE, .allocation = a->name }),
                         "Failed to note the release of '%s', ignoring: %m", a->name);
        r = store_remove(m->store, a->name);

        if (r < 0) {
                log_full(LOG_ERR, r, (&(LogFields) { .id = MESSAGE_LEDGER_WRITE, .allocation = a->name }),
                         "Failed to remove '%s' from the ledger on disk: %m", a->name);
                ledger_set_state(m->host.ledger, a, ALLOCATION_FAILED);
                a->hold = 0;
                a->lease_end = 0;
                (void) string_replace(&a->reason, "It has ended, but its file could not be removed from the ledger. "
                                                  "Release it again.");
                note_allocation(m, a);
                return;
        }
        /* If the promise to `a` was broken, another allocation may lack the same resource, and get it from the release.
         * So check all promises. */
        m->notes.promises_unchecked = m->notes.promises_unchecked || a->reason;
        manager_forget_attributes(m, a);
        a = ledger_remove(m->host.ledger, a->name);
        note_removed(m, a);
        note_allocation_event(m, HISTORY_RELEASED, a, NULL);
        allocation_free(a);
}

/* Refuses when the host needs a device of `a` that is not on its allocation_driver(). That can change with a boot. */
static Verdict check_host_needs(const Manager *m, const Allocation *a, Refusal *ret) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(m->host.inventory, a->devices[i].address);
                const Pool *pool;

                if (streq_ptr(dev->driver, allocation_driver(a, &a->devices[i])))
                        continue;
                pool = a->devices[i].pool ? config_find_pool(m->host.config, a->devices[i].pool) : NULL;
                if (policy_host_needs(dev, pool) || m->host.inventory->critical_error ||
                    (pci_device_is_display(dev) && !a->forced))
                        return refuse(ret, VERDICT_HOST_CRITICAL, &dev->address, "Release the allocation.",
                                      "The host needs %s: %s", PCI_ADDRESS_STR(dev->address),
                                      dev->critical                          ?: policy_host_needs(dev, pool)
                                              ? "it has its memory online."
                                              : m->host.inventory->critical_error
                                              ?: dev->console ?: "it is the boot VGA.");
        }
        return VERDICT_NONE;
}

Verdict manager_check_hardware(const Manager *m, const Allocation *a, Refusal *ret) {
        HostView view = host_state_view(&m->host);
        Verdict v = promise_check_hardware(&view, a, ret);

        if (v == VERDICT_NONE)
                v = check_host_needs(m, a, ret);
        return v != VERDICT_NONE ? v : manager_check_use(m, a, USE_RESUME, ret);
}

Verdict manager_check_runnable(Manager *m, const char *name, Refusal *ret) {
        const Allocation *a;
        HostView view;

        if (manager_refresh_nodes(m) < 0)
                return refuse_no_memory(ret);
        note_turn(m);
        a = ledger_find(m->host.ledger, name);
        if (!a || a->state != ALLOCATION_READY || a->status.domain)
                return VERDICT_NONE;
        view = host_state_view(&m->host);
        return promise_check_kept(&view, a, ret);
}

/* The shared memory of guests: checks and watches the files of the regions in /dev/shm. */

/* Refuses a region whose file was removed: a new file would not be the memory that the other members have mapped. */
static Verdict check_existing(const Manager *m, const SharedRegion *shared, Refusal *ret) {
        for (size_t i = 0; i < shared->n_members; i++)
                if (shared->members[i]->state == ALLOCATION_READY && region_verify(m->fs, &shared->region) == 0)
                        return refuse(ret, VERDICT_WRONG_STATE, NULL,
                                      "Release the allocation first; or take another name.",
                                      "The file of the shared memory '%s' of '%s' was removed.", shared->region.name,
                                      shared->members[i]->name);
        return VERDICT_NONE;
}

/* Refuses a new region whose server listens already: the server can only have mapped an old region with the same
 * name. */
static Verdict check_server(const Manager *m, const Region *r, Refusal *ret) {
        const char *pattern = m->host.config->shared_memory_server;
        _cleanup_free_ char *path = pattern ? region_server(r, pattern) : NULL;
        _cleanup_close_ int fd = path ? sysfs_open(m->fs, path, O_PATH | O_NOFOLLOW) : -ENOENT;

        if (pattern && !path)
                return refuse_no_memory(ret);
        if (fd < 0)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_SHARED_MEMORY_TAKEN, NULL,
                      "Stop the server, remove its socket, and start it when the allocation is ready; or take another "
                      "name.",
                      "The shared memory '%s' cannot be created: a server listens at %s already, and would give guests "
                      "other memory.",
                      r->name, path);
}

Verdict manager_check_regions(const Manager *m, const Request *request, Refusal *ret) {
        for (size_t i = 0; i < request->n_regions; i++) {
                const Region *r = &request->regions[i];
                const SharedRegion *shared = ledger_find_region(m->host.ledger, r->name);
                char file[REGION_FILE_MAX];
                int k = shared ? 0 : region_verify(m->fs, r);

                if (shared && check_existing(m, shared, ret) != VERDICT_NONE)
                        return ret->verdict;
                /* On another error, the job will fail to create the region, and say why. */
                if (k == 1 || k == -EEXIST)
                        return refuse(ret, VERDICT_SHARED_MEMORY_TAKEN, NULL,
                                      "Find out who uses the file, then remove it; or take another name.",
                                      "The shared memory '%s' cannot be created: /dev/shm/%s exists already, and "
                                      "belongs to no allocation.",
                                      r->name, region_file(r, file));
                if (!shared && check_server(m, r, ret) != VERDICT_NONE)
                        return ret->verdict;
        }
        return VERDICT_NONE;
}

bool manager_has_regions(const Manager *m, const Allocation *a) {
        for (size_t i = 0; i < a->n_regions; i++)
                if (region_verify(m->fs, &a->regions[i]) != 1)
                        return false;
        return true;
}

void manager_look_at_regions(Manager *m, const Allocation *a) {
        for (size_t i = 0; i < a->n_regions; i++) {
                int r = region_verify(m->fs, &a->regions[i]);

                if (r >= 0 || r == -EEXIST)
                        ledger_set_region_removed(m->host.ledger, a->regions[i].name, r != 1);
        }
}

static int on_shm(sd_event_source *source, const struct inotify_event *event, void *userdata) {
        Manager *m = userdata;

        /* An event without a name means an overflow, or is about the directory itself. Both may mean that files were
         * removed. */
        if (event->len > 0 && strncmp(event->name, REGION_FILE_PREFIX, strlen(REGION_FILE_PREFIX)) != 0)
                return 0;
        note_facts(m);
        note_turn(m);
        return 0;
}

void manager_follow_regions(Manager *m) {
        _cleanup_close_ int fd = sysfs_open(m->fs, "dev/shm", O_RDONLY | O_DIRECTORY);
        int r = fd < 0 ? fd : sd_event_add_inotify_fd(m->event, &m->watches.shm, fd, IN_DELETE | IN_MOVE, on_shm, m);

        /* Without a /dev/shm, no region can exist whose removal must be watched. */
        if (r < 0 && r != -ENOENT)
                log_warning_errno(r, "Failed to watch /dev/shm, a removal of shared memory is noticed on a rescan "
                                     "only, ignoring: %m");
}

/* A member of SharedMemoryGroup= can create any number of hard links to a region, so only this many files are logged.
 */
#define REPORTED_MAX 10

void manager_report_unknown_regions(const Manager *m) {
        _cleanup_names_ char **names = NULL;
        size_t n = 0, unknown = 0;
        int r = regions_list(m->fs, &names, &n);

        if (r < 0)
                log_warning_errno(r, "Failed to look in /dev/shm for leftover shared memory, ignoring: %m");
        for (size_t i = 0; i < n; i++)
                if (!ledger_find_region(m->host.ledger, names[i]) && unknown++ < REPORTED_MAX)
                        log_warning("/dev/shm/" REGION_FILE_PREFIX "%s takes memory, but belongs to no allocation. "
                                    "Find out who uses it, then remove it.",
                                    QUOTABLE(names[i]));
        if (unknown > REPORTED_MAX)
                log_warning("%zu more such files in /dev/shm belong to no allocation.", unknown - REPORTED_MAX);
}

void manager_keep_shared(Manager *m, Job *job) {
        for (Step *s = job->steps->steps; s < step_list_end(job->steps); s++) {
                const SharedRegion *shared = s->kind == STEP_REMOVE_REGION
                                                     ? ledger_find_region(m->host.ledger, s->memory.region.name)
                                                     : NULL;

                if (shared && shared->n_members > 1)
                        s->skipped = true;
        }
}

/* Accept: at an admin's request, an allocation takes the cards that have replaced its devices. */

/* Notes an event for each replaced card. `a`: the allocation while it still has the identities of the old cards. */
static void record(Manager *m, const HostView *view, const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (plan_find_replacement(view, &a->devices[i]))
                        note_event(m, HISTORY_ACCEPTED, a->devices[i].address, a,
                                   "%s is a different card than before, and was accepted for '%s'.",
                                   PCI_ADDRESS_STR(a->devices[i].address), a->name);
}

static Verdict accept_replacements(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *b = allocation_copy(a);
        HostView view = host_state_view(&m->host);
        Allocation *accepted = b;
        Verdict v;

        if (!b || plan_accept(&view, b) < 0)
                return refuse_no_memory(ret);
        manager_note_serials(m, b);
        v = manager_check_hardware(m, b, ret);
        if (v == VERDICT_NONE)
                v = manager_check_drivers(&m->host, b, ret);
        if (v != VERDICT_NONE)
                return v;
        b->state = ALLOCATION_PREPARING;
        b->status.resume_refused = false;
        if (string_copy(&b->reason, NULL) < 0)
                return refuse_no_memory(ret);
        v = manager_replace_allocation(m, a, &b, ret);
        if (v != VERDICT_NONE)
                return v;
        /* `b` is the former allocation now, and still has the identities of the old cards. */
        record(m, &view, b);
        v = manager_start_prepare(m, accepted, true, ret_job, ret);
        if (v != VERDICT_NONE) {
                (void) manager_set_state(m, accepted, ALLOCATION_FAILED, ret->message);
                return v;
        }
        /* If the job fails, its undo would not restore the state before the allocation. Only a release does, as for a
         * resumed job. */
        job_queue_find(&m->jobs, *ret_job)->resumed = true;
        note_allocation(m, accepted);
        return VERDICT_NONE;
}

Verdict manager_accept(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret) {
        Allocation *a = ledger_find(m->host.ledger, name);
        HostView view;
        Verdict v = manager_check_tenancy(m, a, name, generation, ret);

        if (v == VERDICT_NONE)
                v = manager_check_blocked(m, a, false, ret);
        if (v == VERDICT_NONE)
                v = job_queue_check_room(&m->jobs, ret);
        if (v != VERDICT_NONE)
                return v;
        if (manager_refresh_host(m) < 0 || manager_refresh_groups(m, a) < 0)
                return refuse_no_memory(ret);
        view = host_state_view(&m->host);
        v = plan_check_accept(&view, a, ret);
        return v != VERDICT_NONE ? v : accept_replacements(m, a, ret_job, ret);
}
