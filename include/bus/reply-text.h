/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <systemd/sd-bus.h>

/* Reads the text of the daemon's reply: a string, or a variant of a string or of a descriptor to read it from. 0 or a
 * negative errno; the caller frees *ret. */
int bus_read_reply_text(sd_bus_message *reply, char **ret);
