/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Converts D-Bus properties to a JSON object with the keys and values of the daemon's JSON. */

#include "reply.h"

/*
 * Reads an a{sv}: the key "NumaNode" becomes "numa_node", the values "" and -1 become null, and a PCI class becomes six
 * hex digits. Arrays of anything but strings are left out. 0 or a negative errno, not reported: -ENOMEM, or another one
 * for a bad message. The caller frees *ret.
 */
int properties_read(sd_bus_message *msg, json_object **ret);
