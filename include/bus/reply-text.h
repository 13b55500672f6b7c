/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <systemd/sd-bus.h>

/* Reads the text in the daemon's reply. The reply is a string, or a variant that holds a string or a descriptor of a
 * file with the text. Returns 0 or a negative errno; the caller frees *ret. */
int bus_read_reply_text(sd_bus_message *reply, char **ret);
