/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the steps of a job in a child process. */

#include <assert.h>
#include <errno.h>
#include <limits.h>

#include "bus/names.h"
#include "jobs-job.h"
#include "state.h"
#include "util/clock.h"
#include "util/strings.h"
#include "util/stringtable.h"

void job_note_begun(Job *job, const Step *step, Doing doing) {
        const StepList *steps = job->steps;
        const bool alone = doing == DOING_READ || step->chain == 0 || steps->parallel <= 1;

        if (alone)
                memset(job->ongoing, 0, (steps->n_chains + 1) * sizeof(*job->ongoing));
        job->ongoing[0] = (Ongoing) { 0 };
        job->ongoing[alone ? 0 : step->chain] = (Ongoing) { step, doing };
}

void job_note_ended(Job *job, const Step *step) {
        job->ongoing[0] = job->ongoing[step->chain] = (Ongoing) { 0 };
}

/* Adds what the job does in this step to the list, in which each device occurs once. Returns 0 or -ENOMEM. */
static int add_device_step(DeviceStep **list, size_t *n, const char *prefix, const Step *step, Doing doing) {
        _cleanup_free_ char *text = NULL;
        DeviceStep new;

        if (!step || !step_has_device(step))
                return 0;
        for (size_t i = 0; i < *n; i++)
                if (pci_address_equal((*list)[i].device, step->device))
                        return 0;
        text = job_stuck_describe(&(JobStuck) { .step = step, .doing = doing });
        new = (DeviceStep) { step->device, text ? string_format("%s%s", prefix, text) : NULL };
        if (!new.text || ARRAY_RESERVE(*list, *n) < 0) {
                free(new.text);
                return -ENOMEM;
        }
        (*list)[(*n)++] = new;
        return 0;
}

static int compare_device_steps(const void *a, const void *b) {
        return pci_address_compare(((const DeviceStep *) a)->device, ((const DeviceStep *) b)->device);
}

int job_device_steps(const Job *job, DeviceStep **ret, size_t *ret_n) {
        DeviceStep *list = NULL;
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && i < job->n_stuck; i++)
                r = add_device_step(&list, &n, "stuck: ", job->stuck[i].step, job->stuck[i].doing);
        for (size_t i = 0; r == 0 && !job->has_result && i <= job->steps->n_chains; i++)
                r = add_device_step(&list, &n, "", job->ongoing[i].step, job->ongoing[i].doing);
        if (r < 0) {
                device_steps_free(list, n);
                return r;
        }
        if (n > 0)
                qsort(list, n, sizeof(*list), compare_device_steps);
        *ret = list;
        *ret_n = n;
        return 0;
}

/* At the limit of a step, the child gives up the process that runs it. If the child has not reported the end of the run
 * this long after the limits of all steps and of their undo, the daemon kills it. */
#define GRACE_SEC   10U
/* The exit status of the child is this plus the RunResult. Any other status, such as EXIT_FAILURE, means that the run
 * was cut short. */
#define EXIT_RESULT 10

static const JobResult results[] = {
        [RUN_DONE] = JOB_DONE,
        [RUN_FAILED] = JOB_FAILED,
        [RUN_DIRTY] = JOB_FAILED_DIRTY,
        [RUN_TIMED_OUT] = JOB_TIMEOUT,
};

static const char *const job_result_table[_JOB_RESULT_MAX] = {
        [JOB_DONE] = JOB_RESULT_DONE,
        [JOB_FAILED] = JOB_RESULT_FAILED,
        [JOB_FAILED_DIRTY] = JOB_RESULT_FAILED,
        [JOB_TIMEOUT] = JOB_RESULT_TIMEOUT,
};
DEFINE_STRING_TABLE_TO_STRING(job_result, JobResult, _JOB_RESULT_MAX)

Job *job_new(Manager *m, const struct JobKind *kind, uint32_t id, const char *subject, StepList *steps) {
        _cleanup_(cleanup_job_free) Job *job = calloc(1, sizeof(*job));

        if (!job) {
                step_list_free(steps);
                return NULL;
        }
        *job = (Job) { .manager = m,
                       .kind = kind,
                       .id = id,
                       .since = clock_usec(CLOCK_MONOTONIC),
                       .steps = steps,
                       .current = steps->n,
                       .worker = WORKER("passthroughd-job") };
        job->begun = calloc(steps->n + 1, sizeof(*job->begun));
        job->ongoing = calloc(steps->n_chains + 1, sizeof(*job->ongoing));
        if (!job->begun || !job->ongoing || string_copy(&job->subject, subject) < 0 ||
            string_copy(&job->step, "") < 0 || string_copy(&job->message, "") < 0)
                return NULL;
        return TAKE_PTR(job);
}

