/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The queue of jobs: what happens from manager_start_job() until the child of the job has exited. */

#include <assert.h>
#include <errno.h>

#include "facts.h"
#include "state.h"
#include "util/clock.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

Job *job_queue_find(const JobQueue *q, uint32_t id) {
        for (size_t i = 0; i < q->n; i++)
                if (q->list[i]->id == id)
                        return q->list[i];
        return NULL;
}

bool job_queue_has(const JobQueue *q, const char *subject) {
        for (size_t i = 0; i < q->n; i++)
                if (!q->list[i]->gone && streq(q->list[i]->subject, subject))
                        return true;
        return false;
}

uint32_t job_queue_find_subject(const JobQueue *q, const char *subject) {
        for (size_t i = 0; i < q->n; i++)
                if (!q->list[i]->has_result && streq(q->list[i]->subject, subject))
                        return q->list[i]->id;
        return 0;
}

static bool may_plug(const JobStuck *stuck, PciAddress device) {
        for (size_t i = 0; i < stuck->n_devices; i++)
                if (pci_address_equal(stuck->devices[i], device))
                        return !stuck->step || stuck->step->kind == STEP_PLUG || stuck->step->kind == STEP_UNPLUG;
        return false;
}

bool job_queue_may_plug(const JobQueue *q, PciAddress device) {
        for (size_t i = 0; i < q->n; i++)
                for (size_t j = 0; j < q->list[i]->n_stuck; j++)
                        if (may_plug(&q->list[i]->stuck[j], device))
                                return true;
        return orphans_have(&q->orphans, device);
}

void job_queue_drop_gone(JobQueue *q) {
        for (size_t i = q->n; i-- > 0;)
                if (q->list[i]->gone) {
                        job_free(q->list[i]);
                        q->list[i] = q->list[--q->n];
                }
}

size_t job_queue_active(const JobQueue *q) {
        size_t n = 0;

        for (size_t i = 0; i < q->n; i++)
                n += !job_is_stuck(q->list[i]);
        return n;
}

void job_queue_done(JobQueue *q) {
        for (size_t i = 0; i < q->n; i++)
                job_free(q->list[i]);
        free(q->list);
        (void) free_names(q->stopped, q->n_stopped);
        orphans_done(&q->orphans);
}

static void unblock_devices(Manager *m, const Job *job) {
        for (size_t i = 0; i < job->n_devices; i++)
                (void) device_status_set(&m->host.status, job->devices[i], DEVICE_BUSY, NULL);
}

/* Notes that the allocation and all devices of the job may have changed. */
static void note_subjects(Manager *m, const Job *job) {
        Allocation *a = ledger_find(m->host.ledger, job->subject);
        _cleanup_free_ PciAddress *devices = NULL;
        size_t n = 0;

        if (a)
                note_allocation(m, a);
        (void) step_list_devices(job->steps, &devices, &n);
        for (size_t i = 0; i < job->n_devices; i++)
                (void) pci_address_append(&devices, &n, job->devices[i]);
        note_devices(m, devices, n);
}

/* Checks again a job that had to wait: meanwhile a guest may have opened one of its devices. Returns 0 or a negative
 * errno. */
static int check_waited(Manager *m, Job *job) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        if (!job->waited || !job->kind->check || job->kind->check(m, job, &refusal) == VERDICT_NONE)
                return 0;
        job_set_message(job, refusal.message);
        return -EBUSY;
}

/* Begins the job. By now the reply to the method call was sent, so the signal JobNew follows the reply. Returns 0 or a
 * negative errno. */
static int on_begin(Job *job) {
        Manager *m = job->manager;
        int r;

        if (job->steps->n > 0)
                job->worker.lock = orphans_lock_job(&m->jobs.orphans, job);
        if (job->kind->begun)
                job->kind->begun(m, job);
        note_job(job, JOB_NOTE_BEGUN);
        r = check_waited(m, job);
        manager_note_gpus(m, job->steps);
        /* The job may unbind the GPUs, and then their minors are no longer valid. Forget them after the checks, which
         * need them. */
        for (size_t i = 0; r == 0 && i < job->steps->n; i++)
                manager_forget_gpu(m, job->steps->steps[i].device);
        return r;
}

