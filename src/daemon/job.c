/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the steps of a job in a child process. */

#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>

#include "bus/names.h"
#include "host/child.h"
#include "host/executor.h"
#include "util/log.h"
#include "util/strings.h"
#include "util/stringtable.h"

/* Exit status of the child; any other status means that it died. */
enum {
        CHILD_DONE = 0,
        CHILD_FAILED = 10,
        CHILD_FAILED_DIRTY = 11,
};

struct Job {
        uint32_t id;
        const char *verb;
        char *subject;
        StepList *steps;
        char *step, *message;
        size_t current; /* index of the current step; steps->n before the first */
        unsigned n_begun;
        bool has_result, held;
        bool unnoted; /* on_active failed for a service */
        pid_t pid;    /* 0: no child */
        int fd;
        int go;   /* pipe to the child, which waits for a byte before it continues; -1 when closed */
        int lock; /* lock for the child; -1 when there is none, or the child has inherited it */
        sd_event_source *io, *child, *timer, *defer;
        const Sysfs *fs;
        unsigned timeout_sec;
        const JobCallbacks *callbacks;
        void *userdata;
};

static const char *const job_result_table[_JOB_RESULT_MAX] = {
        [JOB_DONE] = JOB_RESULT_DONE,
        [JOB_FAILED] = JOB_RESULT_FAILED,
        [JOB_FAILED_DIRTY] = JOB_RESULT_FAILED,
        [JOB_TIMEOUT] = JOB_RESULT_TIMEOUT,
};
DEFINE_STRING_TABLE_TO_STRING(job_result, JobResult, _JOB_RESULT_MAX)

int job_new(uint32_t id, const char *verb, const char *subject, StepList *steps, Job **ret) {
        _cleanup_(cleanup_job_free) Job *job = calloc(1, sizeof(*job));

        if (!job) {
                step_list_free(steps);
                return -ENOMEM;
        }
        job->id = id;
        job->verb = verb;
        job->steps = steps;
        job->current = steps->n;
        job->fd = job->go = job->lock = -1;
        if (string_copy(&job->subject, subject) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(job);
        return 0;
}

Job *job_free(Job *job) {
        if (!job)
                return NULL;
        if (job->pid > 0)
                (void) kill(job->pid, SIGKILL);
        sd_event_source_disable_unref(job->io);
        sd_event_source_disable_unref(job->child);
        sd_event_source_disable_unref(job->timer);
        sd_event_source_disable_unref(job->defer);
        cleanup_close(&job->fd);
        cleanup_close(&job->go);
        cleanup_close(&job->lock);
        step_list_free(job->steps);
        free(job->subject);
        free(job->step);
        free(job->message);
        free(job);
        return NULL;
}

void job_set_lock(Job *job, int fd) {
        job->lock = fd;
}

void job_leave_out(Job *job, size_t step) {
        job->steps->steps[step].skipped = true;
}

uint32_t job_id(const Job *job) {
        return job->id;
}

const char *job_verb(const Job *job) {
        return job->verb;
}

const char *job_subject(const Job *job) {
        return job->subject;
}

const char *job_step(const Job *job) {
        return job->step ?: "";
}

const char *job_message(const Job *job) {
        return job->message ?: "";
}

void job_set_message(Job *job, const char *message) {
        (void) string_copy(&job->message, message);
}

unsigned job_steps_done(const Job *job) {
        return job->has_result && job->n_begun == job->steps->n ? job->n_begun : job->n_begun - (job->n_begun > 0);
}

unsigned job_steps_total(const Job *job) {
        return (unsigned) job->steps->n;
}

const Step *job_current(const Job *job) {
        return job->current < job->steps->n ? &job->steps->steps[job->current] : NULL;
}

const StepList *job_steps(const Job *job) {
        return job->steps;
}

bool job_has_result(const Job *job) {
        return job->has_result;
}

bool job_is_stuck(const Job *job) {
        return job->has_result && job->pid > 0;
}

bool job_is_gone(const Job *job) {
        return job->pid == 0;
}

static void set_result(Job *job, JobResult result) {
        if (job->has_result)
                return;
        job->has_result = true;
        job->timer = sd_event_source_disable_unref(job->timer);
        job->callbacks->on_result(job, result, job->userdata);
}

static void close_go(Job *job) {
        cleanup_close(&job->go);
        job->go = -1;
}

/* Sends the child the byte that it waits for. Without the byte the child exits before its first write. */
static void send_go(Job *job, bool may) {
        if (!may || write(job->go, &(char){ 0 }, 1) != 1)
                (void) string_replace(&job->message, "The state to restore afterwards could not be written to disk.");
        close_go(job);
}

static char *failure(Job *job, const Step *step, const Report *report) {
        const char *representor = report->representor[0] ? report->representor : NULL;

        if (report->holder[0])
                return strdup(report->holder);
        if (!step_gives_attributes(step))
                return step_failure(step, report->error, NULL);
        if (report->switchdev)
                return step_failure_in_switchdev(step, report->error, &report->found, representor);
        return step_failure(step, report->error, &report->found);
}

static void on_device_failed(Job *job, const Step *step, const Report *report) {
        const VfAttributes *found = step_gives_attributes(step) ? &report->found : NULL;
        _cleanup_free_ char *message = report->status != 0 ? step_failure_with_status(step, report->status)
                                                           : step_failure(step, report->error, found);

        job->callbacks->on_device_failed(job, step, message ?: "Out of memory.", job->userdata);
}

static void on_report(Job *job, const Report *report) {
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
                free(job->step);
                job->step = step_describe(step);
                job->callbacks->on_step(job, job->userdata);
                break;
        case REPORT_FAILED:
                free(job->message);
                job->message = failure(job, step, report);
                break;
        case REPORT_DEVICE_FAILED:
                on_device_failed(job, step, report);
                break;
        case REPORT_READING:
                job->current = report->step;
                (void) string_replace(&job->step, "read the attributes of the VFs of %s",
                                      PCI_ADDRESS_STR(step->device));
                break;
        case REPORT_FOUND:
                /* The child does the same in its own copy; this copy is for the callback. */
                if (step->kind == STEP_SUPPORTED_ATTRIBUTES)
                        (void) step_keep_supported(step, &report->found);
                job->callbacks->on_found(job, step, &report->found, job->userdata);
                break;
        case REPORT_ACTIVE:
                job->unnoted = job->callbacks->on_active(job, step, job->userdata) < 0 || job->unnoted;
                break;
        case REPORT_STARTED:
        case REPORT_NOT_STARTED:
                job->callbacks->on_started(job, step, report->kind == REPORT_STARTED, report->error, job->userdata);
                break;
        case REPORT_ALL_FOUND:
                send_go(job, !job->unnoted && job->callbacks->on_all_found(job, job->userdata) >= 0);
                break;
        case REPORT_UNDO_FAILED:
                (void) string_replace(&job->message, "%s Undoing it failed too: %s is not restored (%s).",
                                      job->message ?: "", PCI_ADDRESS_STR(step->device), strerror(-report->error));
                break;
        default:
                break;
        }
}

