/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The connection to the daemon and calls over it. Calls are made asynchronously and waited for here, because
 * sd_bus_call() drops the second string of an error reply, which is the refusal as JSON. Every failure is reported
 * before a function returns negative.
 */

#include <systemd/sd-bus.h>

#include "options.h"

typedef struct Client {
        sd_bus *bus;
        struct Replay *replay; /* with --node, whose connection it is */
        const Args *args;      /* not owned */
} Client;

/* Connects to this node's system bus, with --host to another's, or with --node to a process that answers for a recorded
 * node. */
int client_new(const Args *args, Client **ret);
Client *client_free(Client *c);
DEFINE_CLEANUP(Client *, client_free)

/* A call to the Manager, without arguments yet. */
int client_method(Client *c, const char *member, sd_bus_message **ret);

/* Sends it and waits for the reply, CLIENT_TIMEOUT_USEC at most. -EINTR on Ctrl-C after client_catch_interrupt(), not
 * reported. */
int client_call(Client *c, sd_bus_message *call, sd_bus_message **ret_reply);
#define CLIENT_TIMEOUT_USEC (120 * UINT64_C(1000000))

/* client_method(), arguments as in sd_bus_message_append(), client_call(). */
int client_ask(Client *c, const char *member, sd_bus_message **ret_reply, const char *types, ...);

/* From now on Ctrl-C no longer ends the program but client_call() and client_turn(). */
void client_catch_interrupt(void);

/* Waits for traffic and dispatches one message. 0, -EINTR on Ctrl-C, or another negative errno (neither is reported).
 */
int client_turn(Client *c);

/* Reports that the bus cannot be reached any more. Returns error. */
int client_lost(const Client *c, int error);

/* Reports an answer that could not be read. Returns error. */
int client_bad_reply(const Client *c, int error);
