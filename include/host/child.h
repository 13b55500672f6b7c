/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Child processes for calls that may never return. */

#include <stdbool.h>
#include <systemd/sd-event.h>

/* Descriptors of a child besides stdio: it writes reports to the first, waits for a byte from its parent at the second,
 * and keeps a lock file locked with the third. */
#define CHILD_REPORT_FD 3
#define CHILD_GO_FD     4
#define CHILD_LOCK_FD   5

/*
 * Sets up a child process; call it right after fork(). Sets the parent death signal and the process name, unblocks all
 * signals, moves the descriptors report, go and lock to CHILD_REPORT_FD, CHILD_GO_FD and CHILD_LOCK_FD, and closes all
 * others except stdio. A negative lock means that there is none. Returns 0, -ESRCH when the parent has died already, or
 * another negative errno.
 */
int child_settle(pid_t parent, const char *name, int report, int go, int lock);

/* Watches a child process in the event loop: its exit and its deadline. */
typedef struct ChildWatch {
        sd_event_source *exit, *deadline;
        bool may_hang; /* the process may never return from the kernel, so child_watch_done() neither kills it nor waits
                          for it */
} ChildWatch;

/*
 * Calls exited() once, when the process has exited. If timeout_usec passes before that, also calls late(); 0: there is
 * no deadline. SIGCHLD must be blocked. Returns 0 or a negative errno. A failure kills and reaps the process, so the
 * process must not have made a call yet that may hang.
 */
int child_watch(ChildWatch *w, sd_event *event, pid_t pid, uint64_t timeout_usec, sd_event_child_handler_t exited,
                sd_event_time_handler_t late, void *userdata);
/* Kills the process, if one is watched; exited() is called as usual. */
void child_watch_kill(const ChildWatch *w);
/* Ends the watch, so that neither exited() nor late() is called. Kills and reaps a process that still runs, unless
 * may_hang is set. */
void child_watch_done(ChildWatch *w);
