/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starts child processes, watches them and ends them. */

#include "jobs-worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/holders.h"
#include "host/xen.h"

int worker_lock(const Worker *w) {
        return w->lock >= 0 ? CHILD_LOCK_FD : -1;
}

void worker_report(const void *report, size_t size) {
        assert(size <= PIPE_BUF);
        /* If the write fails, the parent has died, and PR_SET_PDEATHSIG kills this process. */
        (void) !write(CHILD_REPORT_FD, report, size);
}

bool worker_may_continue(void) {
        return read(CHILD_GO_FD, &(char) { 0 }, 1) == 1;
}

/* Runs in the child. First waits for a byte, which the parent sends when it watches the child. At end of file the
 * parent has died or cannot watch the child, which then exits. If the parent has died, a restarted daemon resumes the
 * work. */
_Noreturn static void run(const Worker *w, const Sysfs *inherited, pid_t parent, int report, int go) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;

        if (read(go, &(char) { 0 }, 1) != 1 || child_settle(parent, w->process, report, go, w->lock) < 0 ||
            sysfs_reopen(inherited, &fs) < 0)
                _exit(EXIT_FAILURE);
        xen_guests_may_block();
        holders_may_block();
        _exit(w->kind->run(fs, w->userdata));
}

static int fork_child(Worker *w, const Sysfs *fs) {
        _cleanup_close_ int report_read = -1, report_write = -1, go_read = -1, go_write = -1;
        pid_t parent = getpid(), pid;
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        report_read = fds[0];
        report_write = fds[1];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        go_read = fds[0];
        go_write = fds[1];
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                (void) close(go_write);
                run(w, fs, parent, report_write, go_read);
        }
        (void) fcntl(report_read, F_SETFL, O_NONBLOCK);
        w->pid = pid;
        w->reports = TAKE_FD(report_read);
        w->go = TAKE_FD(go_write);
        return 0;
}

static void close_end(int *fd) {
        cleanup_close(fd);
        *fd = -1;
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Worker *w = userdata;

        if (events & EPOLLIN) {
                w->kind->readable(w->userdata);
                return 0;
        }
        /* The child has closed its end of the pipe, and everything in it was read. on_exit_of_child() does the rest. */
        w->io = sd_event_source_disable_unref(w->io);
        close_end(&w->reports);
        return 0;
}

static int on_exit_of_child(sd_event_source *source, const siginfo_t *end, void *userdata) {
        Worker *w = userdata;

        w->kind->readable(w->userdata);
        w->pid = 0;
        w->kind->exited(end, w->userdata);
        return 0;
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        Worker *w = userdata;

        w->kind->late(w->userdata);
        return 0;
}

static int watch(Worker *w, sd_event *event, uint64_t timeout_usec) {
        int r = child_watch(&w->watch, event, w->pid, timeout_usec, on_exit_of_child, on_timeout, w);

        if (r < 0)
                return r;
        r = sd_event_add_io(event, &w->io, w->reports, EPOLLIN, on_io, w);
        if (r < 0)
                return r;
        /* Reports are read before the exit of the child is handled. */
        return sd_event_source_set_priority(w->io, SD_EVENT_PRIORITY_NORMAL - 1);
}

int worker_start(Worker *w, const WorkerKind *kind, sd_event *event, const Sysfs *fs, uint64_t timeout_usec,
                 void *userdata) {
        int r;

        assert(w->pid == 0 && !w->io);
        w->kind = kind;
        w->userdata = userdata;
        r = fork_child(w, fs);
        close_end(&w->lock);
        if (r < 0)
                return r;
        r = watch(w, event, timeout_usec);
        if (r >= 0 && write(w->go, &(char) { 0 }, 1) == 1)
                return 0;
        /* The pipe is closed without the byte, so the child exits at once. */
        close_end(&w->go);
        (void) waitpid(w->pid, NULL, 0);
        w->pid = 0;
        return r < 0 ? r : -EIO;
}

bool worker_read(const Worker *w, void *report, size_t size) {
        return w->reports >= 0 && read(w->reports, report, size) == (ssize_t) size;
}

bool worker_continue(Worker *w, bool may) {
        bool sent = may && write(w->go, &(char) { 0 }, 1) == 1;

        close_end(&w->go);
        return sent;
}

void worker_extend(const Worker *w, uint64_t timeout_usec) {
        (void) sd_event_source_set_time_relative(w->watch.deadline, timeout_usec);
        (void) sd_event_source_set_enabled(w->watch.deadline, SD_EVENT_ONESHOT);
}

void worker_drop_deadline(Worker *w) {
        w->watch.deadline = sd_event_source_disable_unref(w->watch.deadline);
}

void worker_kill(const Worker *w) {
        if (w->pid > 0)
                (void) kill(w->pid, SIGKILL);
}

void worker_done(Worker *w) {
        worker_kill(w);
        sd_event_source_disable_unref(w->io);
        child_watch_done(&w->watch);
        cleanup_close(&w->lock);
        cleanup_close(&w->reports);
        cleanup_close(&w->go);
}
