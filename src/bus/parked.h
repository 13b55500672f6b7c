/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Parked calls. Each would be refused because a domain seems to run, but that domain may have ended, and libvirt's
 * event may be under way. So the calls wait until libvirt has listed the running domains again. */

#include "caller.h"

#define PARKED_MAX 16U
/* If libvirt does not answer within this time after the first call was parked, all parked calls are served with the
 * last known domains. */
#define PARKED_SEC 5U

typedef struct ParkedCall {
        sd_bus_message *call;
        CallerMethod method;
        uint32_t uid;
        uint64_t ticket; /* number of the request to libvirt for which the call waits */
} ParkedCall;

typedef struct Parked {
        ParkedCall calls[PARKED_MAX]; /* oldest first */
        size_t n;
        sd_event_source *timer; /* NULL: no call waits */
} Parked;

/* Parks the call until server_guests_listed() gets the ticket or a higher number, or PARKED_SEC have passed. Returns
 * false when PARKED_MAX calls are parked, or on an error; the caller of this function then serves the call at once. */
bool parked_add(Server *s, sd_bus_message *call, CallerMethod method, uint32_t uid, uint64_t ticket);
/* Drops all parked calls without a reply. */
void parked_done(Server *s);
