/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Messages between the programs of this package, on sockets of AF_UNIX. A message is a header, and as many bytes as the
 * header says. The mode of a socket's file decides who may connect. The bytes are C structures, because both ends run
 * on one machine. */

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "util/cleanup.h"

/* The version of all messages. Increase it when the layout or meaning of any message changes: during an upgrade one end
 * may be the old program. */
#define WIRE_VERSION 0x70740001U

typedef struct WireHeader {
        uint32_t version;
        int32_t code; /* in a request: what the sender asks for; in an answer: the result */
        uint64_t size;
} WireHeader;

typedef struct WireMessage {
        int code;
        void *data; /* size bytes and then a NUL; aligned for any type */
        size_t size;
} WireMessage;

void wire_message_done(WireMessage *m);
#define _cleanup_wire_ _cleanup_(wire_message_done)

/* Connects to the stream socket of a service. usec: the connect, and each later call on the connection, fails with
 * -EAGAIN when it would wait longer than this; 0: when it would wait at all. Returns a descriptor or negative errno. */
int wire_connect(const char *path, uint64_t usec);

/* The functions below wait if the descriptor is blocking, until its timeout; otherwise they fail with -EAGAIN. They
 * work on stream and packet sockets. A nonblocking packet socket sends and receives a message as a whole. They return 0
 * or a negative errno. */

/* Sends the n parts, at most 3, as one message. May be called in a signal handler. */
int wire_send(int fd, int code, const struct iovec *parts, size_t n);
/* Receives a message of at most max bytes. *ret is unchanged on failure. -ECONNRESET: the peer has closed the
 * connection. -EPROTONOSUPPORT: the peer has another WIRE_VERSION; the peer is sent a message, from which it gets the
 * same error. -EBADMSG: the message is incomplete or longer than max. */
int wire_receive(int fd, size_t max, WireMessage *ret);
/* Sends a request and receives the answer to it. */
int wire_exchange(int fd, int code, const struct iovec *parts, size_t n, size_t max, WireMessage *ret);
