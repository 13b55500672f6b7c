/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The connection to the daemon, and method calls. A call is sent asynchronously, and then these functions wait for the
 * reply, because sd_bus_call() drops the second string of an error reply, which is the refusal as JSON. A function that
 * returns a negative errno has reported the failure, unless its comment says otherwise. */

#include <systemd/sd-bus.h>

#include "bus/names.h"
#include "options.h"

typedef struct Client {
        sd_bus *bus;
        struct Replay *replay; /* with --node: the process that replays the node; else NULL */
        const Args *args;      /* not owned */
        bool is_private;       /* connected to the private socket of the daemon */
} Client;

/* Connects to the private socket of the daemon if this user may open it and $DBUS_SYSTEM_BUS_ADDRESS is not set,
 * otherwise to the system bus. With --node, connects to a process that replays a recorded node. Returns 0 or a negative
 * errno. */
int client_new(const Args *args, Client **ret);
/* As client_new(), but never uses the private socket. For a client that follows who owns the daemon's bus name. */
int client_new_on_bus(const Args *args, Client **ret);
Client *client_free(Client *c);
DEFINE_CLEANUP(Client *, client_free)

/* Creates a call of a method of the Manager. The caller appends arguments, and unreferences *ret. */
int client_method(Client *c, const char *member, sd_bus_message **ret);
/* As client_method(), for a method of another interface of the Manager's object. */
int client_method_of(Client *c, const char *interface, const char *member, sd_bus_message **ret);

/* Sends the call and waits for the reply, at most CLIENT_TIMEOUT_USEC. ret_reply may be NULL. Returns 0 or a negative
 * errno: -EREMOTEIO for an error reply; -EINTR, not reported, for Ctrl-C after client_catch_interrupt(). */
int client_call(Client *c, sd_bus_message *call, sd_bus_message **ret_reply);
#define CLIENT_TIMEOUT_USEC (120 * UINT64_C(1000000))

/* Calls the method of the Manager, and waits for the reply, as client_call(). types and the arguments after it are
 * those of sd_bus_message_append(). */
int client_ask(Client *c, const char *member, sd_bus_message **ret_reply, const char *types, ...);

/* Reads the text of a reply, as bus_read_reply_text(). The caller frees *ret. */
int client_read_text(const Client *c, sd_bus_message *reply, char **ret);

/* From now on, client_call() and client_turn() return -EINTR on Ctrl-C, which otherwise ends the program. */
void client_catch_interrupt(void);

/* The match rule for NameOwnerChanged of the daemon's bus name: the daemon started, ended or was replaced. */
#define CLIENT_MATCH_OWNER                                                                                             \
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"      \
        "path='/org/freedesktop/DBus',arg0='" BUS_NAME "'"

/* Waits for messages and dispatches one. Returns 0, or a negative errno, not reported: -EINTR on Ctrl-C. */
int client_turn(Client *c);
/* As client_turn(), but waits at most until `usec`, a time of CLOCK_MONOTONIC. */
int client_turn_until(Client *c, uint64_t usec);

/* Reports that the connection to the daemon is lost. Returns `error`. */
int client_lost(const Client *c, int error);

/* Reports that a reply cannot be parsed. Returns `error`. */
int client_bad_reply(const Client *c, int error);
