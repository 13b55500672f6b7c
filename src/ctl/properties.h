/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Properties as D-Bus has them, as an object with the keys and values that the daemon's JSON would have. */

#include "reply.h"

/*
 * Reads an a{sv}: "NumaNode" becomes "numa_node", "" and -1 become null, a class six hex digits. Arrays are left out.
 * Negative errno, not reported; -ENOMEM is the only one that does not lie in the message.
 */
int properties_read(sd_bus_message *msg, json_object **ret);
