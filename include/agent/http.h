/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Requests by HTTP or HTTPS whose bodies and replies are JSON, for agents of schedulers.
 *
 * A program that has nothing else to do while it waits makes its Http without a loop, and calls http_send(). A program
 * that serves others meanwhile gives its loop to http_new(), and calls http_start(): the request runs in the loop, name
 * resolution and TLS included, and done() is called from it. Connections stay open for further requests, HTTP_AGE_SEC
 * at most, so that renewed certificates are used; the files are read again for each connection.
 *
 * Redirections are not followed. A reply is 16 MiB at most. No request is repeated: see retry_usec().
 */

#include <json-c/json.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "util/cleanup.h"

#define HTTP_TIMEOUT_SEC 30L
#define HTTP_AGE_SEC     600L

/* Each may be NULL. Text and files are PEM. */
typedef struct HttpTls {
        const char *ca_file, *ca_text;                   /* neither: the CAs of the system */
        const char *certificate_file, *certificate_text; /* of this client */
        const char *key_file, *key_text;
} HttpTls;

typedef struct HttpRequest {
        const char *method, *url;
        json_object *body;          /* NULL: none */
        const char *content_type;   /* of the body; NULL: application/json */
        const char *const *headers; /* ends with NULL; NULL: none */
        const char *reply_header;   /* the header that the caller wants to see; NULL: none */
        long timeout_sec;           /* 0: HTTP_TIMEOUT_SEC */
} HttpRequest;

typedef struct HttpReply {
        int status;            /* of HTTP, or a negative errno: there was no reply, logged */
        json_object *document; /* NULL: the body is empty or is not JSON */
        bool has_body;
        char *header; /* value of HttpRequest.reply_header; NULL: the reply has none */
} HttpReply;
void http_reply_done(HttpReply *r);

typedef struct Http Http;
typedef struct HttpCall HttpCall;
/* The reply belongs to the caller, who may take its document and its header. It may start further requests. */
typedef void (*http_done_t)(HttpReply *reply, void *userdata);

/* What tls points to stays the caller's and outlives the Http. event: NULL for http_send(). 0 or a negative errno,
 * logged. */
int http_new(sd_event *event, const HttpTls *tls, Http **ret);
/* Ends what was started; its done() is not called. Not to be called from done(). */
Http *http_free(Http *h);
DEFINE_CLEANUP(Http *, http_free)

/* Waits for the reply. Returns its status, or a negative errno, logged; http_reply_done() in both cases. */
int http_send(Http *h, const HttpRequest *q, HttpReply *ret);

/* The request is copied. Calls done() once, never before it returns. 0 or a negative errno, logged; then done() is not
 * called. ret_call may be NULL; *ret_call is valid until done() is called. */
int http_start(Http *h, const HttpRequest *q, http_done_t done, void *userdata, HttpCall **ret_call);
/* done() is not called any more. The server may have got the request. Returns NULL. */
HttpCall *http_cancel(HttpCall *c);

/* Escapes a text for use in a URL. The caller frees; NULL when out of memory. */
char *http_escape(const char *text);

/* The number of requests so far. */
unsigned http_requests(const Http *h);

/* Times between tries. Without random numbers, all agents that the restart of a server has cut off would return at
 * once. */

/* Below max. */
uint64_t random_usec(uint64_t max);
/* The time until the next try: 0.5 to 1.5 of *delay, which doubles with each call, from 1 to 60 s. *delay is 0 at the
 * first failure. */
uint64_t retry_usec(uint64_t *delay);
