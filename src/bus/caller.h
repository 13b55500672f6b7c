/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the daemon knows about the callers: connections of the bus whose uid the bus has returned (admission.h). */

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

#include "bus/server.h"

/* The size limit of a call's arguments in bytes. A template of DOMXML_TEMPLATE_MAX bytes fits, and so does a request
 * with all keys. */
#define CALL_SIZE_MAX     (384U << 10)
/* The most connections whose callers are remembered. */
#define CALLERS_KNOWN_MAX 256U

typedef struct KnownCaller {
        char sender[32]; /* unique name of the connection; "": this element is not used */
        uint32_t uid;
        bool may_read;
} KnownCaller;

/* The known callers. A zeroed Callers is valid and empty. Zero it for a new connection to the bus, on which other
 * callers may have the same unique names. */
typedef struct Callers {
        KnownCaller known[CALLERS_KNOWN_MAX];
        size_t next_known; /* index in known[] for the next caller: when all elements are used, the one of the oldest
                              caller */
} Callers;

/* Returns the caller with the unique name; NULL when it is not known. */
KnownCaller *caller_find(Callers *c, const char *sender);
/* Stores the caller; replaces the oldest one when CALLERS_KNOWN_MAX are known. A name that is too long for KnownCaller
 * is not stored. */
void caller_remember(Callers *c, const char *sender, uint32_t uid, bool may_read);

/* Computes the size of the arguments of a call. Returns 0 and sets *ret, or a negative errno. If the call is too long,
 * refuses it and returns the result of refuse_sender(). */
int caller_check_size(Server *s, sd_bus_message *call, size_t *ret);

/* A method that needs the caller's uid. Return value and error are those of an sd_bus_message_handler_t. */
typedef int (*CallerMethod)(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error);

/* Calls the method with the caller's uid, unless the call is too long. A peer without a bus has the uid of its process,
 * and its calls may have any length. Returns what a method of a vtable returns. */
int caller_identify(Server *s, sd_bus_message *call, CallerMethod method, sd_bus_error *error);

/* Returns the uid of a caller of the bus; UID_UNKNOWN (UINT32_MAX) if it is not known. */
uint32_t caller_uid(Server *s, sd_bus_message *call);

/* Charges the caller for a typed reply about many objects. Returns 0 if the reply may be sent. If the reply is long and
 * the caller has had too many of them within a minute, refuses the call and returns the result of refuse_sender().
 * Peers without a bus have no limit. */
int caller_charge_list(Server *s, sd_bus_message *call);

/* Sends the error reply that sd-bus itself would send for a method handler that returned `r` and set `error`. Sends
 * nothing if neither of them tells an error. */
void caller_reply_error(sd_bus_message *call, int r, const sd_bus_error *error);

/* The reply to GetConnectionCredentials of org.freedesktop.DBus (D-Bus Specification): who opened a connection. */

typedef struct Credentials {
        uint32_t uid;
        uint32_t pid;   /* 0: unknown */
        bool is_member; /* the process was in the group when it connected (own or supplementary group) */
} Credentials;

/* The time within which the bus must answer. */
#define CREDENTIALS_TIMEOUT_SEC 10U

/* Asks the bus for the credentials of the connection with this unique name. Does not block: handler gets the reply.
 * Returns 0 or a negative errno. */
int credentials_query(sd_bus *bus, const char *name, sd_bus_message_handler_t handler, void *userdata,
                      sd_bus_slot **ret);
/* Reads the credentials from the reply. group: the group for is_member; GID_NONE: none. Returns 0 or a negative errno:
 * -ESRCH when the reply is an error, for example because the connection is gone; -ETIMEDOUT when the bus did not
 * answer; -ENODATA when the bus does not tell the uid. */
int credentials_read(sd_bus_message *answer, gid_t group, Credentials *ret);

#define GID_NONE ((gid_t) (-1))

/* Logs which callers are refused because their calls are too many, too large or not permitted. A uid is named at most
 * once in a minute, and the bus is asked for the uid and the process of a sender at most once in a second, so that no
 * caller can make the daemon ask or log without end. Refusals that are not logged are counted. */

typedef struct Reports {
        sd_bus_slot *query; /* the pending GetConnectionCredentials */
        char *reason;   /* a sentence: why a call was refused; the query asks for the credentials of the sender of that
                           call */
        uint64_t asked; /* time of the last query: CLOCK_MONOTONIC, in microseconds */
        unsigned unlogged; /* refusals since the last message in the log, including the one that the query is about */
} Reports;

/* Logs that the call was refused, or counts the refusal. reason: a sentence. Does nothing for a peer without a bus, or
 * if reason is NULL because memory for it ran out. */
void report_refused(Server *s, sd_bus_message *call, const char *reason);
/* Logs that the call was refused, and replies with the refusal. Returns what a method of a vtable returns. */
int refuse_sender(Server *s, sd_bus_message *call, const Refusal *refusal);
/* Drops the pending query; call it when the connection to the bus is lost or the server ends. */
void reports_cancel(Reports *r);
