/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The jobs of the manager, from manager_start_job() to the exit of the child. */

#include <errno.h>

#include "inventory.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

ManagerJob *job_queue_find(const JobQueue *q, uint32_t id) {
        for (size_t i = 0; i < q->n; i++)
                if (job_id(q->list[i].job) == id)
                        return &q->list[i];
        return NULL;
}

bool job_queue_has(const JobQueue *q, const char *subject) {
        for (size_t i = 0; i < q->n; i++)
                if (streq(job_subject(q->list[i].job), subject))
                        return true;
        return false;
}

size_t job_queue_active(const JobQueue *q) {
        size_t n = 0;

        for (size_t i = 0; i < q->n; i++)
                n += !job_is_stuck(q->list[i].job);
        return n;
}

void job_queue_done(JobQueue *q) {
        for (size_t i = 0; i < q->n; i++) {
                job_free(q->list[i].job);
                free(q->list[i].devices);
        }
        free(q->list);
        (void) free_names(q->stopped, q->n_stopped);
        orphans_done(&q->orphans);
}

static void unblock_devices(Manager *m, ManagerJob *mj) {
        for (size_t i = 0; i < mj->n_devices; i++)
                (void) device_status_set(&m->host.status, mj->devices[i], DEVICE_BUSY, NULL);
}

/* Publishes the allocation of the job and all its devices. */
static void publish(Manager *m, const Job *job) {
        const Allocation *a = ledger_find(m->host.ledger, job_subject(job));
        const ManagerJob *mj = job_queue_find(&m->jobs, job_id(job));
        _cleanup_free_ PciAddress *devices = NULL;
        size_t n = 0;

        if (a)
                manager_publish_allocation(m, a);
        (void) step_list_devices(job_steps(job), &devices, &n);
        for (size_t i = 0; i < mj->n_devices; i++)
                (void) pci_address_append(&devices, &n, mj->devices[i]);
        manager_publish_devices(m, devices, n);
}

/* While the job waited, a guest may have opened one of its devices. */
static int check_waited(Manager *m, const ManagerJob *mj) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        if (!mj->waited || !mj->kind->check || mj->kind->check(m, mj, &refusal) == VERDICT_NONE)
                return 0;
        job_set_message(mj->job, refusal.message);
        return -EBUSY;
}

/* Runs after the reply to the method call was sent, so that JobNew follows the reply. */
static int on_begin(Job *job, void *userdata) {
        Manager *m = userdata;
        const ManagerJob *mj = job_queue_find(&m->jobs, job_id(job));

        if (job_steps_total(job) > 0)
                job_set_lock(job, orphans_lock_job(&m->jobs.orphans, job));
        if (mj->kind->begun)
                mj->kind->begun(m, mj);
        server_job_new(m->publisher.server, job_id(job));
        return check_waited(m, mj);
}

static void on_step(Job *job, void *userdata) {
        Manager *m = userdata;

        log_full(LOG_DEBUG, 0, (&(LogFields){ .allocation = job_subject(job), .step = job_step(job) }), "Job %u: %s",
                 job_id(job), job_step(job));
        server_job_changed(m->publisher.server, job_id(job));
}

static void on_found(Job *job, const Step *step, const VfAttributes *found, void *userdata) {
        Manager *m = userdata;
        const ManagerJob *mj = job_queue_find(&m->jobs, job_id(job));

        mj->kind->found(m, mj, step, found);
}

static void on_device_failed(Job *job, const Step *step, const char *message, void *userdata) {
        Manager *m = userdata;
        const ManagerJob *mj = job_queue_find(&m->jobs, job_id(job));

        mj->kind->device_failed(m, mj, step, message);
}

static int on_active(Job *job _unused_, const Step *step, void *userdata) {
        Manager *m = userdata;

        return services_add(&m->jobs, step->to);
}

static void on_started(Job *job _unused_, const Step *step, bool asked, int error, void *userdata) {
        Manager *m = userdata;

        services_started(&m->jobs, m->store, step->to, asked, error);
}

