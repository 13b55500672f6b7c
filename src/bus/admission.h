/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Admits the callers of the bus. A bus message names only the caller's connection; GetConnectionCredentials returns the
 * uid and the groups of a connection. The daemon asks for them asynchronously at the first call of a connection, and
 * again at a later call if CALLERS_KNOWN_MAX other connections have become known since. The calls of the connection are
 * queued until the bus replies, and the event loop serves other calls meanwhile. A call that is too long, or for which
 * the queue has no room, is refused with LimitExceeded.
 *
 * Root, the daemon's own user and members of the group BUS_GROUP may read. For other users polkit decides. Once polkit
 * has allowed a connection to read, it is asked again only about calls that arrive while it still decides about earlier
 * calls of the connection.
 */

#include "caller.h"

/* The most calls in the queue. QUOTA_UNKNOWN_CALLS and QUOTA_UNKNOWN_BYTES limit the calls of each connection, and of
 * all connections together. */
#define ADMISSION_WAITING_MAX 1024U
#define ADMISSION_SIZE_SMALL  4096U

typedef struct WaitingCall WaitingCall;

typedef struct Admission {
        WaitingCall *waiting[ADMISSION_WAITING_MAX]; /* oldest first */
        size_t n_waiting;
} Admission;

/* Decides whether a call can be served now. Returns 0 when the caller is known and may read; 1 when the call was
 * refused, or waits for the bus or for polkit; or a negative errno. Calls of one connection keep their order. A peer
 * without a bus may read. */
int admission_check(Server *s, sd_bus_message *call, sd_bus_error *error);

/* Drops all queued calls without a reply. */
void admission_done(Admission *a);
