/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The setup of child processes for calls that may block for ever. */

#include <sys/types.h>

/* The descriptors that a child keeps besides stdio: it writes reports, waits for a byte from its parent, holds a lock.
 */
#define CHILD_REPORT_FD 3
#define CHILD_GO_FD     4
#define CHILD_LOCK_FD   5

/*
 * Call it in a child right after fork(). Sets the parent death signal and the process name, unblocks all signals, moves
 * report, go and lock (negative: none) to CHILD_REPORT_FD, CHILD_GO_FD and CHILD_LOCK_FD, and closes all other
 * descriptors except stdio. Returns 0, -ESRCH when the parent has died already, or another negative errno.
 */
int child_settle(pid_t parent, const char *name, int report, int go, int lock);
