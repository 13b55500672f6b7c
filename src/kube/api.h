/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Requests to the API server of Kubernetes, with the address and the credential of a kubeconfig file
 * (kubernetes.io/docs/reference/config-api/kubeconfig.v1). A file of a token is read before each request, and
 * certificates for each connection, so that both may be renewed.
 */

#include "agent/http.h"

typedef struct Api Api;

/* path: of the kubeconfig. 0 or a negative errno, logged. */
int apiserver_new(sd_event *event, const char *path, Api **ret);
Api *apiserver_free(Api *a);

/* Sends a request; done() gets its reply, from the loop. 0 or a negative errno, logged; done() is then not called.
 * ret_call: as http_start(). */
int apiserver_start(Api *a, const char *method, const char *path, json_object *body, http_done_t done, void *userdata,
                    HttpCall **ret_call);
/* The sentence for a reply that is no success: that of the API server's Status, or of its status. */
const char *apiserver_reason(const HttpReply *reply, char *buf, size_t size);
