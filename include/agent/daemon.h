/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What agents of schedulers ask passthroughd. It is never started for this: the administrator may have stopped it. */

#include <json-c/json.h>
#include <systemd/sd-bus.h>

/* Calls on_change() when anything on the node has changed, and on_owner() when passthroughd starts or ends; guests may
 * have used devices while it did not run. */
int daemon_watch(sd_bus *bus, sd_bus_message_handler_t on_change, sd_bus_message_handler_t on_owner, void *userdata);

/* A call of a method of the manager object. */
int daemon_new_call(sd_bus *bus, const char *member, sd_bus_message **ret);

/* The document of the node, org.passthroughd1(5). daemon_describe() waits for it; daemon_ask() calls on_reply() from
 * the loop, which reads the document with daemon_read(). 0 or a negative errno, logged; -ESRCH: passthroughd does not
 * run. */
int daemon_describe(sd_bus *bus, json_object **ret);
int daemon_ask(sd_bus *bus, sd_bus_slot **ret_slot, sd_bus_message_handler_t on_reply, void *userdata);
int daemon_read(sd_bus_message *reply, json_object **ret);
