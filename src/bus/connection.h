/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A D-Bus connection of the daemon: to the system bus, or to a peer without a bus. It serves all objects. Calls are
 * read only while the other side reads, and the connection is lost when messages wait too long.
 */

#include <systemd/sd-bus.h>

#include "bus/server.h"

typedef struct Connection Connection;

/* The connection is of no use any more. why: a clause for the journal; NULL: the other side closed the connection. The
 * function calls connection_close(). */
typedef void (*ConnectionLost)(Connection *c, const char *why);

struct Connection {
        Server *server;
        sd_bus *bus;               /* NULL: closed */
        sd_event_source *timer;    /* ends when messages wait too long, or at once when sd-bus may have read some */
        sd_event_source *writable; /* the socket, while messages wait and no call is read; NULL: sd-bus watches it */
        bool authenticated;
        bool given_up;  /* connection_give_up() was called */
        bool announced; /* the other side is sent signals */
        ConnectionLost lost;
};

/* Adds the objects, starts the connection and attaches it to the event loop. Takes ownership of bus. */
int connection_open(Connection *c, Server *s, sd_bus *bus, ConnectionLost lost);
/* The same for a peer on the connected socket fd, which may call every method. Takes ownership of fd. */
int connection_open_peer(Connection *c, Server *s, int fd, ConnectionLost lost);
/* The other side does not answer: the connection is lost in the next turn of the event loop. sd-bus does not allow to
 * close it in a callback of its own. */
void connection_give_up(Connection *c);
/* Drops what is queued. Idempotent. */
void connection_close(Connection *c);
