/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Refusals as D-Bus error replies: the name from the verdict, the sentence as message, the refusal as JSON beside it.
 */

#include <systemd/sd-bus.h>

#include "model/refusal.h"

/* The error name for a verdict. */
const char *bus_error_name(Verdict v);

/* Replies to call. Returns 1 or negative errno, for "return bus_reply_refusal(...)" in a method. */
int bus_reply_refusal(sd_bus_message *call, const Refusal *r);
