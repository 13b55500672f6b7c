/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * systemd's units, over a connection of its own to the system bus. Every call may wait, until CLOCK_MONOTONIC has
 * reached end (microseconds): like host/driver.h for the child of a job only.
 */

#include <stdbool.h>
#include <stdint.h>

/* 1: active, or on the way to it. 0: neither; not loaded, or there is no systemd. */
int unit_is_active(const char *name, uint64_t end);
/* Returns when it has stopped: 0, -ETIMEDOUT, -EIO when systemd says that it failed to, or another error. */
int unit_stop(const char *name, uint64_t end);
/* The same for starting. *ret_asked: systemd has taken the job or refuses it for good, so there is no need to try
 * again.
 */
int unit_start(const char *name, uint64_t end, bool *ret_asked);
/*
 * Runs a command, words with NULL after the last, as a unit of its own, which is ended when the time is up. 0 when its
 * exit status was 0, 1 and *ret_status when it was another one or that of a signal (128 and its number), -ETIMEDOUT,
 * -ENOSYS where there is no systemd, or another error.
 */
int unit_run(const char *name, const char *description, const char *const *words, uint64_t end, int *ret_status);