Job *job_free(Job *job) {
        if (!job)
                return NULL;
        worker_done(&job->worker);
        sd_event_source_disable_unref(job->defer);
        step_list_free(job->steps);
        free(job->subject);
        free(job->step);
        free(job->counted_step);
        free(job->message);
        free(job->devices);
        free(job->begun);
        free(job->ongoing);
        for (size_t i = 0; i < job->n_stuck; i++)
                free(job->stuck[i].devices);
        free(job->stuck);
        free(job);
        return NULL;
}

void job_set_message(Job *job, const char *message) {
        (void) string_copy(&job->message, message);
}

unsigned job_steps_done(const Job *job) {
        return job->has_result && job->n_begun == job->steps->n ? job->n_begun : job->n_begun - (job->n_begun > 0);
}

static void set_result(Job *job, JobResult result) {
        if (job->has_result)
                return;
        job->has_result = true;
        /* Steps that are skipped count as done. */
        if (result == JOB_DONE)
                job->n_begun = (unsigned) job->steps->n;
        worker_drop_deadline(&job->worker);
        job->handlers->ended(job, result);
}

void job_may_write(Job *job, bool may) {
        /* A child that may not continue exits without having written anything to the hardware. */
        if (!worker_continue(&job->worker, may))
                job_set_message(job, "The state to restore afterwards could not be written to disk.");
}

static char *failure(const Step *step, const Report *report) {
        const char *representor = report->representor[0] ? report->representor : NULL;

        if (report->message[0])
                return strdup(report->message);
        if (!step_gives_attributes(step))
                return step_failure(step, report->error, NULL);
        if (report->switchdev)
                return step_failure_in_switchdev(step, report->error, &report->found, representor);
        return step_failure(step, report->error, &report->found);
}

/* Replaces *s by text. Keeps *s if text is NULL, because memory ran out. Takes ownership of text. */
static void replace(char **s, char *text) {
        if (!text)
                return;
        free(*s);
        *s = text;
}

static char *describe(const Step *s, Doing doing) {
        _cleanup_free_ char *text = NULL;

        switch (doing) {
        case DOING_READ:
                return string_format(s->kind == STEP_BIND     ? "check that %s answers"
                                     : s->kind == STEP_UNBIND ? "read persistence mode of %s"
                                                              : "read the attributes of the VFs of %s",
                                     PCI_ADDRESS_STR(s->device));
        case DOING_UNDO:
                text = step_describe(s);
                return text ? string_format("undo: %s", text) : NULL;
        case DOING_STEP:
                break;
        }
        return step_describe(s);
}

char *job_stuck_describe(const JobStuck *stuck) {
        return stuck->step ? describe(stuck->step, stuck->doing) : strdup("begin");
}

/* Returns true when a process that is stuck in the step `at` may hold the device lock of the device of `s`. A reset of
 * the bus holds the locks of all functions of the slot that are not VFs. A step at a PF may change or remove its VFs.
 * Any reset holds the lock of the bridge, and then no other device of the chain can be reset. */
static bool is_locked_with(const Inventory *inv, const Step *s, const Step *at) {
        const PciAddress device = s->device, stuck = at->device;
        const PciDevice *a = inventory_find(inv, device), *b = inventory_find(inv, stuck);

        if (pci_address_equal(device, stuck) || (at->kind == STEP_RESET && at->chain > 0 && s->chain == at->chain))
                return true;
        if (!a || !b || b->type == PCI_TYPE_VF)
                return false;
        if (a->type == PCI_TYPE_VF)
                return pci_address_equal(a->physfn, stuck);
        return device.domain == stuck.domain && device.bus == stuck.bus && device.slot == stuck.slot;
}

/* Finds the devices whose locks the stuck process may hold. They are found once and stored, because a scan may change
 * the inventory before the process exits. */
static int find_stuck_devices(const Job *job, JobStuck *stuck) {
        const Inventory *inv = job->manager->host.inventory;
        const Step *at = stuck->step;
        int r = 0;

        if (!at)
                return step_list_devices(job->steps, &stuck->devices, &stuck->n_devices);
        /* A step with may_lack only asks about its device, and holds no device lock. */
        if (at->may_lack || !step_has_device(at))
                return 0;
        for (size_t i = 0; r == 0 && i < job->steps->n; i++)
                if (step_has_device(&job->steps->steps[i]) && is_locked_with(inv, &job->steps->steps[i], at))
                        r = pci_address_append(&stuck->devices, &stuck->n_devices, job->steps->steps[i].device);
        pci_addresses_sort(stuck->devices, &stuck->n_devices);
        return r;
}

