/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Who calls: what the daemon knows about the connections of the bus that were admitted, see admission.h. */

#include <systemd/sd-bus.h>

#include "bus/server.h"

/* The longest call, in bytes: a template, or a request with all that it may have. */
#define CALL_SIZE_MAX     (384U << 10)
/* Connections that are remembered. */
#define CALLERS_KNOWN_MAX 256U

typedef struct KnownCaller {
        char sender[32]; /* unique name of a connection; "": not in use */
        uint32_t uid;
        bool may_read;
} KnownCaller;

/* Zeros: nobody is known. Another bus gives the same unique names to other callers. */
typedef struct Callers {
        KnownCaller known[CALLERS_KNOWN_MAX];
        size_t next_known; /* the oldest of known[] */
} Callers;

/* NULL: not known. */
KnownCaller *caller_find(Callers *c, const char *sender);
/* Forgets the oldest when there are too many. */
void caller_remember(Callers *c, const char *sender, uint32_t uid, bool may_read);

/* The size of the arguments of a call. 0; or, when the call is too long, what refuse_sender() returns. */
int caller_check_size(Server *s, sd_bus_message *call, size_t *ret);

/* A method that needs the uid. Its return value and error are those of an sd_bus_message_handler_t. */
typedef int (*CallerMethod)(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error);

/* Calls the method with the caller's uid, unless the call is too long. A method of a vtable returns the return value. A
 * peer without a bus has the uid of its process. */
int caller_identify(Server *s, sd_bus_message *call, CallerMethod method, sd_bus_error *error);

/* The uid of a caller of the bus who was admitted. */
uint32_t caller_uid(Server *s, sd_bus_message *call);

/* Charges the typed replies about thousands of objects to the caller. 0; or, when the reply to this call is long and
 * the caller had too many of them within a minute, what refuse_sender() returns. Root's peers have no limit. */
int caller_charge_list(Server *s, sd_bus_message *call);

/* Sends an error reply for a method that returned r and error, as sd-bus does after a method handler. */
void caller_reply_error(sd_bus_message *call, int r, const sd_bus_error *error);
