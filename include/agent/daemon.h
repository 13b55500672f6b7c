/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The event loop of a scheduler's agent, and the agent's calls of passthroughd. These calls never start passthroughd,
 * because the administrator may have stopped it. */

#include <json-c/json.h>
#include <systemd/sd-bus.h>

/* Creates an event loop that serves the bus and ends when the bus connection ends. The loop calls on_reload() at
 * SIGHUP. As all functions below, returns 0 or more, or a negative errno, and logs a failure only if the comment says
 * so. */
int agent_loop_new(sd_bus *bus, sd_event_signal_handler_t on_reload, void *userdata, sd_event **ret);
/* Blocks the signal, so that only the loop handles it: the loop calls on_signal(), or ends if on_signal is NULL. */
int agent_add_signal(sd_event *event, int number, sd_event_signal_handler_t on_signal, void *userdata);
/* Adds a source to the loop. Each time the caller enables the source with SD_EVENT_ONESHOT, the loop calls run() once,
 * after all other pending sources. */
int agent_add_idle(sd_event *event, sd_event_source **ret, sd_event_handler_t run, void *userdata);
/* Adds a timer to the loop. The timer is off until agent_set_timer(). */
int agent_add_timer(sd_event *event, sd_event_source **ret, sd_event_time_handler_t run, void *userdata);
/* Starts the timer, which calls run() once after usec microseconds. Logs a failure. */
int agent_set_timer(sd_event_source *timer, uint64_t usec);
/* Tells systemd that the agent is ready, and runs the loop until it ends. Logs a failure; the end of the bus connection
 * is one, -ECONNRESET. */
int agent_loop_run(sd_event *event);

/* Watches the bus: calls on_change() when anything on the node has changed, and on_owner() when passthroughd starts or
 * ends. While passthroughd does not run, guests may use devices without a signal to the agent. */
int daemon_watch(sd_bus *bus, sd_bus_message_handler_t on_change, sd_bus_message_handler_t on_owner, void *userdata);

/* Creates a call of a method of the manager object. The caller appends arguments and unreferences *ret. */
int daemon_new_call(sd_bus *bus, const char *member, sd_bus_message **ret);

/* Calls of the method Describe, whose reply is the node as JSON (org.passthroughd1(5)). daemon_describe() waits for the
 * reply and reads it. daemon_ask() does not wait: the loop calls on_reply(), which passes the reply to daemon_read().
 * The caller owns *ret. Return 0 or a negative errno, logged. -ESRCH, not from daemon_ask(): passthroughd does not run.
 */
int daemon_describe(sd_bus *bus, json_object **ret);
int daemon_ask(sd_bus *bus, sd_bus_slot **ret_slot, sd_bus_message_handler_t on_reply, void *userdata);
int daemon_read(sd_bus_message *reply, json_object **ret);
