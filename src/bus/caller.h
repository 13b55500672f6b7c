/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who calls. A message of the bus names the caller's connection, and the bus tells the uid of a connection when it is
 * asked. The daemon never waits for that answer: a call whose method needs the uid is put aside until it is there, and
 * the loop serves others.
 */

#include <systemd/sd-bus.h>

#include "bus/server.h"

/* Calls that may be put aside at once, and those of one connection. One more is refused with LimitExceeded. */
#define CALLERS_WAITING_MAX    128U
#define CALLERS_WAITING_OF_ONE 32U

/* A method that wants to know the uid. It returns as any method of sd-bus does, also when it is called later. */
typedef int (*CallerMethod)(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error);

/* Calls the method, at once where the uid is known. Calls of one connection keep their order. For "return ..." in a
 * method of a vtable. */
int caller_identify(Server *s, sd_bus_message *call, CallerMethod method, sd_bus_error *error);

/* Sets error to AccessDenied, and returns its negative errno, unless uid is root or the daemon's own. */
int caller_check_root(sd_bus_message *call, uint32_t uid, sd_bus_error *error);

/* Forgets all calls that are put aside. */
void callers_done(Server *s);
