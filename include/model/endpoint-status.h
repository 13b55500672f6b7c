/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the daemon has found out about endpoints of services while it runs: whether they accept connections. Not on
 * disk: forgotten when the daemon ends. Pure.
 *
 * An endpoint that has accepted no connection since the daemon started is down after the first failed connect. An
 * endpoint that has accepted one is down after two failed connects in a row, so that a restart of its server takes no
 * slots from the node. One accepted connection brings an endpoint back. ENDPOINT_UNKNOWN changes neither the state nor
 * the count of failed connects.
 */

#include <stdbool.h>
#include <stddef.h>

#define ENDPOINT_MAX 127U /* bytes of HOST:PORT */

/* The outcome of a connect to an endpoint. If the host's addresses have different outcomes, the one with the lowest
 * value counts, but ENDPOINT_UNKNOWN only if there is no other. */
typedef enum EndpointAnswer {
        ENDPOINT_UNKNOWN,     /* the connect was impossible, or its outcome is unknown */
        ENDPOINT_ACCEPTS,     /* the endpoint accepted the connection */
        ENDPOINT_REFUSES,     /* the host refused the connection */
        ENDPOINT_SILENT,      /* no answer in time */
        ENDPOINT_UNREACHABLE, /* there is no route to the host */
        ENDPOINT_NAMELESS,    /* the host name does not exist */
        _ENDPOINT_ANSWER_MAX,
} EndpointAnswer;

typedef enum EndpointState {
        ENDPOINT_STATE_UNKNOWN, /* counts as up */
        ENDPOINT_STATE_UP,
        ENDPOINT_STATE_DOWN,
        _ENDPOINT_STATE_MAX,
} EndpointState;
const char *endpoint_state_to_string(EndpointState s);

typedef struct EndpointStatus {
        char name[ENDPOINT_MAX + 1]; /* HOST:PORT */
        EndpointState state;
        EndpointAnswer answer; /* the last known outcome; ENDPOINT_UNKNOWN: none yet */
        unsigned failed;       /* failed connects since the last accepted one */
        bool unclear;          /* the latest outcome was ENDPOINT_UNKNOWN, so answer is older */
} EndpointStatus;

typedef struct EndpointStatusTable {
        EndpointStatus *endpoints; /* unsorted: a node has few endpoints */
        size_t n;
} EndpointStatusTable;

void endpoint_status_table_done(EndpointStatusTable *t);

/* Adds the endpoint, with an unknown state, unless it is in the table. 0 or -ENOMEM. */
int endpoint_status_add(EndpointStatusTable *t, const char *name);
void endpoint_status_remove(EndpointStatusTable *t, size_t i);
/* Enters the outcome of a connect. Returns true if the state has changed by it. */
bool endpoint_status_take(EndpointStatus *s, EndpointAnswer answer);

/* In the following functions all states of a NULL table are unknown. */
/* Returns the entry of the endpoint, valid until the table changes. NULL: none. */
EndpointStatus *endpoint_status_find(const EndpointStatusTable *t, const char *name);
EndpointState endpoint_status_state(const EndpointStatusTable *t, const char *name);
/* Returns why the endpoint is down, "it refuses connections". NULL: it is not down. */
const char *endpoint_status_reason(const EndpointStatusTable *t, const char *name);
