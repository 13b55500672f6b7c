/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Limits the typed replies about thousands of objects. dbus-daemon counts what clients have not read against the
 * daemon, and reads no message of the daemon beyond 127 MiB. So the clients of the bus may ask for so many bytes in a
 * minute. A further call is refused with LimitExceeded. Replies of at most 16 KiB do not count. Root's peers have no
 * limit. Callers are counted as in answers.h.
 */

#include <systemd/sd-bus.h>

#include "bus/server.h"

/* Estimated bytes in a minute: for one caller, and for all callers that have asked for more than their share. */
#define BUDGET_OF_ONE      (UINT64_C(24) << 20)
#define BUDGET_SHARE       (UINT64_C(9) << 20)
#define BUDGET_OF_ALL      (UINT64_C(48) << 20)
/* The limit of one caller is for so many callers in a minute. */
#define BUDGET_CALLERS_MAX 64U

typedef struct Budget {
        uint64_t since;        /* CLOCK_MONOTONIC, in microseconds: when the minute began */
        uint64_t root, others; /* bytes */
        struct {
                char name[32]; /* of a connection of root, or "uid N"; "": not in use */
                uint64_t bytes;
        } callers[BUDGET_CALLERS_MAX];
} Budget;

/* 0; or, when the reply to this call is long and its caller, or all callers, had too many of them, what refuse_sender()
 * returns. */
int budget_check(Server *s, sd_bus_message *call);
