/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The event loop of a scheduler's agent, and its calls of passthroughd. These calls never start passthroughd, because
 * the administrator may have stopped it. */

#include <json-c/json.h>
#include <systemd/sd-bus.h>

/* Creates a loop that serves the bus and ends when the bus connection ends. It calls on_reload() at SIGHUP. */
int agent_loop_new(sd_bus *bus, sd_event_signal_handler_t on_reload, void *userdata, sd_event **ret);
/* Blocks the signal and handles it in the loop. on_signal: NULL to end the loop. */
int agent_add_signal(sd_event *event, int number, sd_event_signal_handler_t on_signal, void *userdata);
/* Adds a source that, each time it is enabled, calls run() once, after all other sources. */
int agent_add_idle(sd_event *event, sd_event_source **ret, sd_event_handler_t run, void *userdata);
/* Adds a timer, which is off until agent_set_timer(). */
int agent_add_timer(sd_event *event, sd_event_source **ret, sd_event_time_handler_t run, void *userdata);
/* Starts the timer, which fires once after usec. 0 or a negative errno, logged. */
int agent_set_timer(sd_event_source *timer, uint64_t usec);
/* Tells systemd that the agent is ready, and runs the loop. 0 or a negative errno, logged. */
int agent_loop_run(sd_event *event);

/* Calls on_change() when anything on the node has changed, and on_owner() when passthroughd starts or ends, because
 * guests may have used devices while it did not run. */
int daemon_watch(sd_bus *bus, sd_bus_message_handler_t on_change, sd_bus_message_handler_t on_owner, void *userdata);

/* Makes a call of a method of the manager object. */
int daemon_new_call(sd_bus *bus, const char *member, sd_bus_message **ret);

/* Read the document of the node that org.passthroughd1(5) describes. daemon_describe() waits for it. daemon_ask() calls
 * on_reply() from the loop, which passes the reply to daemon_read(). 0 or a negative errno, logged; -ESRCH:
 * passthroughd does not run. */
int daemon_describe(sd_bus *bus, json_object **ret);
int daemon_ask(sd_bus *bus, sd_bus_slot **ret_slot, sd_bus_message_handler_t on_reply, void *userdata);
int daemon_read(sd_bus_message *reply, json_object **ret);
