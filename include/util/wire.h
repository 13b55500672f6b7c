/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Messages between the programs of this package, on sockets of AF_UNIX: a header, and as many bytes as it says. The
 * mode of a socket's file decides who may connect. The bytes are structures of C, because both ends are on one machine.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "util/cleanup.h"

/* Increase it when the layout or meaning of any message changes: during an upgrade one end may be the old program. */
#define WIRE_VERSION 0x70740001U

typedef struct WireHeader {
        uint32_t version;
        int32_t code; /* of a request: what it asks for; of an answer: the result */
        uint64_t size;
} WireHeader;

typedef struct WireMessage {
        int code;
        void *data; /* size bytes, and a NUL, aligned for any type */
        size_t size;
} WireMessage;

void wire_message_done(WireMessage *m);
#define _cleanup_wire_ _cleanup_(wire_message_done)

/* Connects to the stream socket of a service. Each call on the connection fails with -EAGAIN after usec; 0: when it
 * would have to wait. Returns a descriptor or a negative errno. */
int wire_connect(const char *path, uint64_t usec);

/*
 * These functions wait as the descriptor says: -EAGAIN. They work on stream and packet sockets; on a packet socket that
 * does not wait, a message is sent and received as a whole. Return 0 or a negative errno.
 */

/* Sends the parts as one message. May be called in a signal handler. */
int wire_send(int fd, int code, const struct iovec *parts, size_t n);
/* Receives a message of at most max bytes. *ret is unchanged on failure. -ECONNRESET: the peer has closed the
 * connection. -EPROTONOSUPPORT: the peer has another version; it is sent a message, so that it gets the same error.
 * -EBADMSG: the message is incomplete or larger. */
int wire_receive(int fd, size_t max, WireMessage *ret);
/* Sends a request and receives its answer. */
int wire_exchange(int fd, int code, const struct iovec *parts, size_t n, size_t max, WireMessage *ret);
