/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "api.h"

#include <errno.h>
#include <stdio.h>

#include "agent/settings.h"
#include "json.h"
#include "kubeconfig.h"
#include "util/log.h"
#include "util/strings.h"

#define TOLD_MAX 400U /* bytes of a message of the API server that are told */

struct Api {
        Kubeconfig config;
        HttpTls tls;
        Http *http;
};

int apiserver_new(sd_event *event, const char *path, Api **ret) {
        Api *a = calloc(1, sizeof(*a));
        const Kubeconfig *k;
        int r = a ? kubeconfig_read(path, &a->config) : log_error_errno(-ENOMEM, "Failed to prepare HTTP: %m");

        if (r >= 0) {
                k = &a->config;
                a->tls = (HttpTls) { k->ca_file,          k->ca_text,  k->certificate_file,
                                     k->certificate_text, k->key_file, k->key_text };
                r = http_new(event, &a->tls, &a->http);
        }
        if (r < 0)
                apiserver_free(a);
        else
                *ret = a;
        return r;
}

Api *apiserver_free(Api *a) {
        if (!a)
                return NULL;
        http_free(a->http);
        kubeconfig_done(&a->config);
        free(a);
        return NULL;
}

static int make_authorization(const Api *a, char **ret) {
        _cleanup_free_ char *read = NULL;
        int r = a->config.token_file ? agent_read_secret(a->config.token_file, &read) : 0;
        const char *token = read ?: a->config.token;

        if (r < 0)
                return log_error_errno(r, "Failed to read the token in %s: %m", a->config.token_file);
        return token ? string_replace(ret, "Authorization: Bearer %s", token) : 0;
}

int apiserver_start(Api *a, const char *method, const char *path, json_object *body, http_done_t done, void *userdata,
                    HttpCall **ret_call) {
        _cleanup_free_ char *url = string_format("%s%s", a->config.server, path), *authorization = NULL;
        int r = url ? make_authorization(a, &authorization) : -ENOMEM;
        const char *const headers[] = { authorization, NULL };
        HttpRequest request = { .method = method, .url = url, .body = body, .headers = headers };

        return r < 0 ? r : http_start(a->http, &request, done, userdata, ret_call);
}

const char *apiserver_reason(const HttpReply *reply, char *buf, size_t size) {
        const char *message = member_text(reply->document, "message");

        if (reply->status < 0)
                return "The API server does not answer.";
        if (message && text_is_clean(message))
                (void) snprintf(buf, size, "The API server says: %.*s", (int) text_prefix(message, TOLD_MAX), message);
        else
                (void) snprintf(buf, size, "The API server answers with status %d.", reply->status);
        return buf;
}
