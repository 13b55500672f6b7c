/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the uid of a caller. A bus message names only the caller's connection; GetConnectionUnixUser returns the uid of
 * a connection. The daemon asks asynchronously, once for a connection: a call that needs the uid is queued until the
 * bus replies, and the event loop serves other calls meanwhile. Calls are refused with LimitExceeded when they are too
 * long, or too many of them wait.
 */

#include <systemd/sd-bus.h>

#include "bus/server.h"

/* The longest call, in bytes: a template, or a request with all that it may have. */
#define CALL_SIZE_MAX          (384U << 10)
/* Calls in the queue: in total, and of one connection. Half of the places are for the first calls of connections: the
 * bus allows one uid 256 connections. */
#define CALLERS_WAITING_MAX    1024U
#define CALLERS_WAITING_OF_ONE 32U
/* Bytes of the calls in the queue that are longer than CALL_SIZE_SMALL. */
#define CALLERS_WAITING_BYTES  (4U << 20)
#define CALL_SIZE_SMALL        4096U
/* Connections whose uid is remembered. */
#define CALLERS_KNOWN_MAX      256U

typedef struct WaitingCall WaitingCall;

typedef struct Callers {
        WaitingCall *waiting[CALLERS_WAITING_MAX]; /* oldest first */
        size_t n_waiting;
        struct {
                char sender[32]; /* unique name of a connection; "": not in use */
                uint32_t uid;
        } known[CALLERS_KNOWN_MAX];
        size_t next_known; /* the oldest of known[] */
} Callers;

/* A method that needs the uid. Its return value and error are those of an sd_bus_message_handler_t, also when the call
 * was queued. */
typedef int (*CallerMethod)(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error);

/* Calls the method with the caller's uid, immediately if the uid is known. Calls of one connection keep their order. A
 * method of a vtable returns the return value. A peer without a bus has the uid of the daemon. */
int caller_identify(Server *s, sd_bus_message *call, CallerMethod method, sd_bus_error *error);

/* True: *ret is the uid of the caller. Otherwise the bus is asked for it, and a later call finds it. */
bool caller_find_uid(Server *s, sd_bus_message *call, uint32_t *ret);
/* Root, or the daemon's own uid. Callers of other uids are counted by uid, those of root by connection. */
bool caller_is_root(uint32_t uid);

/* Sends an error reply for a method that returned r and error, as sd-bus does after a method handler. */
void caller_reply_error(sd_bus_message *call, int r, const sd_bus_error *error);

/* Drops all queued calls without a reply, and forgets uids: another bus gives the same unique names to other callers.
 */
void callers_done(Server *s);
