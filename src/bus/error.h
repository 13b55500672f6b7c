/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Sends refusals as D-Bus error replies. The verdict gives the error name. The reply has two strings: the message with
 * the remedy, and the refusal as JSON. */

#include <systemd/sd-bus.h>

#include "model/refusal.h"

/* Returns the D-Bus error name for a verdict. */
const char *bus_error_name(Verdict v);

/* Replies to call. Returns 1 or negative errno, which the method returns to sd-bus. */
int bus_reply_refusal(sd_bus_message *call, const Refusal *r);
/* As bus_reply_refusal(), with the two strings of the reply. */
int bus_reply_verdict(sd_bus_message *call, Verdict v, const char *message, const char *json);
