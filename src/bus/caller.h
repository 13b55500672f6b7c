/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The callers: what the daemon knows about admitted connections of the bus (admission.h). */

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

#include "bus/server.h"

/* The longest call, in bytes. It suffices for a template, and for a request with all members. */
#define CALL_SIZE_MAX     (384U << 10)
/* The most connections that are remembered. */
#define CALLERS_KNOWN_MAX 256U

typedef struct KnownCaller {
        char sender[32]; /* unique name of a connection; "": not in use */
        uint32_t uid;
        bool may_read;
} KnownCaller;

/* The known callers; initially zeros. Reset it for a new connection to the bus, where others may have the same unique
 * names. */
typedef struct Callers {
        KnownCaller known[CALLERS_KNOWN_MAX];
        size_t next_known; /* the oldest of known[] */
} Callers;

/* Returns NULL when the caller is not known. */
KnownCaller *caller_find(Callers *c, const char *sender);
/* Stores a caller, in place of the oldest one when there are too many. */
void caller_remember(Callers *c, const char *sender, uint32_t uid, bool may_read);

/* Computes the size of the arguments of a call. Returns 0; or, when the call is too long, the return value of
 * refuse_sender(). */
int caller_check_size(Server *s, sd_bus_message *call, size_t *ret);

/* A method that needs the caller's uid. Return value and error are those of an sd_bus_message_handler_t. */
typedef int (*CallerMethod)(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error);

/* Calls the method with the caller's uid, unless the call is too long. A method of a vtable returns the return value. A
 * peer without a bus has the uid of its process. */
int caller_identify(Server *s, sd_bus_message *call, CallerMethod method, sd_bus_error *error);

/* Returns the uid of an admitted caller. */
uint32_t caller_uid(Server *s, sd_bus_message *call);

/* Charges a typed reply about many objects to the caller. Returns 0; or, when the reply is long and the caller had too
 * many of them within a minute, the return value of refuse_sender(). Root's peers have no limit. */
int caller_charge_list(Server *s, sd_bus_message *call);

/* Sends an error reply for a method that returned r and error, as sd-bus does after a method handler. */
void caller_reply_error(sd_bus_message *call, int r, const sd_bus_error *error);

/* The answer of org.freedesktop.DBus.GetConnectionCredentials (D-Bus Specification): who opened a connection. */

typedef struct Credentials {
        uint32_t uid;
        uint32_t pid;   /* 0: unknown */
        bool is_member; /* the group was the process's own or a supplementary one when it connected */
} Credentials;

/* The bus must answer within this time. */
#define CREDENTIALS_TIMEOUT_SEC 10U

/* Asks the bus about the connection with the unique name. Does not block: the handler gets the answer. */
int credentials_query(sd_bus *bus, const char *name, sd_bus_message_handler_t handler, void *userdata,
                      sd_bus_slot **ret);
/* Reads the answer. -ESRCH: the connection is gone. -ETIMEDOUT: the bus did not answer. -ENODATA: the bus does not tell
 * the uid. group: the group for is_member; GID_NONE: none. */
int credentials_read(sd_bus_message *answer, gid_t group, Credentials *ret);

#define GID_NONE ((gid_t) (-1))

/*
 * Logs whose calls are refused because they are too many, too large or not permitted. Each uid is named at most once in
 * a minute, and the bus is asked for the sender's uid and process at most once in a second, so a caller cannot make the
 * daemon ask or log without end. Refusals that are not logged are counted.
 */

typedef struct Reports {
        sd_bus_slot *query; /* the pending GetConnectionCredentials */
        char *reason;       /* why the caller of the pending query was refused: a sentence */
        uint64_t asked;     /* time of the last query: CLOCK_MONOTONIC, in microseconds */
        unsigned unlogged;  /* refusals since the last message */
} Reports;

/* Logs that the call was refused. reason: a sentence, or NULL when out of memory. Does nothing for a peer without a
 * bus, which is root. */
void report_refused(Server *s, sd_bus_message *call, const char *reason);
/* Logs that the call was refused, and replies with the refusal. */
int refuse_sender(Server *s, sd_bus_message *call, const Refusal *refusal);
/* Drops the pending query; call it when the connection to the bus is lost or the server ends. */
void reports_cancel(Reports *r);