static int on_all_found(Job *job, void *userdata) {
        Manager *m = userdata;
        const ManagerJob *mj = job_queue_find(&m->jobs, job_id(job));
        int r = mj->kind->all_found ? mj->kind->all_found(m, mj) : 0;

        return r < 0 ? r : services_save(&m->jobs, m->store);
}

/* The child is blocked in a write to sysfs: its device stays blocked until the write returns. */
static void mark_stuck(Manager *m, const Job *job) {
        const Step *step = job_current(job);
        const char *also = step ? step_hang(step) : NULL;
        _cleanup_free_ char *message = NULL;

        if (!step || !step_has_device(step) ||
            string_replace(&message, "%s is stuck: the kernel has not returned from the attempt to %s.%s%s",
                           PCI_ADDRESS_STR(step->device), job_step(job), also ? " " : "", also ?: "") < 0)
                return;
        history_record(HISTORY_STUCK, step->device, ledger_holder(m->host.ledger, step->device), "%s", message);
        (void) device_status_set(&m->host.status, step->device, DEVICE_STUCK, message);
}

/* Records a failure before finished(), which may free the allocation; a failure that finished() finds, after it. */
static JobResult finish(Manager *m, const ManagerJob *mj, JobResult result) {
        JobResult after;

        if (result != JOB_DONE)
                history_record_failure(m, mj);
        after = mj->kind->finished(m, mj, result);
        if (result == JOB_DONE && after != JOB_DONE)
                history_record_failure(m, mj);
        return after;
}

/* An earlier job stops or starts a service of this job, or creates or removes a shared memory region of it. */
static bool must_wait(const JobQueue *q, const Job *job) {
        for (size_t i = 0; i < q->n; i++) {
                const Job *other = q->list[i].job;

                if (other != job && !job_has_result(other) && job_id(other) < job_id(job) &&
                    (step_lists_share_service(job_steps(other), job_steps(job)) ||
                     step_lists_share_region(job_steps(other), job_steps(job))))
                        return true;
        }
        return false;
}

/* Starts the held jobs that no longer have to wait. */
static void begin_waiting(Manager *m) {
        for (size_t i = 0; i < m->jobs.n; i++)
                if (job_is_held(m->jobs.list[i].job) && !must_wait(&m->jobs, m->jobs.list[i].job))
                        (void) job_let_begin(m->jobs.list[i].job);
}

static void on_result(Job *job, JobResult result, void *userdata) {
        Manager *m = userdata;
        ManagerJob *mj = job_queue_find(&m->jobs, job_id(job));

        unblock_devices(m, mj);
        if (job_is_gone(job))
                orphans_unlock_job(&m->jobs.orphans, job);
        if (result == JOB_TIMEOUT)
                mark_stuck(m, job);
        result = finish(m, mj, result);
        if (result != JOB_DONE)
                log_full(LOG_ERR, 0,
                         (&(LogFields){
                                 .id = MESSAGE_JOB_FAILED, .allocation = job_subject(job), .step = job_step(job) }),
                         "Job %u, %s %s: %s", job_id(job), job_verb(job), job_subject(job), job_message(job));
        publish(m, job);
        /* finished() may have started another job and so moved the array. */
        mj = job_queue_find(&m->jobs, job_id(job));
        mj->starting = false;
        server_job_changed(m->publisher.server, job_id(job));
        server_job_removed(m->publisher.server, job_id(job), job_result_to_string(result));
        mj->timed_out = result == JOB_TIMEOUT;
        begin_waiting(m);
        /* A failed start-services job is tried again at the next start of the daemon only, to avoid a loop. */
        m->reconcile.services_due = m->reconcile.services_due || !streq(job_verb(job), MANAGER_VERB_START_SERVICES);
        reconcile_want(&m->reconcile);
}

/* The child of a timed-out job has exited: unblocks the device it was stuck on, and reads the job's devices again. */
static void release_stuck(Manager *m, const Job *job) {
        const Step *step = job_current(job);
        _cleanup_free_ PciAddress *devices = NULL;
        size_t n = 0;

        if (!step || !step_has_device(step))
                return;
        (void) device_status_set(&m->host.status, step->device, DEVICE_STUCK, NULL);
        history_record(HISTORY_UNSTUCK, step->device, ledger_holder(m->host.ledger, step->device),
                       "%s is no longer stuck.", PCI_ADDRESS_STR(step->device));
        (void) step_list_devices(job_steps(job), &devices, &n);
        (void) manager_refresh(m, devices, n, false);
        manager_publish_devices(m, devices, n);
}

