/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "api.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "agent/member.h"
#include "agent/settings.h"
#include "kubeconfig.h"
#include "util/log.h"
#include "util/strings.h"

typedef struct Call {
        Api *api;
        http_done_t done;
        void *userdata;
} Call;

struct Api {
        sd_event *event;
        const char *path;
        struct stat seen; /* of the kubeconfig that is in use */
        Kubeconfig config;
        HttpTls tls;
        Http *http; /* NULL: no kubeconfig has been read */
        unsigned n_calls;
        bool is_in_done;
};

int api_new(sd_event *event, const char *path, Api **ret) {
        Api *a = calloc(1, sizeof(*a));

        if (!a)
                return log_error_errno(-ENOMEM, "Failed to prepare HTTP: %m");
        *a = (Api) { .event = sd_event_ref(event), .path = path };
        *ret = a;
        return 0;
}

static void drop_config(Api *a) {
        a->http = http_free(a->http);
        kubeconfig_done(&a->config);
}

Api *api_free(Api *a) {
        if (!a)
                return NULL;
        drop_config(a);
        sd_event_unref(a->event);
        free(a);
        return NULL;
}

/* The kubeconfig in use stays when the new one is wrong, or while a request is under way. */
static int reload_config(Api *a) {
        Kubeconfig k = { 0 };
        struct stat st;
        int r;

        if (stat(a->path, &st) < 0)
                return a->http ? 0 : log_error_errno(-errno, "Failed to read %s: %m", a->path);
        if (a->http && (a->n_calls > 0 || a->is_in_done ||
                        (st.st_ino == a->seen.st_ino && st.st_size == a->seen.st_size &&
                         st.st_mtim.tv_sec == a->seen.st_mtim.tv_sec && st.st_mtim.tv_nsec == a->seen.st_mtim.tv_nsec)))
                return 0;
        r = kubeconfig_read(a->path, &k);
        if (r < 0)
                return a->http ? 0 : r;
        drop_config(a);
        a->config = k;
        a->seen = st;
        a->tls = (HttpTls) { k.ca_file,          k.ca_text,  k.certificate_file,
                             k.certificate_text, k.key_file, k.key_text };
        return http_new(a->event, &a->tls, &a->http);
}

static int make_authorization(const Api *a, char **ret) {
        _cleanup_free_ char *token = NULL;
        int r = 0;

        if (a->config.token_file) {
                r = agent_read_secret(a->config.token_file, &token);
                if (r < 0)
                        return log_error_errno(r, "Failed to read the token in %s: %m", a->config.token_file);
        } else if (a->config.token)
                r = string_copy(&token, a->config.token);
        if (r >= 0 && token)
                r = string_replace(ret, "Authorization: Bearer %s", token);
        return r;
}

static void on_done(HttpReply *reply, void *userdata) {
        Call call = *(Call *) userdata;

        free(userdata);
        call.api->n_calls--;
        call.api->is_in_done = true;
        call.done(reply, call.userdata);
        call.api->is_in_done = false;
}

int api_start(Api *a, const char *method, const char *path, json_object *body, http_done_t done, void *userdata) {
        _cleanup_free_ char *url = NULL, *authorization = NULL;
        _cleanup_free_ Call *call = calloc(1, sizeof(*call));
        int r = reload_config(a);

        if (r < 0)
                return r;
        url = string_format("%s%s", a->config.server, path);
        r = make_authorization(a, &authorization);
        if (r < 0 || !url || !call)
                return r < 0 ? r : -ENOMEM;
        *call = (Call) { a, done, userdata };
        r = http_start(a->http,
                       &(const HttpRequest) { .method = method,
                                              .url = url,
                                              .body = body,
                                              .headers = (const char *const[]) { "Accept: application/json",
                                                                                 authorization, NULL } },
                       on_done, call, NULL);
        if (r < 0)
                return r;
        TAKE_PTR(call);
        a->n_calls++;
        return 0;
}

const char *api_reason(const HttpReply *reply, char *buf, size_t size) {
        const char *message = member_text(reply->document, "message");

        if (reply->status < 0)
                return "The API server does not answer.";
        if (message)
                (void) snprintf(buf, size, "The API server says: %s", QUOTABLE(message));
        else
                (void) snprintf(buf, size, "The API server answers with status %d.", reply->status);
        return buf;
}
