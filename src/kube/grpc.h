/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A gRPC server on a Unix socket: HTTP/2 by libnghttp2, and the framing of gRPC (github.com/grpc/grpc,
 * doc/PROTOCOL-HTTP2.md). A method gets one message, and sends one message or, as a stream, several. Peers are limited
 * in connections, calls, bytes and time; one that breaks a rule loses its call or its connection.
 */

#include <systemd/sd-event.h>

#include "messages.h"

#define GRPC_CONNECTIONS_MAX 16U
#define GRPC_CALLS_MAX       32U /* of a connection */
#define GRPC_REQUEST_MAX     65536U
#define GRPC_HEADERS_MAX     8192U
#define GRPC_UNREAD_MAX      (1U << 20)
#define GRPC_TIMEOUT_SEC     10U /* for a request to arrive, and for a peer to take what it is sent */

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
        /* Answers at once or later. The bytes are valid until it returns. */
        void (*run)(GrpcCall *c, const uint8_t *data, size_t size, void *userdata);
} GrpcMethod;

/* Listens at the path, which no other process uses any more. methods stay the caller's and outlive the server.
 * 0 or a negative errno, logged. */
int grpc_server_new(sd_event *event, const char *path, const GrpcMethod *methods, size_t n, void *userdata,
                    GrpcServer **ret);
/* Ends all calls, and removes the socket. */
GrpcServer *grpc_server_free(GrpcServer *s);
/* The socket is still the one that the server listens at. */
bool grpc_server_is_reachable(const GrpcServer *s);

/* gone() is called when the call ends before it is answered; the call is invalid then. */
void grpc_call_watch(GrpcCall *c, void (*gone)(GrpcCall *c, void *userdata), void *userdata);

/* Answers, and ends the call. The message is copied. */
void grpc_reply(GrpcCall *c, const WireBuffer *message);
/* message: ASCII without control characters and '%', which is not copied. */
void grpc_fail(GrpcCall *c, GrpcStatus status, const char *message);
/* Sends a message of a stream. A peer that does not take them loses its call. */
void grpc_send(GrpcCall *c, const WireBuffer *message);
