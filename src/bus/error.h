/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Sends refusals as D-Bus errors. The verdict decides the name of the error. The error has two strings: the message
 * with the remedy, and the refusal as JSON. */

#include <systemd/sd-bus.h>

#include "model/refusal.h"

/* Returns the D-Bus error name for the verdict. */
const char *bus_error_name(Verdict v);

/* Replies to call with the refusal. Returns 1 or a negative errno, which the method returns to sd-bus. */
int bus_reply_refusal(sd_bus_message *call, const Refusal *r);
/* As bus_reply_refusal(), with the two strings of the error as arguments. */
int bus_reply_verdict(sd_bus_message *call, Verdict v, const char *message, const char *json);
