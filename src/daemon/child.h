/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Processes of the daemon's own that may block for ever. */

#include <sys/types.h>

/* The only descriptors that a child keeps but stdio: where it reports, where it is told to go on, and a lock. */
#define CHILD_REPORT_FD 3
#define CHILD_GO_FD     4
#define CHILD_LOCK_FD   5

/*
 * For a child that was just forked: it dies with its parent, gets signals again, is called name, and has closed all but
 * stdio, report, go and lock (negative: none), which are CHILD_REPORT_FD, CHILD_GO_FD and CHILD_LOCK_FD then. -ESRCH
 * when the parent is gone already.
 */
int child_settle(pid_t parent, const char *name, int report, int go, int lock);