static void report_device_failed(Job *job, const Step *step, const Report *report) {
        const VfAttributes *found = step_gives_attributes(step) ? &report->found : NULL;
        _cleanup_free_ char *message = report->status != 0 ? step_failure_with_status(step, report->status)
                                                           : step_failure(step, report->error, found);

        job->kind->device_failed(job->manager, job, step, message ?: "Out of memory.");
}

static bool all_is_saved(Manager *m, const Job *job) {
        return !job->unnoted && (!job->kind->all_found || job->kind->all_found(m, job) >= 0) &&
               services_save(&m->jobs, m->store) >= 0;
}

static void on_report(Job *job, Step *step, const Report *report) {
        Manager *m = job->manager;

        switch (report->kind) {
        case REPORT_STEP:
                log_full(LOG_DEBUG, 0, (&(LogFields) { .allocation = job->subject, .step = job->step }), "Job %u: %s",
                         job->id, job->step);
                break;
        case REPORT_DEVICE_FAILED:
                report_device_failed(job, step, report);
                break;
        case REPORT_FOUND:
                /* The child sets only the attributes that the PF offers. Drop the others here too, because the texts
                 * about the step name its attributes. */
                if (step->kind == STEP_SUPPORTED_ATTRIBUTES)
                        vf_attributes_keep(&step->vf.attributes, report->found.set);
                job->kind->found(m, job, step, &report->found);
                break;
        case REPORT_ACTIVE:
                job->unnoted = services_add(&m->jobs, step->service) < 0 || job->unnoted;
                break;
        case REPORT_STARTED:
        case REPORT_NOT_STARTED:
                services_started(&m->jobs, m->store, step->service, report->kind == REPORT_STARTED, report->error);
                break;
        case REPORT_HEALTH:
                manager_found_health(m, job, step, &report->health);
                break;
        case REPORT_PERSISTENT:
                manager_found_persistent(m, job, step);
                break;
        case REPORT_PLACED:
                job->kind->placed(m, job, step, report->message);
                break;
        case REPORT_ALL_FOUND:
                job_may_write(job, all_is_saved(m, job));
                break;
        default:
                break;
        }
        note_job(job, JOB_NOTE_CHANGED);
}

/* Handles a process of the job that was given up. Its devices are blocked until it has returned from the kernel. */
static void on_given_up(Job *job, const JobStuck *stuck) {
        const char *also = stuck->step ? step_hang(stuck->step) : NULL;
        _cleanup_free_ char *text = job_stuck_describe(stuck);
        const PciAddress *devices = stuck->devices;
        const size_t n = stuck->n_devices;
        Manager *m = job->manager;

        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *message = NULL;

                if (string_replace(&message, "%s is stuck: the kernel has not returned from the attempt to %s.%s%s",
                                   PCI_ADDRESS_STR(devices[i]), text ?: "begin", also ? " " : "", also ?: "") < 0)
                        continue;
                manager_set_stuck(m, devices[i], message);
        }
        note_devices(m, devices, n);
        note_job(job, JOB_NOTE_CHANGED);
}

/* Reads the devices of a job again after one of its processes was given up. The devices whose locks the process may
 * hold are marked as stuck, so manager_refresh() reads nothing of them that takes a device lock. */
static void refresh_late(Manager *m, const Job *job) {
        _cleanup_free_ PciAddress *devices = NULL;
        size_t n = 0;

        if (step_list_devices(job->steps, &devices, &n) == 0)
                (void) manager_refresh(m, devices, n, false);
}

/* Calls finished(), and records the failure of the job. A job that has failed already is recorded first, because
 * finished() may free the allocation; a failure that finished() detects is recorded afterwards. */
static JobResult finish(Manager *m, Job *job, JobResult result) {
        JobResult after;

        if (result != JOB_DONE)
                note_failure(m, job);
        after = job->kind->finished(m, job, result);
        if (result == JOB_DONE && after != JOB_DONE)
                note_failure(m, job);
        return after;
}

static PciAddress gpu_of(const Inventory *inv, PciAddress device) {
        const PciDevice *dev = inv ? inventory_find(inv, device) : NULL;

        return dev && dev->type == PCI_TYPE_VF ? dev->physfn : device;
}

/* Returns true when both lists create or remove a vGPU of the same GPU. The vGPUs of a GPU are read together, but not
 * while a job changes one of them. */
