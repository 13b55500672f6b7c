/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory that guests share: whether its file is there and stays there, and which release is that of the last member. */

#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>

#include "host/region.h"
#include "manager.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/strings.h"

/* Made again it would be another one than what its members have mapped. */
static Verdict check_shared(const Manager *m, const SharedRegion *shared, Refusal *ret) {
        for (size_t i = 0; i < shared->n_members; i++)
                if (shared->members[i]->state == ALLOCATION_READY && region_look(m->fs, &shared->region) == 0)
                        return refuse(ret, VERDICT_WRONG_STATE, NULL, "Release it first; or take another name.",
                                      "The shared memory '%s' of '%s' is not there any more: somebody removed it.",
                                      shared->region.name, shared->members[i]->name);
        return VERDICT_NONE;
}

/* One that listens before the memory is made has no more than what an earlier one of the name has left. */
static Verdict check_server(const Manager *m, const Region *r, Refusal *ret) {
        const char *pattern = m->host.config->shared_memory_server;
        _cleanup_free_ char *path = pattern ? region_server(r, pattern) : NULL;
        _cleanup_close_ int fd = path ? sysfs_open(m->fs, path, O_PATH | O_NOFOLLOW) : -ENOENT;

        if (pattern && !path)
                return refuse_no_memory(ret);
        if (fd < 0)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_SHARED_MEMORY_TAKEN, NULL,
                      "End it, remove its socket, and start it when the allocation is ready; or take another name.",
                      "The shared memory '%s' cannot be made: there is a server at %s already, which would give guests "
                      "other memory.",
                      r->name, path);
}

Verdict manager_check_regions(const Manager *m, const Request *request, Refusal *ret) {
        for (size_t i = 0; i < request->n_regions; i++) {
                const Region *r = &request->regions[i];
                const SharedRegion *shared = ledger_find_region(m->host.ledger, r->name);
                char file[REGION_FILE_MAX];
                int k = shared ? 0 : region_look(m->fs, r);

                if (shared && check_shared(m, shared, ret) != VERDICT_NONE)
                        return ret->verdict;
                /* Why one cannot even be looked at the job says that cannot make it. */
                if (k == 1 || k == -EEXIST)
                        return refuse(ret, VERDICT_SHARED_MEMORY_TAKEN, NULL,
                                      "Look whose it is, then remove it; or take another name.",
                                      "The shared memory '%s' cannot be made: /dev/shm/%s is there already, and no "
                                      "allocation has it.",
                                      r->name, region_file(r, file));
                if (!shared && check_server(m, r, ret) != VERDICT_NONE)
                        return ret->verdict;
        }
        return VERDICT_NONE;
}

bool manager_has_regions(const Manager *m, const Allocation *a) {
        for (size_t i = 0; i < a->n_regions; i++)
                if (region_look(m->fs, &a->regions[i]) != 1)
                        return false;
        return true;
}

void manager_look_at_regions(Manager *m, const Allocation *a) {
        for (size_t i = 0; i < a->n_regions; i++) {
                int r = region_look(m->fs, &a->regions[i]);

                if (r >= 0 || r == -EEXIST)
                        ledger_set_region_removed(m->host.ledger, a->regions[i].name, r != 1);
        }
}

static int on_shm(sd_event_source *source, const struct inotify_event *event, void *userdata) {
        Manager *m = userdata;

        /* Events without a name were lost, or are of the directory. */
        if (event->len > 0 && strncmp(event->name, REGION_FILE_PREFIX, strlen(REGION_FILE_PREFIX)) != 0)
                return 0;
        m->promises_in_doubt = true;
        manager_check_promises(m);
        return 0;
}

void manager_follow_regions(Manager *m) {
        _cleanup_close_ int fd = sysfs_open(m->fs, "dev/shm", O_RDONLY | O_DIRECTORY);
        int r = fd < 0 ? fd : sd_event_add_inotify_fd(m->event, &m->shm, fd, IN_DELETE | IN_MOVE, on_shm, m);

        /* Without the directory no memory is shared. */
        if (r < 0 && r != -ENOENT)
                log_warning_errno(r, "Failed to watch /dev/shm, shared memory that is removed is noticed on a rescan "
                                     "only, ignoring: %m");
}

/* Members of the group can make any number, as links to a region. */
#define REPORTED_MAX 10

void manager_report_unknown_regions(const Manager *m) {
        char **names = NULL;
        size_t n = 0, unknown = 0;
        int r = regions_list(m->fs, &names, &n);

        if (r < 0)
                log_warning_errno(r, "Failed to look in /dev/shm for shared memory that is left over, ignoring: %m");
        for (size_t i = 0; i < n; i++)
                if (!ledger_find_region(m->host.ledger, names[i]) && unknown++ < REPORTED_MAX)
                        log_warning("/dev/shm/" REGION_FILE_PREFIX "%s takes memory, and no allocation has it. Look "
                                    "whose it is, then remove it.",
                                    QUOTABLE(names[i]));
        if (unknown > REPORTED_MAX)
                log_warning("No allocation has %zu more files of that kind in /dev/shm.", unknown - REPORTED_MAX);
        (void) free_names(names, n);
}

void manager_keep_shared(const Manager *m, Job *job) {
        const StepList *steps = job_steps(job);

        for (size_t i = 0; i < steps->n; i++) {
                const Step *s = &steps->steps[i];
                const SharedRegion *shared =
                        s->kind == STEP_REMOVE_REGION ? ledger_find_region(m->host.ledger, s->region.name) : NULL;

                if (shared && shared->n_members > 1)
                        job_leave_out(job, i);
        }
}
