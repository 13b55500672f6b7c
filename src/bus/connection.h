/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A D-Bus connection of the daemon: to the system bus, or to a peer without a bus. It serves all objects. Calls are
 * read only while the other side reads, and the connection is lost when messages wait too long.
 */

#include <systemd/sd-bus.h>

#include "bus/server.h"

typedef struct Connection Connection;

/* Called when the connection is lost; must call connection_close(). why: a clause for the journal; NULL: the other side
 * closed the connection. */
typedef void (*ConnectionLost)(Connection *c, const char *why);

struct Connection {
        Server *server;
        sd_bus *bus;               /* NULL: closed */
        sd_event_source *timer;    /* fires when messages wait too long, or when sd-bus may have read some */
        sd_event_source *writable; /* watches the socket while messages wait; NULL: sd-bus does */
        bool authenticated;
        bool given_up;  /* connection_give_up() was called */
        bool announced; /* signals are sent to the other side */
        ConnectionLost lost;
};

/* Adds the objects, starts the connection and attaches it to the event loop. Takes ownership of bus. */
int connection_open(Connection *c, Server *s, sd_bus *bus, ConnectionLost lost);
/* As connection_open(), for a peer on the connected socket fd, which may call every method. Takes ownership of fd. */
int connection_open_peer(Connection *c, Server *s, int fd, ConnectionLost lost);
/* Closes the connection, whose other side does not answer, in the next turn of the event loop: a callback of sd-bus may
 * not close it. */
void connection_give_up(Connection *c);
/* Closes the connection and drops queued messages. Idempotent. */
void connection_close(Connection *c);