_Static_assert(sizeof(Report) <= PIPE_BUF, "writes of up to PIPE_BUF bytes to a pipe are atomic");

/* Reads all reports in the pipe. Each was written atomically, so none is partial. */
static void drain(Job *job) {
        Report report;

        while (job->fd >= 0 && read(job->fd, &report, sizeof(report)) == (ssize_t) sizeof(report))
                on_report(job, &report);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Job *job = userdata;

        drain(job);
        /* on_child() handles the end; a closed pipe would wake the event loop without end. */
        if (!(events & EPOLLIN))
                job->io = sd_event_source_disable_unref(job->io);
        return 0;
}

static void notify_gone(Job *job) {
        job->callbacks->on_gone(job, job->userdata);
}

static int on_child(sd_event_source *source, const siginfo_t *si, void *userdata) {
        Job *job = userdata;
        JobResult result = JOB_FAILED_DIRTY;

        drain(job);
        job->pid = 0;
        if (si->si_code == CLD_EXITED && si->si_status == CHILD_DONE) {
                result = JOB_DONE;
                /* Skipped steps at the end of the list count as done. */
                job->n_begun = (unsigned) job->steps->n;
        } else if (si->si_code == CLD_EXITED && si->si_status == CHILD_FAILED)
                result = JOB_FAILED;
        else if (!job->message)
                (void) string_replace(&job->message, "The process of the job died in the attempt to %s.",
                                      job->step ?: "begin");
        set_result(job, result);
        notify_gone(job);
        return 0;
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        Job *job = userdata;

        (void) string_replace(&job->message, "Timed out in the attempt to %s; the kernel may still be busy with it.",
                              job->step ?: "begin");
        (void) kill(job->pid, SIGKILL);
        set_result(job, JOB_TIMEOUT);
        return 0;
}

