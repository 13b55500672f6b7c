/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The connection to passthroughd. */

#include <systemd/sd-bus.h>

/* Connects to the bus with this address; NULL: the system bus. 0 or a negative errno. */
int node_open_bus(const char *address, sd_bus **ret);

/* Makes a call of a method of the Manager. The call does not start passthroughd, which the administrator may have
 * stopped. */
int node_new_call(sd_bus *bus, const char *member, sd_bus_message **ret);

/* Calls a method of the Manager, as sd_bus_call_method() does. 0 or more, or a negative errno. *ret_error is set if the
 * call failed, and stays unset if the message could not be made. */
int node_call(sd_bus *bus, const char *member, sd_bus_error *ret_error, sd_bus_message **ret_reply, const char *types,
              ...);
