/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A gRPC server on a Unix socket: HTTP/2 by libnghttp2, and the framing of gRPC (github.com/grpc/grpc,
 * doc/PROTOCOL-HTTP2.md). A method gets one message, and sends one message or, as a stream, several. Peers are limited
 * in connections, calls, bytes and time; a peer that exceeds a limit loses its call or its connection.
 */

#include <systemd/sd-event.h>

#include "messages.h"

#define GRPC_CONNECTIONS_MAX 16U
#define GRPC_CALLS_MAX       32U /* the most calls of a connection at a time */
#define GRPC_REQUEST_MAX     65536U
#define GRPC_HEADERS_MAX     8192U
#define GRPC_UNREAD_MAX      (1U << 20)
#define GRPC_TIMEOUT_SEC     10U /* limit for a request to arrive, and for a peer to read what is sent */

/* Status codes of gRPC (doc/statuscodes.md). */
typedef enum GrpcStatus {
        GRPC_OK = 0,
        GRPC_INVALID_ARGUMENT = 3,
        GRPC_RESOURCE_EXHAUSTED = 8,
        GRPC_UNIMPLEMENTED = 12,
        GRPC_INTERNAL = 13,
} GrpcStatus;

typedef struct GrpcServer GrpcServer;
typedef struct GrpcCall GrpcCall;

typedef struct GrpcMethod {
        const char *path; /* "/PACKAGE.SERVICE/METHOD" */
        /* Answers the call at once or later. data is valid until the function returns. */
        void (*run)(GrpcCall *c, const uint8_t *data, size_t size, void *userdata);
} GrpcMethod;

/* Listens at the path, from which it first removes an existing socket or file. `methods` must outlive the server. 0 or
 * a negative errno, logged. */
int grpc_server_new(sd_event *event, const char *path, const GrpcMethod *methods, size_t n, void *userdata,
                    GrpcServer **ret);
/* Ends all calls, and removes the socket unless another program has replaced it. Returns NULL. */
GrpcServer *grpc_server_free(GrpcServer *s);
/* Returns true while the path is still this server's socket: no other program has removed or replaced it. */
bool grpc_server_is_reachable(const GrpcServer *s);

/* Makes the server call gone() if the call ends before it is answered, for example because the peer has canceled it.
 * The call is freed afterwards. */
void grpc_call_watch(GrpcCall *c, void (*gone)(GrpcCall *c, void *userdata), void *userdata);

/* Answers and ends the call, with GRPC_INTERNAL when out of memory. The message is copied. */
void grpc_reply(GrpcCall *c, const WireBuffer *message);
/* Ends the call with an error. message: ASCII, without control characters and without '%'; it is not copied. */
void grpc_fail(GrpcCall *c, GrpcStatus status, const char *message);
/* Sends a message of a stream. The call is ended instead if the peer has left more than GRPC_UNREAD_MAX bytes unread,
 * or when out of memory. */
void grpc_send(GrpcCall *c, const WireBuffer *message);
