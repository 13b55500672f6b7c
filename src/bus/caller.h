/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Who calls: what the daemon knows about the connections of the bus that were admitted, see admission.h. */

#include <stdbool.h>
#include <sys/types.h>
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

/* Asks the bus who opened a connection: org.freedesktop.DBus.GetConnectionCredentials, D-Bus Specification. */

typedef struct Credentials {
        uint32_t uid;
        uint32_t pid;   /* 0: the bus does not tell */
        bool is_member; /* the process had the group as its own or as a supplementary one when it connected */
} Credentials;

/* The bus must answer within this time. */
#define CREDENTIALS_TIMEOUT_SEC 10U

/* Asks about the connection with the unique name. Does not wait: the handler gets the answer. */
int credentials_query(sd_bus *bus, const char *name, sd_bus_message_handler_t handler, void *userdata,
                      sd_bus_slot **ret);
/* Reads the answer. -ESRCH: the connection is gone. -ETIMEDOUT: the bus did not answer. -ENODATA: the bus does not tell
 * the uid. group: GID_NONE when no group counts. */
int credentials_read(sd_bus_message *answer, gid_t group, Credentials *ret);

#define GID_NONE ((gid_t) (-1))

/*
 * Tells the journal whose calls are refused because they are too many, too large or not permitted. Each uid is named
 * once in a minute. The bus is asked for the sender's uid and process at most once in a second, so a caller cannot make
 * the daemon ask or log without end; refusals that are not logged are counted.
 */

typedef struct Reports {
        sd_bus_slot *query; /* the pending GetConnectionCredentials */
        char *reason;       /* of the refusal that the query is about: a sentence */
        uint64_t asked;     /* CLOCK_MONOTONIC, in microseconds */
        unsigned unlogged;  /* refusals since the last message */
} Reports;

/* The call was refused; reason is a sentence, or NULL when out of memory. Does nothing for a peer without a bus, which
 * is root. */
void report_refused(Server *s, sd_bus_message *call, const char *reason);
/* The same, and replies with the refusal. */
int refuse_sender(Server *s, sd_bus_message *call, const Refusal *refusal);
/* Forgets the pending query. The connection to the bus is lost, or the server ends. */
void reports_cancel(Reports *r);
