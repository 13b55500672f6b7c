/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Release: starts the job that returns the devices of an allocation to the host. The allocation is removed when the job
 * has succeeded. */

#include <inttypes.h>

#include "facts.h"
#include "operations.h"
#include "util/strings.h"

static Verdict release_check(Manager *m, const Job *job, Refusal *ret);
static JobResult release_finished(Manager *m, Job *job, JobResult result);

static const JobKind release_kind = {
        .verb = "release",
        .begun = manager_keep_shared,
        .check = release_check,
        .device_failed = manager_device_failed,
        .finished = release_finished,
};

static bool is_interrupted(AllocationState state) {
        return state == ALLOCATION_PREPARING || state == ALLOCATION_RELEASING;
}

void manager_leave_out_quarantined(const Ledger *l, StepList *steps) {
        for (size_t i = steps->n; i-- > 0;)
                if (step_has_device(&steps->steps[i]) &&
                    ledger_find_quarantined(l, step_failed_device(&steps->steps[i])))
                        step_list_remove(steps, i);
}

Verdict manager_start_release(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret) {
        AllocationState before = a->state;
        _cleanup_(cleanup_step_list_free) StepList *steps = NULL;
        Verdict v;
        int r;

        if (steps_release(a, m->host.inventory, manager_after_release(&m->host, a), true, &steps) < 0 ||
            steps_reset(a, m->host.inventory, m->host.config, steps) < 0 || steps_clean(a, m->host.config, steps) < 0 ||
            steps_return_gpus(a, m->host.inventory, true, steps) < 0 || steps_remove_regions(a, steps) < 0 ||
            steps_deactivate(a, m->host.config, steps) < 0)
                return refuse_no_memory(ret);
        v = job_queue_check_room(&m->jobs, ret);
        if (v != VERDICT_NONE)
                return v;
        r = manager_quarantine_stuck(m, a);
        if (r < 0)
                return refuse_storage(ret, r);
        manager_leave_out_quarantined(m->host.ledger, steps);
        /* The reason says for what the interrupted allocation waited. That does not matter any more. */
        if (is_interrupted(before)) {
                free(a->reason);
                a->reason = NULL;
        }
        v = manager_begin_state(m, a, ALLOCATION_RELEASING, ret);
        if (v != VERDICT_NONE)
                return v;
        v = manager_start_job(m, &release_kind, a->name, TAKE_PTR(steps), NULL, 0, ret_job, ret);
        if (v != VERDICT_NONE) {
                (void) manager_set_state(m, a, before, a->reason);
                return v;
        }
        /* If the release fails, an interrupted allocation becomes failed: its work is not resumed. */
        job_queue_find(&m->jobs, *ret_job)->before = is_interrupted(before) ? ALLOCATION_FAILED : before;
        note_allocation(m, a);
        return VERDICT_NONE;
}

Verdict manager_check_generation(const Allocation *a, const char *name, uint64_t generation, Refusal *ret) {
        if (!a)
                return refuse(ret, VERDICT_NO_SUCH_ALLOCATION, NULL, "'passthroughctl allocations' lists them.",
                              "There is no allocation '%s'.", QUOTABLE(name));
        if (a->generation != generation)
                return refuse(ret, VERDICT_STALE_GENERATION, NULL, "To act on the present one, use its generation.",
                              "'%s' has generation %" PRIu64 " now, not %" PRIu64 ".", name, a->generation, generation);
        return VERDICT_NONE;
}

/* Refuses while an orphan works on a device of an interrupted allocation, which has no job for whose end the caller
 * could wait. */
static Verdict check_orphaned(const Manager *m, const Allocation *a, Refusal *ret) {
        return is_interrupted(a->state) ? manager_check_blocked(m, a, true, ret) : VERDICT_NONE;
}

Verdict manager_check_state(const Manager *m, const Allocation *a, const char *name, uint64_t generation,
                            Refusal *ret) {
        Verdict v = manager_check_may_change(m, ret);

        if (v == VERDICT_NONE)
                v = manager_check_generation(a, name, generation, ret);
        if (v == VERDICT_NONE)
                v = check_orphaned(m, a, ret);
        if (v != VERDICT_NONE)
                return v;
        if (a->state == ALLOCATION_RESERVED)
                return refuse(ret, VERDICT_WRONG_STATE, NULL, "Prepare it first: 'passthroughctl prepare'.",
                              "'%s' is reserved: its devices are not prepared yet.", name);
        if (a->state != ALLOCATION_READY && a->state != ALLOCATION_FAILED)
                return refuse(ret, VERDICT_WRONG_STATE, NULL, "Wait for its job to end.", "'%s' is %s.", name,
                              allocation_state_to_string(a->state));
        if (job_queue_find_subject(&m->jobs, name) > 0)
                return refuse(ret, VERDICT_WRONG_STATE, NULL, "Wait for its job to end.", "A job changes '%s'.", name);
        return VERDICT_NONE;
}

