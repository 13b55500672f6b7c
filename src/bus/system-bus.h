/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon's connection to the system bus. It is made in the background, and after a loss again with a growing delay.
 * It is logged once that the bus cannot be used, and once that the daemon has its name again.
 */

#include "connection.h"

typedef struct SystemBus {
        Connection connection;     /* member announced is true while the daemon owns its name */
        sd_bus_slot *query;        /* the pending GetNameOwner or RequestName; NULL: none */
        sd_event_source *retry;    /* timer of the next attempt to connect */
        sd_event_source *patience; /* ends the wait of the daemon's start for the bus; NULL: none */
        uint64_t delay;            /* delay of the last retry, in microseconds; 0: none since the daemon had its name */
        bool lost_logged;
} SystemBus;

/* Connects, and asks whether another daemon owns the name. In that case the event loop exits with a failure. */
void system_bus_start(Server *s);
/* Requests the name, now or as soon as the bus is connected. */
void system_bus_request_name(Server *s);
void system_bus_done(Server *s);
