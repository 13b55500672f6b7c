/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Whether endpoints of services accept connections. A separate program, passthroughd-endpoints, connects to them: the
 * daemon has no network, and looking up a host name may block. systemd starts the program for each connection to its
 * socket. A question is one message of util/wire.h, and so is its answer.
 */

#include <stdint.h>

#include "config/config.h"

/* The socket of passthroughd-endpoints. */
#define ENDPOINTS_SOCKET "/run/passthroughd-endpoints"

/* The most endpoints in one question. */
#define ENDPOINTS_MAX (REMOTE_SERVICES_MAX * REMOTE_ENDPOINTS_MAX)

/* Time limits: for the lookup of a host name, and for the connects to all its addresses together. */
#define ENDPOINT_LOOKUP_SEC  5U
#define ENDPOINT_CONNECT_SEC 5U

/* HOST:PORT as text. */
typedef struct EndpointName {
        char text[ENDPOINT_MAX + 1];
} EndpointName;

/* Uses this socket instead of ENDPOINTS_SOCKET. path is borrowed. */
void endpoints_use_socket(const char *path);

/* endpoints_ask() and endpoints_read() do not block. */
/* Asks about n endpoints, at most ENDPOINTS_MAX. Returns a connection, which is readable when the program has answered
 * or has ended; or a negative errno. The caller closes it. */
int endpoints_ask(const EndpointName *names, size_t n);
/* Reads an answer for each of the n endpoints, in the order of the question. Returns as wire_receive(); -EBADMSG also
 * when the number of answers is not n. */
int endpoints_read(int fd, EndpointAnswer *ret, size_t n);

/* For passthroughd-endpoints: reads the question into names, which has room for ENDPOINTS_MAX. Returns the number of
 * endpoints; or a negative errno, -EBADMSG if the question has no name or one that is not valid. */
int endpoints_receive(int fd, EndpointName *names);
int endpoints_send(int fd, const EndpointAnswer *answers, size_t n);
