/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Watches a child process in the event loop: its exit and its deadline. */

#include <stdbool.h>
#include <systemd/sd-event.h>

typedef struct ChildWatch {
        sd_event_source *exit, *deadline;
        bool may_hang; /* the process may sleep in the kernel for ever: child_watch_done() does not wait for it */
} ChildWatch;

/*
 * Calls exited() once, when the process has exited, and before that late() when timeout_usec has passed; 0: no
 * deadline. SIGCHLD must be blocked. Returns 0 or a negative errno; on failure the process is killed and reaped, so it
 * must not have begun to do what may hang.
 */
int child_watch(ChildWatch *w, sd_event *event, pid_t pid, uint64_t timeout_usec, sd_event_child_handler_t exited,
                sd_event_time_handler_t late, void *userdata);
/* Kills the process; exited() is called as above. Does nothing when no process is watched. */
void child_watch_kill(const ChildWatch *w);
/* Kills and reaps the process unless it may hang. Neither function is called after this. */
void child_watch_done(ChildWatch *w);