static Verdict check_domain(const Manager *m, const Allocation *a, Refusal *ret) {
        /* While it is unknown which guests run, manager_check_use() finds a guest by the devices that it has open. */
        if (a->status.domain && (manager_knows_guests(m) || a->n_devices == 0))
                return refuse(ret, VERDICT_BUSY, NULL, "Shut the domain down first.", "The domain '%s' runs with '%s'.",
                              QUOTABLE(a->status.domain), a->name);
        return VERDICT_NONE;
}

Verdict manager_check_tenancy(const Manager *m, const Allocation *a, const char *name, uint64_t generation,
                              Refusal *ret) {
        Verdict v = manager_check_state(m, a, name, generation, ret);

        return v != VERDICT_NONE ? v : check_domain(m, a, ret);
}

Verdict manager_check_releasable(const Manager *m, const Allocation *a, Refusal *ret) {
        Verdict v = VERDICT_NONE;
        size_t n = 0;

        for (size_t i = 0; v == VERDICT_NONE && i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];

                if (device_status_get(&m->host.status, d->address, DEVICE_STUCK))
                        continue;
                n++;
                v = device_status_check_blocked(&m->host.status, d->address, ret);
                if (v == VERDICT_NONE && d->is_vf)
                        v = device_status_check_blocked(&m->host.status, d->physfn, ret);
        }
        return n > 0 ? v : manager_check_blocked(m, a, false, ret);
}

Verdict manager_release_now(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret) {
        Verdict v = manager_check_releasable(m, a, ret);

        if (v != VERDICT_NONE)
                return v;
        if (manager_refresh_groups(m, a) < 0)
                return refuse_no_memory(ret);
        note_allocation(m, a);
        v = manager_check_use(m, a, USE_RELEASE, ret);
        return v != VERDICT_NONE ? v : manager_start_release(m, a, ret_job, ret);
}

/* Removes a lease. Its devices have stayed with the host, so no job is needed. */
static Verdict release_lease(Manager *m, Allocation *a, Refusal *ret) {
        Verdict v = manager_check_may_change(m, ret);

        if (v != VERDICT_NONE)
                return v;
        manager_delete_allocation(m, a);
        manager_follow_leases(m);
        return VERDICT_NONE;
}

Verdict manager_release(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret) {
        Allocation *a;
        Verdict v;

        a = ledger_find(m->host.ledger, name);
        *ret_job = 0;
        /* The caller may repeat a call whose reply was lost. */
        if (!a && store_was_released(m->store, name, generation))
                return VERDICT_NONE;
        if (a && a->generation == generation && a->state == ALLOCATION_RELEASING)
                *ret_job = job_queue_find_subject(&m->jobs, name);
        if (*ret_job > 0)
                return VERDICT_NONE;
        if (a && a->generation == generation && a->state == ALLOCATION_RESERVED)
                return release_lease(m, a, ret);
        /* While an orphan works on a device of an interrupted allocation, the work is not resumed. But the owner of the
         * allocation can release it; the release leaves that device in quarantine. */
        if (a && a->generation == generation && m->announced && check_orphaned(m, a, NULL) != VERDICT_NONE &&
            job_queue_find_subject(&m->jobs, name) == 0) {
                v = manager_check_may_change(m, ret);
                if (v == VERDICT_NONE)
                        v = check_domain(m, a, ret);
        } else
                v = manager_check_tenancy(m, a, name, generation, ret);
        return v != VERDICT_NONE ? v : manager_release_now(m, a, ret_job, ret);
}

static Verdict release_check(Manager *m, const Job *job, Refusal *ret) {
        return manager_check_use_again(m, manager_find_subject(m, job), USE_RELEASE, ret);
}

static JobResult release_finished(Manager *m, Job *job, JobResult result) {
        Allocation *a = manager_find_subject(m, job);

        /* After a timeout the child may still hold the device locks, on which a read would block. */
        if (result != JOB_TIMEOUT)
                (void) manager_refresh_groups(m, a);
        switch (result) {
        case JOB_DONE:
                if (manager_quarantine_used(m, a) < 0 || job->unsaved) {
                        job_set_message(job, "The quarantine of a device could not be written to disk. "
                                             "Release it again.");
                        (void) manager_set_state(m, a, ALLOCATION_FAILED, job->message);
                        return JOB_FAILED_DIRTY;
                }
                manager_delete_allocation(m, a);
                break;
        case JOB_FAILED:
                /* Store why the job failed: if no caller waits for it (a resumed job); if the allocation was failed or
                 * interrupted, and has no reason; or if a device is in quarantine, because with a reason no guest
                 * starts with the allocation. */
                if (job->resumed || (job->before == ALLOCATION_FAILED && !a->reason) ||
                    ledger_find_quarantined_of(m->host.ledger, a))
                        (void) manager_set_state(m, a, ALLOCATION_FAILED, job->message);
                else
                        (void) manager_set_state(m, a, job->before, a->reason);
                break;
        default:
                (void) manager_set_state(m, a, ALLOCATION_FAILED, job->message);
                break;
        }
        return result;
}