static void on_gone(Job *job, void *userdata) {
        Manager *m = userdata;
        ManagerJob *mj = job_queue_find(&m->jobs, job_id(job));

        orphans_unlock_job(&m->jobs.orphans, job);
        if (mj->timed_out)
                release_stuck(m, job);
        job_free(job);
        free(mj->devices);
        *mj = m->jobs.list[--m->jobs.n];
        m->reconcile.released = true;
        reconcile_want(&m->reconcile);
}

static const JobCallbacks job_callbacks = {
        .on_begin = on_begin,
        .on_step = on_step,
        .on_found = on_found,
        .on_all_found = on_all_found,
        .on_active = on_active,
        .on_started = on_started,
        .on_device_failed = on_device_failed,
        .on_result = on_result,
        .on_gone = on_gone,
};

static int block_devices(Manager *m, ManagerJob *mj, const char *subject, const PciAddress *devices, size_t n) {
        _cleanup_free_ char *message = NULL;

        if (n == 0)
                return 0;
        mj->devices = calloc(n, sizeof(*mj->devices));
        if (!mj->devices || string_replace(&message, "A job is running on %s.", subject) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                if (device_status_set(&m->host.status, devices[i], DEVICE_BUSY, message) < 0)
                        return -ENOMEM;
                mj->devices[mj->n_devices++] = devices[i];
        }
        return 0;
}

Verdict job_queue_check_room(const JobQueue *q, Refusal *ret) {
        if (q->n + q->orphans.n < SERVER_JOBS_MAX)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_LIMIT, NULL, "Try again when a job has ended.",
                      "%u jobs are running, which is the limit.", SERVER_JOBS_MAX);
}

Verdict manager_start_job(Manager *m, const JobKind *kind, const char *subject, StepList *steps,
                          const PciAddress *devices, size_t n_devices, uint32_t *ret_id, Refusal *ret) {
        ManagerJob mj = { .kind = kind };
        int r;

        steps->timeout_sec = m->host.config->job_timeout;
        if (job_queue_check_room(&m->jobs, ret) != VERDICT_NONE) {
                step_list_free(steps);
                return VERDICT_LIMIT;
        }
        for (size_t i = 0; i < m->jobs.n; i++)
                if (job_is_stuck(m->jobs.list[i].job) && streq(job_subject(m->jobs.list[i].job), subject)) {
                        step_list_free(steps);
                        return refuse(ret, VERDICT_STUCK, NULL,
                                      "See the journal for the call it is stuck in; a reboot clears it.",
                                      "The kernel has not returned from the previous job on %s.", subject);
                }
        /* The job may unbind the GPUs, and then their minors are invalid. */
        for (size_t i = 0; i < steps->n; i++)
                manager_forget_gpu(m, steps->steps[i].device);
        r = job_new(m->jobs.last_id + 1, kind->verb, subject, steps, &mj.job);
        if (r >= 0 && ARRAY_RESERVE(m->jobs.list, m->jobs.n) < 0)
                r = -ENOMEM;
        if (r >= 0)
                r = block_devices(m, &mj, subject, devices, n_devices);
        if (r >= 0)
                r = job_start(mj.job, m->event, m->fs, m->host.config->job_timeout, &job_callbacks, m);
        mj.waited = r >= 0 && must_wait(&m->jobs, mj.job);
        if (mj.waited)
                r = job_hold(mj.job);
        if (r < 0) {
                unblock_devices(m, &mj);
                free(mj.devices);
                job_free(mj.job);
                return refuse(ret, VERDICT_LIMIT, NULL, NULL, "The job could not be started: %s.", strerror(-r));
        }
        *ret_id = ++m->jobs.last_id;
        m->jobs.list[m->jobs.n++] = mj;
        manager_publish_devices(m, mj.devices, mj.n_devices);
        return VERDICT_NONE;
}
