/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job that prepares the devices of an allocation. */

#include "inventory.h"
#include "operations.h"
#include "util/strings.h"

/* NULL: the job activates no partition. */
static Step *find_activation(const Job *job) {
        for (size_t i = 0; i < job->steps->n; i++)
                if (job->steps->steps[i].kind == STEP_ACTIVATE)
                        return &job->steps->steps[i];
        return NULL;
}

/* A partition is not activated while a guest has its GPUs. The guest may have started since the last report of Fabric
 * Manager, or the allocation is prepared again for another reason than its partition. After a boot, Fabric Manager may
 * start later than the daemon. */
static void check_activation(const Manager *m, const Allocation *a, const Job *job) {
        Step *s = find_activation(job);

        if (!s)
                return;
        s->skipped = a->domain || manager_check_use(m, a, USE_RELEASE, NULL) != VERDICT_NONE;
        s->may_lack = true;
}

static void prepare_begun(Manager *m, Job *job) {
        const Allocation *a = ledger_find(m->host.ledger, job->subject);

        if (job->resumed) {
                check_activation(m, a, job);
                return;
        }
        server_allocation_new(m->publisher.server, a->name);
        manager_publish_allocation(m, a);
        history_record_allocation(HISTORY_RESERVED, a, NULL);
}

static Verdict prepare_check(Manager *m, const Job *job, Refusal *ret) {
        const Allocation *a = ledger_find(m->host.ledger, job->subject);

        return manager_check_use_again(m, a, job->resumed ? USE_RESUME : USE_ALLOCATE, ret);
}

/* Only the partition is missing, because Fabric Manager is away. */
static bool lacks_partition(const Manager *m, const Job *job, const Allocation *a, JobResult result) {
        const Step *step = job_current(job);

        return step && step->may_lack && allocation_is_bound(a, m->host.inventory) &&
               (result == JOB_TIMEOUT || (result == JOB_FAILED && step_fabric_is_away(job->error)));
}

static JobResult prepare_finished(Manager *m, Job *job, JobResult result) {
        Allocation *a = ledger_find(m->host.ledger, job->subject);
        const Step *activation;

        /* After a timeout the child may still hold the device lock, and reading would block on it. */
        if (result != JOB_TIMEOUT)
                (void) manager_refresh_groups(m, a);
        if (lacks_partition(m, job, a, result)) {
                /* The next report of Fabric Manager has it tried again. */
                a->partition_lost = true;
                manager_set_state(m, a, ALLOCATION_READY, NULL);
                manager_check_promise(m, a);
                return result;
        }
        switch (result) {
        case JOB_DONE:
                if (!allocation_is_bound(a, m->host.inventory)) {
                        job_set_message(
                                job, "All steps succeeded, but a device is not bound to its VFIO driver, or lacks its "
                                     "vGPU.");
                        manager_set_state(m, a, ALLOCATION_FAILED, job->message);
                        return JOB_FAILED_DIRTY;
                }
                activation = find_activation(job);
                a->partition_lost = a->partition_lost && activation && activation->skipped;
                manager_set_state(m, a, ALLOCATION_READY, NULL);
                history_record_allocation(HISTORY_READY, a, NULL);
                manager_forget_attributes(m, a);
                manager_check_promise(m, a);
                m->reconcile.changes_due = m->reconcile.changes_due || allocation_is_changing(a);
                break;
        case JOB_FAILED:
                /* The steps of the interrupted job are not undone, so only a release restores the devices. */
                if (!job->resumed) {
                        manager_delete_allocation(m, a);
                        break;
                }
                /* fall through */
        default:
                manager_set_state(m, a, ALLOCATION_FAILED, job->message);
                break;
        }
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

Verdict manager_start_prepare(Manager *m, const Allocation *a, uint32_t *ret_job, Refusal *ret) {
        _cleanup_(cleanup_step_list_free) StepList *steps = NULL;
        Verdict v = manager_check_drivers(&m->host, a, ret);

        if (v != VERDICT_NONE)
                return v;
        if (steps_prepare(a, m->host.inventory, &steps) < 0 || steps_around_services(a, m->host.config, steps) < 0 ||
            steps_make_regions(a, m->host.config, steps) < 0 || steps_activate(a, m->host.config, steps) < 0)
                return refuse_no_memory(ret);
        return manager_start_job(m, &prepare_kind, a->name, TAKE_PTR(steps), NULL, 0, ret_job, ret);
}
