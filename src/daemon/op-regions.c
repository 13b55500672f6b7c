/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared memory regions of guests: checks and watches their files in /dev/shm. */

#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>

#include "facts.h"
#include "host/region.h"
#include "operations.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/strings.h"

/* Refuses a region whose file was removed: a new file would not be the memory that the members have mapped. */
static Verdict check_existing(const Manager *m, const SharedRegion *shared, Refusal *ret) {
        for (size_t i = 0; i < shared->n_members; i++)
                if (shared->members[i]->state == ALLOCATION_READY && region_verify(m->fs, &shared->region) == 0)
                        return refuse(ret, VERDICT_WRONG_STATE, NULL,
                                      "Release the allocation first; or take another name.",
                                      "The file of the shared memory '%s' of '%s' was removed.", shared->region.name,
                                      shared->members[i]->name);
        return VERDICT_NONE;
}

/* A server that listens before the region is created can only have mapped an old region of this name. */
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
                /* Other errors are left to the job, which fails to create the region and says why. */
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

        /* An event without a name is an overflow, or about the directory itself. */
        if (event->len > 0 && strncmp(event->name, REGION_FILE_PREFIX, strlen(REGION_FILE_PREFIX)) != 0)
                return 0;
        note_facts(m);
        note_turn(m);
        return 0;
}

void manager_follow_regions(Manager *m) {
        _cleanup_close_ int fd = sysfs_open(m->fs, "dev/shm", O_RDONLY | O_DIRECTORY);
        int r = fd < 0 ? fd : sd_event_add_inotify_fd(m->event, &m->watches.shm, fd, IN_DELETE | IN_MOVE, on_shm, m);

        /* Without /dev/shm there are no regions. */
        if (r < 0 && r != -ENOENT)
                log_warning_errno(r, "Failed to watch /dev/shm, a removal of shared memory is noticed on a rescan "
                                     "only, ignoring: %m");
}

/* Members of the group can create any number of hard links to a region, so the log is limited. */
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
        for (Step *s = job->steps->steps; s < job->steps->steps + job->steps->n; s++) {
                const SharedRegion *shared =
                        s->kind == STEP_REMOVE_REGION ? ledger_find_region(m->host.ledger, s->region.name) : NULL;

                if (shared && shared->n_members > 1)
                        s->skipped = true;
        }
}