static void add_stuck(Job *job, const Step *step, Doing doing) {
        JobStuck stuck = { .step = step, .doing = doing };

        if (ARRAY_RESERVE(job->stuck, job->n_stuck) < 0)
                return;
        (void) find_stuck_devices(job, &stuck);
        job->stuck[job->n_stuck++] = stuck;
        job->handlers->given_up(job, &stuck);
}

static void remove_stuck(Job *job, size_t i) {
        JobStuck stuck;

        assert(i < job->n_stuck);
        stuck = job->stuck[i];
        job->stuck[i] = job->stuck[--job->n_stuck];
        job->handlers->returned(job, &stuck);
        free(stuck.devices);
}

static void on_given_up(Job *job, const Step *step, const Report *report) {
        _cleanup_free_ char *text = describe(step, (Doing) report->doing);

        job_note_ended(job, step);
        if (report->status == RUN_DIRTY)
                (void) string_replace(&job->message, "The process of the job died in the attempt to %s.", text ?: "");
        else if (report->status == RUN_TIMED_OUT)
                (void) string_replace(&job->message,
                                      "Timed out in the attempt to %s; the kernel may still be busy with it.",
                                      text ?: "");
        /* RUN_DIRTY: the process has died, so it is not stuck. */
        if (report->status != RUN_DIRTY)
                add_stuck(job, step, (Doing) report->doing);
}

static void on_returned(Job *job, const Step *step, const Report *report) {
        for (size_t i = 0; i < job->n_stuck; i++)
                if (job->stuck[i].step == step && job->stuck[i].doing == (Doing) report->doing) {
                        remove_stuck(job, i);
                        return;
                }
}

/* Returns true for a report that still matters when the job has its result. All other reports are dropped then: no step
 * is noted as begun, and REPORT_ALL_FOUND gets no answer, so the child writes nothing. */
static bool counts_after_result(const Report *report) {
        return report->kind == REPORT_FAILED || report->kind == REPORT_UNDO_FAILED ||
               report->kind == REPORT_DEVICE_FAILED || report->kind == REPORT_GIVEN_UP ||
               report->kind == REPORT_RETURNED;
}

static void on_report(Job *job, const Report *report) {
        _cleanup_free_ char *undo = NULL;
        Step *step;

        if (report->step >= job->steps->n || (job->has_result && !counts_after_result(report)))
                return;
        step = &job->steps->steps[report->step];
        switch (report->kind) {
        case REPORT_STEP:
                job->current = report->step;
                job->n_begun += !job->begun[report->step];
                job->begun[report->step] = true;
                replace(&job->step, step_describe(step));
                (void) string_copy(&job->counted_step, job->step);
                job_note_begun(job, step, DOING_STEP);
                break;
        case REPORT_READING:
                job->current = report->step;
                replace(&job->step, describe(step, DOING_READ));
                job_note_begun(job, step, DOING_READ);
                break;
        case REPORT_UNDO:
                job_note_begun(job, step, DOING_UNDO);
                break;
        case REPORT_CHAIN_ENDED:
                job_note_ended(job, step);
                break;
        case REPORT_FAILED:
                /* When several chains fail, the message of the job is about the first failure. */
                if (*job->message)
                        break;
                job->error = report->error;
                replace(&job->message, failure(step, report));
                break;
        case REPORT_LACKING:
                job->error = report->error;
                job->lacking = step;
                break;
        case REPORT_IOMMUFD:
                job->iommufd = true;
                break;
        case REPORT_UNDO_FAILED:
                undo = step_undo_failure(step, report->error);
                if (undo)
                        (void) string_replace(&job->message, "%s %s", job->message, undo);
                break;
        case REPORT_GIVEN_UP:
                on_given_up(job, step, report);
                return;
        case REPORT_RETURNED:
                on_returned(job, step, report);
                return;
        case REPORT_ENDED:
                if ((size_t) report->status < ELEMENTSOF(results))
                        set_result(job, results[report->status]);
                return;
        default:
                break;
        }
        job->handlers->reported(job, step, report);
}

_Static_assert(2 * sizeof(Report) <= PIPE_BUF, "writes of up to PIPE_BUF bytes to a pipe are atomic");

