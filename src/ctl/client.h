/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The connection to the daemon, and method calls. A call is sent asynchronously and this code waits for its reply,
 * because sd_bus_call() drops the second string of an error reply, which is the refusal as JSON. A function that
 * returns a negative errno has reported the failure, unless its comment says otherwise.
 */

#include <systemd/sd-bus.h>

#include "bus/names.h"
#include "options.h"

typedef struct Client {
        sd_bus *bus;
        struct Replay *replay; /* with --node: the process at the other end of bus; else NULL */
        const Args *args;      /* not owned */
        bool is_private;       /* connected to the daemon's private socket */
} Client;

/* Connects to the daemon's private socket if this user may open it, otherwise to this node's system bus. With --node,
 * connects to a process that replays a recorded node. */
int client_new(const Args *args, Client **ret);
/* As client_new(), but never uses the private socket: a client that follows the daemon's name needs the bus. */
int client_new_on_bus(const Args *args, Client **ret);
Client *client_free(Client *c);
DEFINE_CLEANUP(Client *, client_free)

/* Creates a call to a method of the Manager. The caller appends the arguments and unreferences *ret. */
int client_method(Client *c, const char *member, sd_bus_message **ret);
/* As client_method(), for another interface of the Manager. */
int client_method_of(Client *c, const char *interface, const char *member, sd_bus_message **ret);

/*
 * Sends the call and waits for the reply, CLIENT_TIMEOUT_USEC at most. ret_reply may be NULL. -EREMOTEIO for an error
 * reply. -EINTR on Ctrl-C after client_catch_interrupt(), not reported.
 */
int client_call(Client *c, sd_bus_message *call, sd_bus_message **ret_reply);
#define CLIENT_TIMEOUT_USEC (120 * UINT64_C(1000000))

/* Calls client_method() and client_call(), with arguments as for sd_bus_message_append(). */
int client_ask(Client *c, const char *member, sd_bus_message **ret_reply, const char *types, ...);

/* Reads the text in a reply: a string, or a variant with a string or with a descriptor from which to read the text. The
 * caller frees *ret. */
int client_read_text(const Client *c, sd_bus_message *reply, char **ret);

/* Catches Ctrl-C from now on: client_call() and client_turn() return -EINTR instead of ending the program. */
void client_catch_interrupt(void);

/* A match for the signal that the daemon took or lost its name on the bus. */
#define CLIENT_MATCH_OWNER                                                                                             \
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"      \
        "path='/org/freedesktop/DBus',arg0='" BUS_NAME "'"

/* Waits for traffic and dispatches one message. 0, or a negative errno, not reported; -EINTR on Ctrl-C. */
int client_turn(Client *c);
/* As client_turn(), but waits at most until this time of CLOCK_MONOTONIC. */
int client_turn_until(Client *c, uint64_t usec);

/* Reports a lost connection to the bus. Returns error. */
int client_lost(const Client *c, int error);

/* Reports a reply that could not be parsed. Returns error. */
int client_bad_reply(const Client *c, int error);
