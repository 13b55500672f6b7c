/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job that prepares the devices of an allocation. */

#include <errno.h>

#include "facts.h"
#include "operations.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

static AllocationDevice *find_vf(const Manager *m, Allocation *a, const Step *step) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(m->host.inventory, a->devices[i].address);

                if (dev && a->devices[i].is_vf && pci_address_equal(a->devices[i].physfn, step->device) &&
                    dev->vf_index == (int) step->vf.index)
                        return &a->devices[i];
        }
        return NULL;
}

void manager_found_attributes(Manager *m, const Job *job, const Step *step, const VfAttributes *found) {
        Allocation *a = ledger_find(m->host.ledger, job->subject);
        AllocationDevice *d = a ? find_vf(m, a, step) : NULL;

        /* With a baseline, this job continues an interrupted job. The attributes that it finds may be those that the
         * interrupted job wrote, so they are no baseline. */
        if (!d || d->has_baseline)
                return;
        d->baseline = *found;
        d->has_baseline = true;
        /* Drop the generated attributes that the PF does not offer. Those of the request stay, and make their step
         * fail. */
        vf_attributes_keep(&d->attributes, found->set | ~d->generated);
        d->generated &= found->set;
}

int manager_all_attributes_found(Manager *m, const Job *job) {
        Allocation *a = manager_find_subject(m, job);
        int r = store_save(m->store, a);

        if (r < 0)
                log_full(LOG_ERR, r, (&(LogFields) { .id = MESSAGE_LEDGER_WRITE, .allocation = a->name }),
                         "Failed to write the previous state of the devices of '%s' to the ledger: %m", a->name);
        note_allocation(m, a);
        return r;
}

/* After a failed try to activate a partition, the next one waits for RETRY_FIRST_SEC, and twice as long each time, up
 * to RETRY_MAX_SEC. A try follows a report of Fabric Manager, which is asked every 10 seconds. */
#define RETRY_FIRST_SEC 6U
#define RETRY_MAX_SEC   300U

static void prepare_begun(Manager *m, Job *job) {
        Allocation *a = manager_find_subject(m, job);

        a->status.prepared_by = job->id;
        if (job->resumed)
                return;
        note_allocation(m, a);
        note_allocation_event(m, HISTORY_RESERVED, a, NULL);
}

static Verdict prepare_check(Manager *m, const Job *job, Refusal *ret) {
        const Allocation *a = manager_find_subject(m, job);

        return manager_check_use_again(m, a, job->resumed ? USE_RESUME : USE_ALLOCATE, ret);
}

static bool activates(const Job *job) {
        return job->steps->n > 0 && job->steps->steps[job->steps->n - 1].kind == STEP_ACTIVATE;
}

/* Sets in the status of `a` whether its partition is active after the job. lacking: the step that failed with error, so
 * that the job did not activate the partition; NULL: no such step. */
static void note_partition(Allocation *a, const Job *job, const Step *lacking, int error) {
        if (!lacking) {
                if (activates(job))
                        allocation_keep_partition(a);
                return;
        }
        a->status.partition_delay =
                a->status.partition_delay == 0 ? RETRY_FIRST_SEC : MIN(2 * a->status.partition_delay, RETRY_MAX_SEC);
        a->status.partition_retry = clock_usec(CLOCK_MONOTONIC) + a->status.partition_delay * UINT64_C(1000000);
        /* Only Fabric Manager knows whether the partition is active now, because a guest has the devices. Its next
         * report tells. */
        if (lacking->kind == STEP_CHECK_UNUSED && error == -EBUSY)
                return;
        a->status.partition_lost =
                lacking->kind == STEP_CHECK_UNUSED ? PARTITION_USERS_UNKNOWN : step_cause(lacking, error);
}

/* Handles the end of the job, after which the devices must be bound. `a` becomes ready, also if the job went without
 * the step `lacking` (NULL: none). */
static JobResult prepare_ended(Manager *m, Job *job, Allocation *a, JobResult result, const Step *lacking) {
        if (!allocation_is_bound(a, m->host.inventory)) {
                if (result == JOB_DONE)
                        job_set_message(
                                job,
                                "All steps succeeded, but a device is not bound to its driver for guests, or lacks its "
                                "vGPU.");
                (void) manager_set_state(m, a, ALLOCATION_FAILED, job->message);
                return result == JOB_DONE ? JOB_FAILED_DIRTY : result;
        }
        note_partition(a, job, lacking, job->error);
        /* Keep a reason that has not changed, so that it is recorded only once. */
        (void) manager_set_state(m, a, ALLOCATION_READY, a->status.partition_lost ? a->reason : NULL);
        if (!a->status.partition_lost)
                note_allocation_event(m, HISTORY_READY, a, NULL);
        manager_forget_attributes(m, a);
        note_facts(m);
        m->notes.changes_due = m->notes.changes_due || allocation_is_changing(a);
        return result;
}

static JobResult prepare_finished(Manager *m, Job *job, JobResult result) {
        Allocation *a = manager_find_subject(m, job);
        const Step *lacking = job->lacking;

        /* After a timeout the child may still hold the device locks, on which a read would block. */
        if (result != JOB_TIMEOUT || lacking)
                (void) manager_refresh_groups(m, a);
        if (result == JOB_DONE || lacking)
                return prepare_ended(m, job, a, result, lacking);
        /* The undo of a resumed job leaves the steps of the interrupted job as they are, so only a release restores the
         * devices. */
        if (result == JOB_FAILED && !job->resumed)
                manager_delete_allocation(m, a);
        else
                (void) manager_set_state(m, a, ALLOCATION_FAILED, job->message);
        return result;
}

static const JobKind prepare_kind = {
        .verb = "prepare",
        .begun = prepare_begun,
        .check = prepare_check,
        .found = manager_found_attributes,
        .all_found = manager_all_attributes_found,
        .finished = prepare_finished,
};

Verdict manager_check_drivers(const HostState *host, const Allocation *a, Refusal *ret) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const char *driver = allocation_driver(a, &a->devices[i]);

                if (!inventory_may_have_driver(host->inventory, driver))
                        return policy_refuse_driver(&a->devices[i].address, driver, ret);
        }
        return VERDICT_NONE;
}

Verdict manager_start_prepare(Manager *m, const Allocation *a, bool again, uint32_t *ret_job, Refusal *ret) {
        _cleanup_(cleanup_step_list_free) StepList *steps = NULL;
        Verdict v = manager_check_drivers(&m->host, a, ret);

        if (v != VERDICT_NONE)
                return v;
        if (steps_prepare(a, m->host.inventory, &steps) < 0 || steps_around_services(a, m->host.config, steps) < 0 ||
            steps_make_regions(a, m->host.config, steps) < 0)
                return refuse_no_memory(ret);
        /* While a guest has the devices, do not activate their partition, and do not read their health. */
        if (!a->status.domain &&
            (steps_activate(a, m->host.config, again, steps) < 0 || steps_check_health(a, steps) < 0))
                return refuse_no_memory(ret);
        return manager_start_job(m, &prepare_kind, a->name, TAKE_PTR(steps), NULL, 0, ret_job, ret);
}
