/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Starts, stops and runs systemd units. Each call opens its own connection to the system bus and may block until
 * CLOCK_MONOTONIC has reached end (in microseconds), unit_run() a second longer. unit_read_use() runs in the child
 * process of a job, the others in passthroughd-root.
 */

#include <stdbool.h>
#include <stdint.h>

/* Whether a unit uses devices, or is about to. */
typedef enum UnitUse {
        UNIT_UNUSED, /* in another state, or not loaded, or systemd is not on the bus */
        UNIT_ACTIVE, /* active, activating or reloading */
        UNIT_QUEUED, /* its start job is queued, as at boot */
} UnitUse;

/* Reads whether the unit is used. 0 or a negative errno. */
int unit_read_use(const char *name, uint64_t end, UnitUse *ret);
/* Stops the unit and waits until it has stopped. 0: stopped. -ETIMEDOUT: not stopped in time. -EIO: systemd's stop job
 * failed. Otherwise a negative errno. */
int unit_stop(const char *name, uint64_t end);
/* Starts the unit. Returns as unit_stop(). *ret_asked: systemd has accepted or refused the start job, so a retry is
 * useless. systemd has at least two seconds to accept the job, even if end is earlier. */
int unit_start(const char *name, uint64_t end, bool *ret_asked);
/*
 * Runs a command as a transient unit; `words` is its NULL-terminated argument vector. systemd kills the command at
 * `end`. 0: the exit status was 0. 1: the exit status is in *ret_status, 128 plus the signal's number when a signal
 * killed the command. -ETIMEDOUT: the command took too long. -ENOSYS: systemd is not on the bus. Otherwise a negative
 * errno.
 */
int unit_run(const char *name, const char *description, const char *const *words, uint64_t end, int *ret_status);
