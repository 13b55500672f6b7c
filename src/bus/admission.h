/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Admits the callers of the bus. A bus message names only the caller's connection; GetConnectionCredentials returns the
 * uid and the groups of a connection. The daemon asks asynchronously, once for a connection: the first calls of a
 * connection are queued until the bus replies, and the event loop serves other calls meanwhile. Calls are refused with
 * LimitExceeded when they are too long, or too many of them wait.
 *
 * Root and members of the group BUS_GROUP may read. For others polkit decides, once for a connection.
 */

#include "caller.h"

/* The most calls in the queue. quota.h has the limits of one connection. */
#define ADMISSION_WAITING_MAX 1024U
#define ADMISSION_SIZE_SMALL  4096U

typedef struct WaitingCall WaitingCall;

typedef struct Admission {
        WaitingCall *waiting[ADMISSION_WAITING_MAX]; /* oldest first */
        size_t n_waiting;
} Admission;

/*
 * For the filter of a connection. Returns 0 when the call can be served now. Returns 1 when it was refused, or was
 * queued: then it is served again when its caller is known and may read. Calls of one connection keep their order. A
 * peer without a bus may read.
 */
int admission_check(Server *s, sd_bus_message *call, sd_bus_error *error);

/* Drops all queued calls without a reply. */
void admission_done(Admission *a);
