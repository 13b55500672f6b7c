/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Calls that wait until libvirt has listed the running domains again. A call that would be refused because of a domain
 * waits, because the domain may just have ended and libvirt's event may not have arrived yet.
 */

#include "caller.h"

#define PARKED_MAX 16U
/* If libvirt has not answered within this time, the last known domains count. */
#define PARKED_SEC 5U

typedef struct ParkedCall {
        sd_bus_message *call;
        CallerMethod method;
        uint32_t uid;
        uint64_t ticket; /* number of the list for which the call waits */
} ParkedCall;

typedef struct Parked {
        ParkedCall calls[PARKED_MAX]; /* oldest first */
        size_t n;
        sd_event_source *timer; /* NULL: no call waits */
} Parked;

/* Parks the call. Returns false when there is no room; the caller then serves the call at once. */
bool parked_add(Server *s, sd_bus_message *call, CallerMethod method, uint32_t uid, uint64_t ticket);
/* Drops all calls without a reply. */
void parked_done(Server *s);
