/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Limits the typed replies about thousands of objects. dbus-daemon counts what clients have not read against the
 * daemon, and reads no message of the daemon beyond 127 MiB. So the clients of the bus may ask for so many bytes in a
 * minute. A further call is refused with LimitExceeded. Replies of at most 16 KiB do not count. Root's peers have no
 * limit.
 */

#include <systemd/sd-bus.h>

#include "bus/server.h"

/* Estimated bytes in a minute: for one sender, and for all. */
#define BUDGET_OF_ONE      (UINT64_C(32) << 20)
#define BUDGET_OF_ALL      (UINT64_C(64) << 20)
/* The limit of one sender is for so many senders in a minute. */
#define BUDGET_SENDERS_MAX 64U

typedef struct Budget {
        uint64_t since; /* CLOCK_MONOTONIC, in microseconds: when the minute began */
        uint64_t all;   /* bytes */
        struct {
                char sender[32]; /* "": not in use */
                uint64_t bytes;
        } senders[BUDGET_SENDERS_MAX];
} Budget;

/* False: the reply to this call is long, and its sender, or all senders, had too many of them. */
bool budget_allows(Server *s, sd_bus_message *call);
