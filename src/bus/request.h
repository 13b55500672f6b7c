/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Parses the request (a{sv}) of Plan and Allocate. */

#include <systemd/sd-bus.h>

#include "plan/request.h"

/* Parses the dictionary at the message's read position into r, which the caller initialised. VERDICT_INVALID_REQUEST if
 * a key is unknown, occurs twice or has the wrong type; the refusal names the key. */
Verdict bus_read_request(sd_bus_message *m, Request *r, Refusal *ret);
