/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Parses the request (a{sv}) of Plan, Allocate and Attach. */

#include <systemd/sd-bus.h>

#include "plan/request.h"

/* Parses the dictionary at the read position of the message into `r`, which the caller has initialised. Refuses with
 * VERDICT_INVALID_REQUEST if the dictionary cannot be read, or if a key is unknown, occurs twice, or has a value of the
 * wrong type or an invalid value. If memory runs out, the verdict is this one or VERDICT_LIMIT. */
Verdict bus_read_request(sd_bus_message *m, Request *r, Refusal *ret);
