/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One D-Bus connection of the daemon: to the system bus, or to a peer without a bus. It serves all objects. The daemon
 * reads no calls while the other side does not read, and closes the connection when messages wait too long. */

#include <systemd/sd-bus.h>

#include "bus/server.h"

typedef struct Connection Connection;

/* Called when the connection is lost; must call connection_close(), or end the event loop. why: the cause as a clause
 * for the journal; NULL: the other side closed the connection. */
typedef void (*ConnectionLost)(Connection *c, const char *why);

struct Connection {
        Server *server;
        sd_bus *bus;               /* NULL: closed */
        sd_event_source *timer;    /* fires when messages wait too long, when the connection is given up, or when sd-bus
                                      may hold messages that were read and not yet served */
        sd_event_source *writable; /* watches the socket while messages wait; NULL: sd-bus watches the socket */
        bool authenticated;
        bool given_up;  /* connection_give_up() was called */
        bool announced; /* signals are sent on this connection */
        ConnectionLost lost;
};

/* Adds the objects, starts the connection and attaches it to the event loop. Takes ownership of bus. Returns 0 or a
 * negative errno. */
int connection_open(Connection *c, Server *s, sd_bus *bus, ConnectionLost lost);
/* As connection_open(), for a peer without a bus on the connected socket fd. The peer may call every method. Takes
 * ownership of fd. */
int connection_open_peer(Connection *c, Server *s, int fd, ConnectionLost lost);
/* Closes the connection because its other side does not answer: not at once, but in the next turn of the event loop, so
 * that a callback of sd-bus can call this. */
void connection_give_up(Connection *c);
/* Closes the connection. Drops the messages that wait to be sent, and the calls that wait for a child or for polkit.
 * May be called again. */
void connection_close(Connection *c);
