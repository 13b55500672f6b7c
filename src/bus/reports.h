/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Tells the journal whose calls are refused because they are too many, too large or not permitted. Each uid is named
 * once in a minute. The bus is asked for the sender's uid and process at most once in a second, so a caller cannot make
 * the daemon ask or log without end; refusals that are not logged are counted.
 */

#include <systemd/sd-bus.h>

#include "bus/server.h"

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
