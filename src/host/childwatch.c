/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "host/childwatch.h"

#include <signal.h>
#include <sys/wait.h>

int child_watch(ChildWatch *w, sd_event *event, pid_t pid, uint64_t timeout_usec, sd_event_child_handler_t exited,
                sd_event_time_handler_t late, void *userdata) {
        int r = sd_event_add_child(event, &w->exit, pid, WEXITED, exited, userdata);

        if (r >= 0 && timeout_usec > 0)
                r = sd_event_add_time_relative(event, &w->deadline, CLOCK_MONOTONIC, timeout_usec, 0, late, userdata);
        if (r >= 0) {
                /* sd-event kills and reaps the process when the event source is freed. */
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
