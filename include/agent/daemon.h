/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The loop of an agent of a scheduler, and what it asks passthroughd, which is never started for this: the
 * administrator may have stopped it. */

#include <json-c/json.h>
#include <systemd/sd-bus.h>

/* A loop with the bus, whose end ends it. It calls on_reload() at SIGHUP. */
int agent_loop_new(sd_bus *bus, sd_event_signal_handler_t on_reload, void *userdata, sd_event **ret);
/* Blocks the signal. on_signal: NULL to end the loop. */
int agent_add_signal(sd_event *event, int number, sd_event_signal_handler_t on_signal, void *userdata);
/* A source that calls its function once when it is enabled, after all others. */
int agent_add_idle(sd_event *event, sd_event_source **ret, sd_event_handler_t run, void *userdata);
/* A timer that is off until agent_set_timer(). */
int agent_add_timer(sd_event *event, sd_event_source **ret, sd_event_time_handler_t run, void *userdata);
/* The timer fires once, after this time. A negative errno was logged. */
int agent_set_timer(sd_event_source *timer, uint64_t usec);
/* Tells systemd that the agent is ready, and runs the loop. 0 or a negative errno, logged. */
int agent_loop_run(sd_event *event);

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