static int send_report(const Report *report, void *userdata) {
        /* A failure means that the parent has died, and then PR_SET_PDEATHSIG kills this process. */
        (void) !write(CHILD_REPORT_FD, report, sizeof(*report));
        if (report->kind != REPORT_ALL_FOUND)
                return 0;
        return read(CHILD_GO_FD, &(char){ 0 }, 1) == 1 ? 0 : -ECANCELED;
}

/* go: the parent sends a byte when it watches the child. At end of file the parent has died, and nothing is written. */
_Noreturn static void run_child(Job *job, const Sysfs *inherited, pid_t parent, int fd, int go) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        int r;

        if (read(go, &(char){ 0 }, 1) != 1)
                _exit(CHILD_FAILED_DIRTY);
        /* A restarted daemon resumes the work, so a child without its parent must not write. */
        if (child_settle(parent, "passthroughd-job", fd, go, job->lock) < 0)
                _exit(CHILD_FAILED_DIRTY);
        r = sysfs_new(sysfs_root(inherited)[0] ? sysfs_root(inherited) : "/", &fs);
        if (r == 0)
                r = executor_run(fs, job->steps, send_report, NULL);
        _exit(r == 0 ? CHILD_DONE : r > 0 ? CHILD_FAILED : CHILD_FAILED_DIRTY);
}

static int watch(Job *job, sd_event *event, unsigned timeout_sec) {
        int r = sd_event_add_child(event, &job->child, job->pid, WEXITED, on_child, job);

        if (r >= 0)
                r = sd_event_add_io(event, &job->io, job->fd, EPOLLIN, on_io, job);
        /* Handle reports before the exit of the child. */
        if (r >= 0)
                r = sd_event_source_set_priority(job->io, SD_EVENT_PRIORITY_NORMAL - 1);
        if (r >= 0)
                r = sd_event_add_time_relative(event, &job->timer, CLOCK_MONOTONIC, timeout_sec * 1000000ULL, 0,
                                               on_timeout, job);
        return r;
}

/* Forks the child, which waits for a byte from job->go. */
static int fork_child(Job *job, const Sysfs *fs) {
        _cleanup_close_ int report_read = -1, report_write = -1, go_read = -1, go_write = -1;
        pid_t parent = getpid();
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        report_read = fds[0];
        report_write = fds[1];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        go_read = fds[0];
        go_write = fds[1];
        job->pid = fork();
        if (job->pid < 0) {
                job->pid = 0;
                return -errno;
        }
        if (job->pid == 0) {
                (void) close(go_write);
                run_child(job, fs, parent, report_write, go_read);
        }
        (void) fcntl(report_read, F_SETFL, O_NONBLOCK);
        job->fd = TAKE_FD(report_read);
        job->go = TAKE_FD(go_write);
        return 0;
}

static int begin(Job *job, sd_event *event) {
        int r = fork_child(job, job->fs);

        cleanup_close(&job->lock);
        job->lock = -1;
        if (r < 0)
                return r;
        r = watch(job, event, job->timeout_sec);
        if (r >= 0 && write(job->go, &(char){ 0 }, 1) == 1)
                return 0;
        /* Without the byte the child exits before its first write. */
        close_go(job);
        (void) waitpid(job->pid, NULL, 0);
        job->pid = 0;
        return r < 0 ? r : -EIO;
}

static int on_begin(sd_event_source *source, void *userdata) {
        Job *job = userdata;
        int r = job->callbacks->on_begin(job, job->userdata);

        if (r >= 0 && job->steps->n > 0) {
                r = begin(job, sd_event_source_get_event(source));
                if (r >= 0)
                        return 0;
                (void) string_replace(&job->message, "The process for the job could not be started: %s.", strerror(-r));
        }
        set_result(job, r < 0 ? JOB_FAILED : JOB_DONE);
        notify_gone(job);
        return 0;
}

/* The job begins in the next loop iteration, after the reply to the caller. */
int job_start(Job *job, sd_event *event, const Sysfs *fs, unsigned timeout_sec, const JobCallbacks *callbacks,
              void *userdata) {
        int r;

        job->fs = fs;
        job->timeout_sec = timeout_sec;
        job->callbacks = callbacks;
        job->userdata = userdata;
        r = sd_event_add_defer(event, &job->defer, on_begin, job);
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

bool job_is_held(const Job *job) {
        return job->held;
}
