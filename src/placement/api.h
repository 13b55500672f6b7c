/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * HTTP requests to Placement, with a token of Keystone if the settings name a Keystone. Each request blocks until the
 * reply, at most HTTP_TIMEOUT_SEC of agent/http.h. A call sends up to four requests, because it may get a token and
 * renew it.
 */

#include <json-c/json.h>

#include "util/cleanup.h"

/* The settings of passthrough-placement.conf. */

#define SETTINGS_FILE "/etc/passthroughd/passthrough-placement.conf"

typedef struct Settings {
        char *url;     /* URL of Placement; NULL: from Keystone's catalog */
        char *token;   /* for a Placement that uses no Keystone */
        char *ca_file; /* NULL: the CAs of the system */
        char *host;    /* name of the root provider; default: the host name */
        bool add_root;
        char *project, *user; /* Placement requires a project and a user in each claim */

        char *keystone_url; /* NULL: no Keystone */
        char *credential;   /* the id of the application credential */
        char *secret_file;  /* file with the secret; NULL: the credential that systemd passes to the service */
        char *secret;       /* the secret, read from the file or the credential */
        char *region;       /* region of Placement's endpoint in the catalog; NULL: any */
        char *interface;    /* interface of that endpoint: public, internal or admin */
} Settings;

/* Reads the settings file and the secret, and sets the defaults of missing settings. 0 or a negative errno, logged. */
int settings_read(const char *path, Settings *ret);
void settings_done(Settings *s);

typedef struct Api Api;

/* Creates an Api. The settings are borrowed, and must outlive the Api. 0 or a negative errno, logged. */
int api_new(const Settings *settings, Api **ret);
Api *api_free(Api *a);
DEFINE_CLEANUP(Api *, api_free)

/*
 * Sends a request; body is borrowed and may be NULL. Returns the HTTP status, or a negative errno, logged, when
 * Placement sent no reply: also when Keystone gives no token (-EACCES) or its catalog has no Placement (-ENOENT).
 * Statuses other than 2xx are logged. -EADDRNOTAVAIL: the reply is not from Placement but from another server: for
 * example a redirection, 404, 405, 409, 410, or a reply without JSON. ret_reply may be NULL. The caller frees
 * *ret_reply, which is NULL when the reply has no document. An expired token is renewed. Redirections are not followed.
 */
int api_call(Api *a, const char *method, const char *path, json_object *body, json_object **ret_reply);
/* As api_call(), but returns a status of 404 or 409 without logging it. */
int api_try(Api *a, const char *method, const char *path, json_object *body, json_object **ret_reply);
/* Logs that the reply came from a server that is not Placement, and makes the next request read Keystone's catalog
 * again. Returns -EADDRNOTAVAIL. */
int api_wrong_address(Api *a, const char *method, const char *path, int status);

/* Returns how many requests this Api has sent so far, with those to Keystone. */
unsigned api_requests(const Api *a);
