/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * HTTP and HTTPS requests with bodies and replies in JSON, for agents of schedulers.
 *
 * A program that may block calls http_new() without an event loop, and then http_send(). A program with an event loop
 * passes the loop to http_new(), and calls http_start(): the request then runs in the loop, including name resolution
 * and TLS, and done() is called from the loop. A connection stays open for further requests, for at most HTTP_AGE_SEC;
 * the certificate files are read for each new connection, so that renewed certificates are used.
 *
 * Redirections are not followed. A reply is refused if it has more than 16 MiB, or so many JSON values that they would
 * take too much memory. Requests are not repeated; retry_usec() helps callers to repeat them.
 */

#include <json-c/json.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "util/cleanup.h"

#define HTTP_TIMEOUT_SEC 30L
#define HTTP_AGE_SEC     600L

/* The certificates and the key for TLS, in PEM, each from a file or as text. Each may be NULL. */
typedef struct HttpTls {
        const char *ca_file, *ca_text;                   /* both NULL: the CAs of the system */
        const char *certificate_file, *certificate_text; /* the certificate that this client presents */
        const char *key_file, *key_text;
} HttpTls;

typedef struct HttpRequest {
        const char *method, *url;
        json_object *body;          /* NULL: none */
        const char *content_type;   /* type of the body; NULL: application/json */
        const char *const *headers; /* list that ends with NULL, or NULL */
        const char *reply_header;   /* name of the header to return in HttpReply.header; NULL: none */
        long timeout_sec;           /* limit of the request; 0: HTTP_TIMEOUT_SEC */
} HttpRequest;

typedef struct HttpReply {
        int status;            /* HTTP status; or a negative errno, logged: -EHOSTUNREACH (no reply, or it is too long),
                                  -ENOMEM or -EOPNOTSUPP */
        json_object *document; /* NULL: the body is empty or is no JSON object */
        bool has_body;         /* the body is not empty */
        char *header;          /* value of HttpRequest.reply_header; NULL: the reply has none */
} HttpReply;
void http_reply_done(HttpReply *r);

typedef struct Http Http;
typedef struct HttpCall HttpCall;
/* Called with the reply of a request. The reply is freed when the function has returned; the function may take document
 * and header out of it. The function may start further requests. */
typedef void (*http_done_t)(HttpReply *reply, void *userdata);

/* Creates an Http. tls is borrowed, and must outlive the Http. event: the loop for http_start(); NULL for http_send().
 * Returns 0 or a negative errno, logged. */
int http_new(sd_event *event, const HttpTls *tls, Http **ret);
/* Cancels all requests without calling done(), and frees h. Must not be called from done(). Returns NULL. */
Http *http_free(Http *h);
DEFINE_CLEANUP(Http *, http_free)

/* Sends the request and waits for the reply. Returns the HTTP status, or a negative errno, logged. Call
 * http_reply_done() in both cases. */
int http_send(Http *h, const HttpRequest *q, HttpReply *ret);

/* Starts a request, which is copied. Calls done() once, but not before http_start() has returned. Returns 0; or a
 * negative errno, logged, and then done() is not called. ret_call may be NULL; *ret_call is valid until done() is
 * called. */
int http_start(Http *h, const HttpRequest *q, http_done_t done, void *userdata, HttpCall **ret_call);
/* Cancels a request; done() is not called any more. The server may have received the request. Returns NULL. */
HttpCall *http_cancel(HttpCall *c);

/* Escapes a text for use in a URL. The caller frees; NULL when out of memory. */
char *http_escape(const char *text);

/* Returns the number of requests that `h` has started so far. */
unsigned http_requests(const Http *h);

/* Random times between tries. With fixed times, all agents that lost the connection when a server restarted would
 * reconnect at the same moment. */

/* Returns a random time from 0 to max - 1. max must not be 0. Returns 0 when no random number is available. */
uint64_t random_usec(uint64_t max);
/* Returns the time to wait before the next try: *delay times a random number from 0.5 to 1.5. *delay doubles with each
 * call, from 1 s to 60 s. Set *delay to 0 before the first try. */
uint64_t retry_usec(uint64_t *delay);