static bool share_vgpus(const Inventory *inv, const StepList *a, const StepList *b) {
        for (size_t i = 0; i < a->n; i++)
                for (size_t j = 0; a->steps[i].kind == STEP_VGPU && j < b->n; j++)
                        if (b->steps[j].kind == STEP_VGPU &&
                            pci_address_equal(gpu_of(inv, a->steps[i].device), gpu_of(inv, b->steps[j].device)))
                                return true;
        return false;
}

/* Returns true while an earlier job uses what this job needs: it stops or starts the same service, creates or removes
 * the same shared memory region, or changes a vGPU of the same GPU. */
static bool must_wait(const Manager *m, const Job *job) {
        const JobQueue *q = &m->jobs;

        for (size_t i = 0; i < q->n; i++) {
                const Job *other = q->list[i];

                if (other != job && !other->has_result && other->id < job->id &&
                    (step_lists_share_service(other->steps, job->steps) ||
                     step_lists_share_region(other->steps, job->steps) ||
                     share_vgpus(m->host.inventory, other->steps, job->steps)))
                        return true;
        }
        return false;
}

/* Starts the jobs that were held and no longer have to wait. */
static void begin_waiting(Manager *m) {
        for (size_t i = 0; i < m->jobs.n; i++)
                if (m->jobs.list[i]->held && !must_wait(m, m->jobs.list[i]))
                        (void) job_let_begin(m->jobs.list[i]);
}

static void count_time(JobQueue *q, const Job *job, JobResult result) {
        const char *verb = job->kind->verb, *text = job_result_to_string(result);
        size_t i = 0;

        while (i < q->n_times && !(streq(q->times[i].verb, verb) && streq(q->times[i].result, text)))
                i++;
        if (i == ELEMENTSOF(q->times))
                return;
        if (i == q->n_times)
                q->times[q->n_times++] = (JobTime) { .verb = verb, .result = text };
        q->times[i].n++;
        q->times[i].usec += clock_usec(CLOCK_MONOTONIC) - job->since;
}

static void release_lock(Manager *m, Job *job) {
        assert(!job->unlocked);
        if (!job->lost || !manager_adopt_orphan(m, job))
                orphans_unlock_job(&m->jobs.orphans, job);
        job->unlocked = true;
}

static void on_end(Job *job, JobResult result) {
        Manager *m = job->manager;

        unblock_devices(m, job);
        if (job_is_gone(job))
                release_lock(m, job);
        else
                orphans_narrow_lock(&m->jobs.orphans, job);
        if (result == JOB_TIMEOUT)
                refresh_late(m, job);
        result = finish(m, job, result);
        if (result != JOB_DONE)
                log_full(LOG_ERR, 0,
                         (&(LogFields) { .id = MESSAGE_JOB_FAILED,
                                         .device = job->n_devices > 0 ? job->subject : NULL,
                                         .allocation = job->n_devices > 0 ? NULL : job->subject,
                                         .step = job->step }),
                         "Job %u, %s %s: %s", job->id, job->kind->verb, job->subject, job->message);
        count_time(&m->jobs, job, result);
        note_subjects(m, job);
        job->starting = false;
        job->result = result;
        note_job(job, JOB_NOTE_CHANGED | JOB_NOTE_ENDED);
        begin_waiting(m);
        /* When a start-services job has failed, do not start the next one now, which would fail again and again. The
         * end of another job starts it, or the next start of the daemon. */
        m->notes.services_due = m->notes.services_due || !streq(job->kind->verb, MANAGER_VERB_START_SERVICES);
        note_turn(m);
}

/* Unblocks the devices on which the process was stuck, and reads the devices again. */
static void on_returned(Job *job, const JobStuck *stuck) {
        const PciAddress *devices = stuck->devices;
        const size_t n = stuck->n_devices;
        Manager *m = job->manager;

        for (size_t i = 0; i < n; i++)
                manager_set_stuck(m, devices[i], NULL);
        (void) manager_refresh(m, devices, n, false);
        note_devices(m, devices, n);
        note_job(job, JOB_NOTE_CHANGED);
        m->notes.released = true;
        note_turn(m);
}

static void on_gone(Job *job) {
        Manager *m = job->manager;

        if (!job->unlocked)
                release_lock(m, job);
        job->gone = true;
        m->notes.released = true;
        note_turn(m);
}