/* Returns true for reports that tell clients nothing. The child writes such a report together with the next one. */
static bool is_quiet(const Report *report) {
        return report->kind == REPORT_FOUND || report->kind == REPORT_HEALTH;
}

static bool read_report(Job *job, Report *ret) {
        if (!worker_read(&job->worker, ret, sizeof(*ret)))
                return false;
        on_report(job, ret);
        return true;
}

/* Handles one report per turn of the loop, so that clients see each step. A quiet report tells clients nothing, so the
 * report after it is handled in the same turn. */
static void on_readable(void *userdata) {
        Report report;

        while (read_report(userdata, &report) && is_quiet(&report))
                continue;
}

static void on_exit_of_child(const siginfo_t *end, void *userdata) {
        Job *job = userdata;
        JobResult result = JOB_FAILED_DIRTY;
        Report report;

        job->lost = job->lost || end->si_code != CLD_EXITED;
        while (read_report(job, &report))
                continue;
        if (end->si_code == CLD_EXITED && end->si_status >= EXIT_RESULT &&
            (size_t) end->si_status - EXIT_RESULT < ELEMENTSOF(results))
                result = results[end->si_status - EXIT_RESULT];
        else if (!*job->message)
                (void) string_replace(&job->message, "The process of the job died in the attempt to %s.",
                                      *job->step ? job->step : "begin");
        set_result(job, result);
        while (job->n_stuck > 0)
                remove_stuck(job, job->n_stuck - 1);
        job->handlers->gone(job);
}

/* Handles a child that runs past its last limit. It does not touch devices itself, so it was stopped or gets no CPU
 * time. */
static void on_late(void *userdata) {
        Job *job = userdata;

        (void) string_replace(&job->message, "Timed out in the attempt to %s; the kernel may still be busy with it.",
                              *job->step ? job->step : "begin");
        worker_kill(&job->worker);
        job->lost = true;
        add_stuck(job, NULL, DOING_STEP);
        set_result(job, JOB_TIMEOUT);
}

static int send_report(const Report *report, void *userdata _unused_) {
        static Report unsent[2];
        static size_t n;

        if (report)
                unsent[n++] = *report;
        if (report && is_quiet(report) && n < ELEMENTSOF(unsent))
                return 0;
        if (n > 0)
                worker_report(unsent, n * sizeof(*unsent));
        n = 0;
        return !report || report->kind != REPORT_ALL_FOUND || worker_may_continue() ? 0 : -ECANCELED;
}

static int run(const Sysfs *fs, void *userdata) {
        const Job *job = userdata;

        return EXIT_RESULT + (int) executor_run(fs, job->steps, worker_lock(&job->worker), send_report, NULL);
}

static const WorkerKind worker_kind = { run, on_readable, on_late, on_exit_of_child };

static int on_begin(sd_event_source *source, void *userdata) {
        Job *job = userdata;
        const Manager *m = job->manager;
        const uint64_t sec = step_list_timeout_sec(job->steps);
        int r;

        assert(!job->held && !job->has_result);
        r = job->handlers->begin(job);
        if (r >= 0 && job->steps->n > 0) {
                job->deadline = clock_usec(CLOCK_REALTIME) + sec * 1000000U;
                /* The undo may take as long as the steps, hence 2 * sec. */
                r = worker_start(&job->worker, &worker_kind, m->event, m->fs, (2 * sec + GRACE_SEC) * 1000000U, job);
                if (r >= 0)
                        return 0;
                (void) string_replace(&job->message, "The process for the job could not be started: %s.", strerror(-r));
        }
        set_result(job, r < 0 ? JOB_FAILED : JOB_DONE);
        job->handlers->gone(job);
        return 0;
}

/* The job begins in the next turn of the loop, when the reply to the caller has been sent. */
int job_start(Job *job, const JobHandlers *handlers) {
        int r;

        assert(!job->defer);
        job->handlers = handlers;
        r = sd_event_add_defer(job->manager->event, &job->defer, on_begin, job);
        return r < 0 ? r : sd_event_source_set_priority(job->defer, SD_EVENT_PRIORITY_IMPORTANT);
}

int job_hold(Job *job) {
        int r;

        assert(job->defer && !job->held);
        r = sd_event_source_set_enabled(job->defer, SD_EVENT_OFF);
        job->held = r >= 0;
        return r;
}

int job_let_begin(Job *job) {
        assert(job->held);
        job->held = false;
        return sd_event_source_set_enabled(job->defer, SD_EVENT_ONESHOT);
}
