/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "host/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns `fd` if it is above the fixed numbers, otherwise a duplicate above them, because dup2() to a fixed number
 * would close `fd`. On failure returns -1 and sets errno. */
static int keep(int fd) {
        return fd > CHILD_LOCK_FD ? fd : fcntl(fd, F_DUPFD, CHILD_LOCK_FD + 1);
}

int child_settle(pid_t parent, const char *name, int report, int go, int lock) {
        sigset_t none;
        int high_go, high_lock = -1;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                return -ESRCH;
        (void) prctl(PR_SET_NAME, name);
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        /* Close the parent's other descriptors, above all its bus connection: a child that hangs in the kernel would
         * keep the bus name, which a new daemon needs. */
        high_go = keep(go);
        if (high_go >= 0 && lock >= 0)
                high_lock = keep(lock);
        if (high_go < 0 || (lock >= 0 && high_lock < 0) || dup2(report, CHILD_REPORT_FD) < 0 ||
            dup2(high_go, CHILD_GO_FD) < 0 || (lock >= 0 && dup2(high_lock, CHILD_LOCK_FD) < 0))
                return -errno;
        (void) close_range(lock >= 0 ? CHILD_LOCK_FD + 1 : CHILD_GO_FD + 1, ~0U, 0);
        return 0;
}

int child_watch(ChildWatch *w, sd_event *event, pid_t pid, uint64_t timeout_usec, sd_event_child_handler_t exited,
                sd_event_time_handler_t late, void *userdata) {
        int r = sd_event_add_child(event, &w->exit, pid, WEXITED, exited, userdata);

        assert(pid > 0);
        if (r >= 0 && timeout_usec > 0)
                r = sd_event_add_time_relative(event, &w->deadline, CLOCK_MONOTONIC, timeout_usec, 0, late, userdata);
        if (r >= 0) {
                /* Unless may_hang is set, sd-event kills and reaps the process when the event source is freed. */
                (void) sd_event_source_set_child_process_own(w->exit, !w->may_hang);
                return 0;
        }
        w->exit = sd_event_source_disable_unref(w->exit);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        return r;
}

void child_watch_kill(const ChildWatch *w) {
        if (w->exit)
                (void) sd_event_source_send_child_signal(w->exit, SIGKILL, NULL, 0);
}

void child_watch_done(ChildWatch *w) {
        w->exit = sd_event_source_disable_unref(w->exit);
        w->deadline = sd_event_source_disable_unref(w->deadline);
}
