/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The daemon's connection to the system bus. It is made in the background, and made again after a loss, with a growing
 * delay. The log tells once that the bus cannot be used, and once that the daemon owns its name again. */

#include "connection.h"

typedef struct SystemBus {
        Connection connection;     /* member announced is true while the daemon owns its name */
        sd_bus_slot *query;        /* the pending GetNameOwner or RequestName; NULL: none is pending */
        sd_event_source *retry;    /* timer of the next attempt to connect */
        sd_event_source *patience; /* ends startup's wait for the bus; NULL: startup does not wait */
        uint64_t delay; /* delay before the last new attempt, in usec; 0: no new attempt since the start, or since the
                           daemon owned its name */
        bool lost_logged;
} SystemBus;

/* Connects to the bus, and asks who owns the name. If another daemon owns it during startup, the event loop exits with
 * a failure. */
void system_bus_start(Server *s);
/* Requests the name, now, or as soon as the bus is connected. */
void system_bus_request_name(Server *s);
void system_bus_done(Server *s);
