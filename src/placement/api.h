/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * HTTP requests to Placement, with a token of Keystone if the settings name one. A call blocks until the reply, at most
 * HTTP_TIMEOUT_SEC of agent/http.h.
 */

#include <json-c/json.h>

#include "util/cleanup.h"

/* The settings of passthrough-placement.conf. */

#define SETTINGS_FILE "/etc/passthroughd/passthrough-placement.conf"

typedef struct Settings {
        char *url;     /* URL of Placement; NULL: from Keystone's catalog */
        char *token;   /* for a Placement without Keystone */
        char *ca_file; /* NULL: the CAs of the system */
        char *host;    /* the name of the root provider */
        bool add_root;
        char *project, *user; /* project and user of the claims */

        char *keystone_url; /* NULL: no Keystone */
        char *credential;   /* the id of the application credential */
        char *secret_file;  /* NULL: the credential that systemd passes to the service */
        char *secret;       /* the secret, read from the file */
        char *region;       /* NULL: any */
        char *interface;    /* public, internal, admin */
} Settings;

/* Reads the file, and sets defaults. 0 or a negative errno, logged. */
int settings_read(const char *path, Settings *ret);
void settings_done(Settings *s);

typedef struct Api Api;

/* Creates an Api. The settings are borrowed, and must outlive it. 0 or a negative errno, logged. */
int api_new(const Settings *settings, Api **ret);
Api *api_free(Api *a);
DEFINE_CLEANUP(Api *, api_free)

/*
 * Sends a request; body is borrowed and may be NULL. Returns the HTTP status, or a negative errno when there was no
 * reply, logged. Statuses other than 2xx are logged. -EADDRNOTAVAIL: the reply is not from Placement but from another
 * server: a redirection, 404, 405, 409, 410, or a reply without JSON. ret_reply may be NULL; *ret_reply is NULL when
 * there is no document. An expired token is renewed. Redirections are not followed.
 */
int api_call(Api *a, const char *method, const char *path, json_object *body, json_object **ret_reply);
/* As api_call(), for a request to which Placement may reply with 404 or 409, which are returned and not logged. */
int api_try(Api *a, const char *method, const char *path, json_object *body, json_object **ret_reply);
/* Logs that the reply to the request is not from Placement; returns -EADDRNOTAVAIL. */
int api_wrong_address(Api *a, const char *method, const char *path, int status);

/* Returns the number of requests so far. */
unsigned api_requests(const Api *a);
