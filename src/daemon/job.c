/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the steps of a job in a child process. */

#include "job.h"

#include <errno.h>
#include <limits.h>

#include "bus/names.h"
#include "manager.h"
#include "util/clock.h"
#include "util/strings.h"
#include "util/stringtable.h"

/* Exit status of the child; any other status means that it died. */
enum {
        CHILD_DONE = 0,
        CHILD_FAILED = 10,
        CHILD_FAILED_DIRTY = 11,
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
        if (string_copy(&job->subject, subject) < 0 || string_copy(&job->step, "") < 0 ||
            string_copy(&job->message, "") < 0)
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
        free(job->message);
        free(job->devices);
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
        worker_drop_deadline(&job->worker);
        job->handlers->ended(job, result);
}

void job_may_write(Job *job, bool may) {
        /* If it may not, the child exits before its first write. */
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

/* Takes ownership of text; NULL: out of memory. */
static void replace(char **s, char *text) {
        if (!text)
                return;
        free(*s);
        *s = text;
}

static void on_report(Job *job, const Report *report) {
        _cleanup_free_ char *undo = NULL;
        Step *step;

        if (report->step >= job->steps->n)
                return;
        step = &job->steps->steps[report->step];
        /* After the timeout the job keeps its current step, and its child gets no byte to continue. */
        if (job->has_result && report->kind != REPORT_FAILED && report->kind != REPORT_UNDO_FAILED &&
            report->kind != REPORT_DEVICE_FAILED)
                return;
        switch (report->kind) {
        case REPORT_STEP:
                job->current = report->step;
                job->n_begun = report->step + 1;
                replace(&job->step, step_describe(step));
                break;
        case REPORT_READING:
                job->current = report->step;
                (void) string_replace(&job->step,
                                      step->kind == STEP_BIND     ? "check that %s answers"
                                      : step->kind == STEP_UNBIND ? "read persistence mode of %s"
                                                                  : "read the attributes of the VFs of %s",
                                      PCI_ADDRESS_STR(step->device));
                break;
        case REPORT_FAILED:
                job->error = report->error;
                replace(&job->message, failure(step, report));
                break;
        case REPORT_UNDO:
                job->undone = step;
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
        default:
                break;
        }
        job->handlers->reported(job, step, report);
}

_Static_assert(sizeof(Report) <= PIPE_BUF, "writes of up to PIPE_BUF bytes to a pipe are atomic");

static void on_readable(void *userdata) {
        Job *job = userdata;
        Report report;

        while (worker_read(&job->worker, &report, sizeof(report)))
                on_report(job, &report);
}

static void on_exit_of_child(const siginfo_t *end, void *userdata) {
        Job *job = userdata;
        JobResult result = JOB_FAILED_DIRTY;

        if (end->si_code == CLD_EXITED && end->si_status == CHILD_DONE) {
                result = JOB_DONE;
                /* Skipped steps at the end of the list count as done. */
                job->n_begun = (unsigned) job->steps->n;
        } else if (end->si_code == CLD_EXITED && end->si_status == CHILD_FAILED)
                result = JOB_FAILED;
        else if (!*job->message)
                (void) string_replace(&job->message, "The process of the job died in the attempt to %s.",
                                      *job->step ? job->step : "begin");
        set_result(job, result);
        job->handlers->gone(job);
}

static void on_late(void *userdata) {
        Job *job = userdata;

        (void) string_replace(&job->message, "Timed out in the attempt to %s; the kernel may still be busy with it.",
                              *job->step ? job->step : "begin");
        worker_kill(&job->worker);
        set_result(job, JOB_TIMEOUT);
}

static int send_report(const Report *report, void *userdata _unused_) {
        worker_report(report, sizeof(*report));
        return report->kind != REPORT_ALL_FOUND || worker_may_continue() ? 0 : -ECANCELED;
}

static int run(const Sysfs *fs, void *userdata) {
        const Job *job = userdata;
        int r = executor_run(fs, job->steps, send_report, NULL);

        return r == 0 ? CHILD_DONE : r > 0 ? CHILD_FAILED : CHILD_FAILED_DIRTY;
}

static const WorkerKind worker_kind = { run, on_readable, on_late, on_exit_of_child };

static int on_begin(sd_event_source *source, void *userdata) {
        Job *job = userdata;
        const Manager *m = job->manager;
        uint64_t timeout = job->steps->timeout_sec * UINT64_C(1000000);
        int r = job->handlers->begin(job);

        if (r >= 0 && job->steps->n > 0) {
                job->deadline = clock_usec(CLOCK_REALTIME) + timeout;
                r = worker_start(&job->worker, &worker_kind, m->event, m->fs, timeout, job);
                if (r >= 0)
                        return 0;
                (void) string_replace(&job->message, "The process for the job could not be started: %s.", strerror(-r));
        }
        set_result(job, r < 0 ? JOB_FAILED : JOB_DONE);
        job->handlers->gone(job);
        return 0;
}

/* The job begins in the next loop iteration, after the reply to the caller. */
int job_start(Job *job, const JobHandlers *handlers) {
        int r;

        job->handlers = handlers;
        r = sd_event_add_defer(job->manager->event, &job->defer, on_begin, job);
        return r < 0 ? r : sd_event_source_set_priority(job->defer, SD_EVENT_PRIORITY_IMPORTANT);
}

int job_hold(Job *job) {
        int r = sd_event_source_set_enabled(job->defer, SD_EVENT_OFF);

        job->held = r >= 0;
        return r;
}

int job_let_begin(Job *job) {
        job->held = false;
        return sd_event_source_set_enabled(job->defer, SD_EVENT_ONESHOT);
}
