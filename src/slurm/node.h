/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The connection to passthroughd. */

#include <systemd/sd-bus.h>

/* Connects to the bus with this address; NULL: the system bus. 0 or a negative errno. */
int node_open_bus(const char *address, sd_bus **ret);

/* Reads a variant of a string, or of a descriptor of a file with the text. The caller frees *ret. 0 or a negative
 * errno. */
int node_read_text(sd_bus_message *reply, char **ret);
