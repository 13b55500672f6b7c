/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The a{sv} of Plan and Allocate. */

#include <systemd/sd-bus.h>

#include "plan/request.h"

/* Reads into r, initialised by the caller, the dictionary at the message's position. VERDICT_INVALID_REQUEST names the
 * key that is unknown, twice there or of the wrong type. */
Verdict bus_read_request(sd_bus_message *m, Request *r, Refusal *ret);
