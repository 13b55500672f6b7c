/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <systemd/sd-bus.h>

/* Reads the text in the daemon's reply: a string, or a variant with a string or with a descriptor from which to read
 * the text. 0 or a negative errno; the caller frees *ret. */
int bus_read_reply_text(sd_bus_message *reply, char **ret);
