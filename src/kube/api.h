/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Requests to the API server of Kubernetes, with the credential of a kubeconfig. The kubeconfig is read again when it has
 * changed, a file of a token before each request, and certificates for each connection.
 */

#include "agent/http.h"

typedef struct Api Api;

/* path: of the kubeconfig; it need not exist yet. It stays the caller's and outlives the Api. */
int api_new(sd_event *event, const char *path, Api **ret);
Api *api_free(Api *a);

/* Sends a request; done() gets its reply, from the loop. 0 or a negative errno, logged; done() is then not called. */
int api_start(Api *a, const char *method, const char *path, json_object *body, http_done_t done, void *userdata);
/* The sentence for a reply that is no success: that of the API server's Status, or of its status. */
const char *api_reason(const HttpReply *reply, char *buf, size_t size);
