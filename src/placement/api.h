/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * HTTP requests to Placement, with a token of Keystone where the settings have one. A call waits for the reply,
 * HTTP_TIMEOUT_SEC of agent/http.h at most.
 */

#include <json-c/json.h>

#include "util/cleanup.h"

/* passthrough-placement.conf. */

#define SETTINGS_FILE "/etc/passthroughd/passthrough-placement.conf"

typedef struct Settings {
        char *url;     /* of Placement; NULL: from Keystone's catalog */
        char *token;   /* for a Placement without Keystone */
        char *ca_file; /* NULL: the CAs of the system */
        char *host;    /* the name of the root provider */
        bool add_root;
        char *project, *user; /* in the claims */

        char *keystone_url; /* NULL: no Keystone */
        char *credential;   /* the id of the application credential */
        char *secret_file;  /* NULL: the credential of the service */
        char *secret;       /* its text */
        char *region;       /* NULL: any */
        char *interface;    /* public, internal, admin */
} Settings;

/* Reads the file and fills in the defaults. A negative errno was logged. */
int settings_read(const char *path, Settings *ret);
void settings_done(Settings *s);

typedef struct Api Api;

/* The settings stay the caller's and outlive the Api. 0 or a negative errno, logged. */
int api_new(const Settings *settings, Api **ret);
Api *api_free(Api *a);
DEFINE_CLEANUP(Api *, api_free)

/*
 * Sends a request; body may be NULL and stays the caller's. Returns the status of HTTP, or a negative errno when there
 * was no reply, logged. Statuses other than 2xx are logged. -EADDRNOTAVAIL: Placement does not reply so, but another
 * server does: with a redirection, 404, 405, 409, 410, or without JSON. ret_reply may be NULL; *ret_reply is NULL when
 * there is no document. An expired token is renewed. Redirections are not followed.
 */
int api_call(Api *a, const char *method, const char *path, json_object *body, json_object **ret_reply);
/* As api_call(), for a request to which Placement may reply with 404 or 409. These are returned, and not logged. */
int api_try(Api *a, const char *method, const char *path, json_object *body, json_object **ret_reply);
/* Logs that Placement does not reply so to the request; returns -EADDRNOTAVAIL. */
int api_wrong_address(Api *a, const char *method, const char *path, int status);

/* The number of requests so far. */
unsigned api_requests(const Api *a);