static const JobHandlers job_handlers = { on_begin, on_report, on_given_up, on_returned, on_end, on_gone };

static int block_devices(Manager *m, Job *job, const PciAddress *devices, size_t n) {
        _cleanup_free_ char *message = NULL;

        if (n == 0)
                return 0;
        job->devices = calloc(n, sizeof(*job->devices));
        if (!job->devices || string_replace(&message, "A job is running on %s.", job->subject) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                if (device_status_set(&m->host.status, devices[i], DEVICE_BUSY, message) < 0)
                        return -ENOMEM;
                job->devices[job->n_devices++] = devices[i];
        }
        return 0;
}

Verdict job_queue_check_room(const JobQueue *q, Refusal *ret) {
        if (q->n + q->orphans.n < SERVER_JOBS_MAX)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_LIMIT, NULL, "Try again when a job has ended.",
                      "%u jobs are running, which is the limit.", SERVER_JOBS_MAX);
}

/* Returns true when a process of the stuck job may still change a device of the steps. */
static bool is_in_the_way(const Job *stuck, const StepList *steps) {
        _cleanup_free_ PciAddress *devices = NULL;
        size_t n = 0;

        /* All processes that were given up have exited, and the child is about to exit. */
        if (stuck->n_stuck == 0)
                return false;
        /* A process that is stuck without a device, for example at a service, may hold any device lock. */
        if (job_busy_devices(stuck, &devices, &n) < 0 || n == 0)
                return true;
        for (size_t i = 0; i < steps->n; i++)
                for (size_t j = 0; step_has_device(&steps->steps[i]) && j < n; j++)
                        if (pci_address_equal(steps->steps[i].device, devices[j]))
                                return true;
        return false;
}

Verdict manager_start_job(Manager *m, const JobKind *kind, const char *subject, StepList *steps,
                          const PciAddress *devices, size_t n_devices, uint32_t *ret_id, Refusal *ret) {
        _cleanup_(cleanup_job_free) Job *job = NULL;
        int r;

        assert(kind->verb && kind->finished);
        steps->timeout_sec = m->host.config->job_timeout;
        steps->parallel = m->host.config->parallel_devices;
        if (steps_set_chains(steps, m->host.inventory) < 0) {
                step_list_free(steps);
                return refuse_no_memory(ret);
        }
        if (job_queue_check_room(&m->jobs, ret) != VERDICT_NONE) {
                step_list_free(steps);
                return VERDICT_LIMIT;
        }
        for (size_t i = 0; i < m->jobs.n; i++)
                if (job_is_stuck(m->jobs.list[i]) && streq(m->jobs.list[i]->subject, subject) &&
                    is_in_the_way(m->jobs.list[i], steps)) {
                        step_list_free(steps);
                        return refuse(ret, VERDICT_STUCK, NULL,
                                      "See the journal for the call it is stuck in; a reboot clears it.",
                                      "The kernel has not returned from the previous job on %s.", subject);
                }
        job = job_new(m, kind, m->jobs.last_id + 1, subject, steps);
        if (!job || ARRAY_RESERVE(m->jobs.list, m->jobs.n) < 0)
                return refuse_no_memory(ret);
        r = block_devices(m, job, devices, n_devices);
        if (r >= 0)
                r = job_start(job, &job_handlers);
        job->waited = r >= 0 && must_wait(m, job);
        if (job->waited)
                r = job_hold(job);
        if (r < 0) {
                unblock_devices(m, job);
                return refuse(ret, VERDICT_LIMIT, NULL, NULL, "The job could not be started: %s.", strerror(-r));
        }
        *ret_id = ++m->jobs.last_id;
        m->jobs.list[m->jobs.n++] = job;
        note_devices(m, job->devices, job->n_devices);
        TAKE_PTR(job);
        return VERDICT_NONE;
}

void manager_set_stuck(Manager *m, PciAddress device, const char *message) {
        const Allocation *holder = ledger_holder(m->host.ledger, device);

        (void) device_status_set(&m->host.status, device, DEVICE_STUCK, message);
        if (message)
                note_event(m, HISTORY_STUCK, device, holder, "%s", message);
        else
                note_event(m, HISTORY_UNSTUCK, device, holder, "%s is no longer stuck.", PCI_ADDRESS_STR(device));
}
