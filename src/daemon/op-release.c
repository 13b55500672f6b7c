/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Promises taken back. */

#include <inttypes.h>

#include "manager.h"
#include "util/log.h"
#include "util/strings.h"

static void release_begun(Manager *m, const ManagerJob *mj);
static Verdict release_check(Manager *m, const ManagerJob *mj, Refusal *ret);
static JobResult release_finished(Manager *m, const ManagerJob *mj, JobResult result);

static const JobKind release_kind = {
        .verb = "release",
        .begun = release_begun,
        .check = release_check,
        .device_failed = manager_device_failed,
        .finished = release_finished,
};

/* One that was condemned before a restart stays where it is, as it does within one run. */
static void leave_out_quarantined(const Ledger *l, StepList *steps) {
        for (size_t i = steps->n; i-- > 0;)
                if (step_has_device(&steps->steps[i]) && ledger_find_quarantined(l, steps->steps[i].device))
                        step_list_remove(steps, i);
}

Verdict manager_start_release(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret) {
        AllocationState before = a->state;
        _cleanup_(cleanup_step_list_free) StepList *steps = NULL;
        Verdict v;
        int r;

        if (steps_release(a, m->host.inventory, manager_after_release(m, a), true, &steps) < 0 ||
            steps_clean(a, m->host.config, &steps) < 0 || steps_remove_regions(a, steps) < 0)
                return refuse_no_memory(ret);
        leave_out_quarantined(m->host.ledger, steps);
        /* Intent first: from the first write on a crash must lead to the release being finished. */
        ledger_set_state(m->host.ledger, a, ALLOCATION_RELEASING);
        r = store_save(m->store, a);
        if (r < 0) {
                ledger_set_state(m->host.ledger, a, before);
                return manager_refuse_storage(ret, r);
        }
        v = manager_start_job(m, &release_kind, a->name, TAKE_PTR(steps), NULL, 0, ret_job, ret);
        if (v != VERDICT_NONE) {
                manager_set_state(m, a, before, a->reason);
                return v;
        }
        manager_find_job(m, *ret_job)->before = before;
        server_allocation_changed(m->server, a->name);
        return VERDICT_NONE;
}

Verdict manager_check_tenancy(const Manager *m, const Allocation *a, const char *name, uint64_t generation,
                              Refusal *ret) {
        Verdict v = manager_check_may_change(m, ret);

        if (v != VERDICT_NONE)
                return v;
        if (!a)
                return refuse(ret, VERDICT_NO_SUCH_ALLOCATION, NULL, "'passthroughctl allocations' lists them.",
                              "There is no allocation '%s'.", QUOTABLE(name));
        if (a->generation != generation)
                return refuse(ret, VERDICT_STALE_GENERATION, NULL, "If you mean the present one, use its generation.",
                              "'%s' has generation %" PRIu64 " now, not %" PRIu64
                              ": it is not what that generation was given.",
                              name, a->generation, generation);
        /* One that was interrupted has no job while a process of an earlier daemon is at it. */
        v = manager_check_blocked(m, a, true, ret);
        if (v != VERDICT_NONE)
                return v;
        if (a->state != ALLOCATION_READY && a->state != ALLOCATION_FAILED)
                return refuse(ret, VERDICT_WRONG_STATE, NULL, "Wait for its job to end.", "'%s' is %s.", name,
                              allocation_state_to_string(a->state));
        /* When that is not known any more, who has a device open is. */
        if (a->domain && !m->guests_unread)
                return refuse(ret, VERDICT_BUSY, NULL, "Shut it down first.", "The domain '%s' runs with '%s'.",
                              QUOTABLE(a->domain), name);
        return manager_check_blocked(m, a, false, ret);
}

Verdict manager_release_now(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret) {
        Verdict v = manager_check_blocked(m, a, false, ret);

        if (v != VERDICT_NONE)
                return v;
        if (manager_refresh_groups(m, a) < 0)
                return refuse_no_memory(ret);
        manager_publish_allocation(m, a);
        v = manager_check_use(m, a, USE_RELEASE, ret);
        return v != VERDICT_NONE ? v : manager_start_release(m, a, ret_job, ret);
}

Verdict manager_release(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret) {
        Allocation *a;
        Verdict v;

        manager_look_for_guests(m);
        a = ledger_find(m->host.ledger, name);
        v = manager_check_tenancy(m, a, name, generation, ret);
        return v != VERDICT_NONE ? v : manager_release_now(m, a, ret_job, ret);
}

/* Only now: jobs with the same memory run one after the other, and who has it may have changed while this one waited.
 */
static void release_begun(Manager *m, const ManagerJob *mj) {
        manager_keep_shared(m, mj->job);
}

static Verdict release_check(Manager *m, const ManagerJob *mj, Refusal *ret) {
        const Allocation *a = ledger_find(m->host.ledger, job_subject(mj->job));

        if (manager_refresh_groups(m, a) < 0)
                return refuse_no_memory(ret);
        return manager_check_use(m, a, USE_RELEASE, ret);
}

static JobResult release_finished(Manager *m, const ManagerJob *mj, JobResult result) {
        Allocation *a = ledger_find(m->host.ledger, job_subject(mj->job));

        /* Past its deadline the child may still hold the lock that reading would wait for. */
        if (result != JOB_TIMEOUT)
                (void) manager_refresh_groups(m, a);
        switch (result) {
        case JOB_DONE:
                if (manager_quarantine_used(m, a) < 0 || mj->unsaved) {
                        job_set_message(mj->job, "A device is in quarantine, but that could not be written to disk. "
                                                 "Release it again.");
                        manager_set_state(m, a, ALLOCATION_FAILED, job_message(mj->job));
                        return JOB_FAILED_DIRTY;
                }
                log_full(LOG_INFO, 0, (&(LogFields){ .allocation = a->name }), "Released '%s'.", a->name);
                manager_forget(m, a);
                break;
        case JOB_FAILED:
                /* Nobody has to wait for a job that a restart took up again, so the reason must stay. */
                if (mj->resumed)
                        manager_set_state(m, a, ALLOCATION_FAILED, job_message(mj->job));
                else
                        manager_set_state(m, a, mj->before, a->reason);
                break;
        default:
                manager_set_state(m, a, ALLOCATION_FAILED, job_message(mj->job));
                break;
        }
        return result;
}
