/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the daemon has found out about endpoints of services while it runs: whether they accept connections. Not on
 * disk: forgotten when the daemon ends. Pure.
 *
 * An endpoint that has never answered is down after one failed connect: guests cannot use it, and the node may have
 * just booted. An endpoint that has answered is down after two failed connects in a row, so that a restart of its
 * server takes no slots from the node. One accepted connection brings an endpoint back. An unknown answer changes
 * neither the state nor the count of failed connects.
 */

#include <stdbool.h>
#include <stddef.h>

#define ENDPOINT_MAX 127U /* bytes of HOST:PORT */

/* The outcome of a connect. If the addresses of a host have different outcomes, the lowest value counts, with
 * ENDPOINT_UNKNOWN as the highest. */
typedef enum EndpointAnswer {
        ENDPOINT_UNKNOWN,     /* the connect was not possible, or its outcome is not known */
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
        EndpointAnswer answer; /* the last known answer; ENDPOINT_UNKNOWN before the first */
        unsigned failed;       /* failed connects since the last accepted one */
        bool unclear;          /* the answer after it was ENDPOINT_UNKNOWN */
} EndpointStatus;

typedef struct EndpointStatusTable {
        EndpointStatus *endpoints; /* in no order: services have few endpoints */
        size_t n;
} EndpointStatusTable;

void endpoint_status_table_done(EndpointStatusTable *t);

/* Adds the endpoint in an unknown state, if the table does not have it. 0 or -ENOMEM. */
int endpoint_status_add(EndpointStatusTable *t, const char *name);
void endpoint_status_remove(EndpointStatusTable *t, size_t i);
/* Updates the status from an answer. Returns true if the state has changed. */
bool endpoint_status_take(EndpointStatus *s, EndpointAnswer answer);

/* In the functions below t may be NULL, which means that all states are unknown. */
/* Returns NULL if the table does not have the endpoint. The pointer is valid until the table changes. */
EndpointStatus *endpoint_status_find(const EndpointStatusTable *t, const char *name);
EndpointState endpoint_status_state(const EndpointStatusTable *t, const char *name);
/* Returns why the endpoint is down, "it refuses connections", or NULL if it is not down. */
const char *endpoint_status_reason(const EndpointStatusTable *t, const char *name);
