/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the uid of a caller. A bus message names only the caller's connection; GetConnectionUnixUser returns the uid of
 * a connection. The daemon asks asynchronously: a call that needs the uid is queued until the bus replies, and the
 * event loop serves other calls meanwhile.
 */

#include <systemd/sd-bus.h>

#include "bus/server.h"

/* Limits of the queue: calls in total, and calls of one connection. A further call is refused with LimitExceeded. */
#define CALLERS_WAITING_MAX    128U
#define CALLERS_WAITING_OF_ONE 32U

/* A method that needs the uid. Its return value and error are those of an sd_bus_message_handler_t, also when the call
 * was queued. */
typedef int (*CallerMethod)(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error);

/* Calls the method with the caller's uid, immediately if the uid is known. Calls of one connection keep their order. A
 * method of a vtable returns the return value. */
int caller_identify(Server *s, sd_bus_message *call, CallerMethod method, sd_bus_error *error);

/* Drops all queued calls without a reply, and forgets uids: another bus gives the same unique names to other callers.
 */
void callers_done(Server *s);
