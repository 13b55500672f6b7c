/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "dra.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <yaml.h>

#include "agent/settings.h"
#include "util/fileio.h"
#include "util/log.h"

#define KUBECONFIG_MAX (1U << 20)
#define TOLD_MAX       400U /* the most bytes of the API server's message in the sentence of apiserver_reason() */

static const char *scalar(const yaml_node_t *node) {
        return node && node->type == YAML_SCALAR_NODE ? (const char *) node->data.scalar.value : NULL;
}

/* Returns the value of the key in a YAML mapping. NULL: node is no mapping, or has no such key. */
static const yaml_node_t *value_of(yaml_document_t *d, const yaml_node_t *node, const char *key) {
        if (!node || node->type != YAML_MAPPING_NODE)
                return NULL;
        for (const yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++)
                if (streq_ptr(scalar(yaml_document_get_node(d, p->key)), key))
                        return yaml_document_get_node(d, p->value);
        return NULL;
}

static const char *text_of(yaml_document_t *d, const yaml_node_t *node, const char *key) {
        return scalar(value_of(d, node, key));
}

/* Finds the entry of a list of the kubeconfig (`list` is contexts, clusters or users) whose name is the value of the
 * key `reference` in the mapping `node`. Returns the value of `key` in the entry. NULL: not found, logged. */
static const yaml_node_t *find_entry(const char *path, yaml_document_t *d, const yaml_node_t *node,
                                     const char *reference, const char *list, const char *key) {
        const yaml_node_t *all = value_of(d, yaml_document_get_root_node(d), list), *found = NULL;
        const char *name = text_of(d, node, reference);

        if (!name || !*name)
                return log_error("%s: It names no %s.", path, reference), NULL;
        if (all && all->type == YAML_SEQUENCE_NODE)
                for (const yaml_node_item_t *i = all->data.sequence.items.start; i < all->data.sequence.items.top; i++)
                        if (!found && streq_ptr(text_of(d, yaml_document_get_node(d, *i), "name"), name))
                                found = value_of(d, yaml_document_get_node(d, *i), key);
        if (!found)
                log_error("%s: The %s '%s' is not in its %s.", path, reference, QUOTABLE(name), list);
        return found;
}

/* Takes a certificate, a key or a token file from `node`. The value of KEY is the path of a file, relative to the
 * directory of the kubeconfig. The value of KEY-data is the content of the file in Base64, and takes precedence unless
 * ret_text is NULL. Sets one of *ret_file and *ret_text, or neither if the mapping has no such key. 0, -EINVAL or
 * -ENOMEM. */
static int take_file(const char *kubeconfig, yaml_document_t *d, const yaml_node_t *node, const char *key,
                     char **ret_file, char **ret_text) {
        const char *path = text_of(d, node, key), *slash = strrchr(kubeconfig, '/'), *data;
        char data_key[64];

        (void) snprintf(data_key, sizeof(data_key), "%s-data", key);
        data = text_of(d, node, data_key);
        if (data && *data && ret_text)
                return base64_decode(data, ret_text);
        if (!path || !*path)
                return 0;
        if (*path == '/' || !slash)
                return string_copy(ret_file, path);
        return string_replace(ret_file, "%.*s/%s", (int) (slash - kubeconfig), kubeconfig, path);
}

static int take_config(const char *path, yaml_document_t *d, Api *a) {
        static const char *const pem[] = { "certificate-authority", "client-certificate", "client-key" };
        const yaml_node_t *root = yaml_document_get_root_node(d);
        const yaml_node_t *context = find_entry(path, d, root, "current-context", "contexts", "context");
        const yaml_node_t *cluster = context ? find_entry(path, d, context, "cluster", "clusters", "cluster") : NULL;
        const yaml_node_t *user = cluster ? find_entry(path, d, context, "user", "users", "user") : NULL;
        const struct {
                const yaml_node_t *node;
                const char *key, *remedy;
        } refused[] = {
                { user, "exec", "use a token, a token file or a client certificate" },
                { user, "auth-provider", "use a token, a token file or a client certificate" },
                { user, "username", "use a token, a token file or a client certificate" },
                { cluster, "tls-server-name", "use a server that is reached by its own name" },
                { cluster, "proxy-url", "use a server that is reached without a proxy" },
                { cluster, "insecure-skip-tls-verify", "name a certificate-authority" },
        };
        const char *server = text_of(d, cluster, "server");
        int r;

        if (!user)
                return -EINVAL;
        for (size_t i = 0; i < ELEMENTSOF(refused); i++)
                if (value_of(d, refused[i].node, refused[i].key) &&
                    !streq_ptr(text_of(d, refused[i].node, refused[i].key), "false"))
                        return log_error("%s: %s is not supported: %s.", path, refused[i].key, refused[i].remedy),
                               -EINVAL;
        if (!server || !*server)
                return log_error("%s: The cluster '%s' has no server.", path, QUOTABLE(text_of(d, context, "cluster"))),
                       -EINVAL;
        r = string_copy(&a->server, server);
        if (r >= 0 && server[strlen(server) - 1] == '/')
                a->server[strlen(server) - 1] = '\0';
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(pem); i++)
                r = take_file(path, d, i == 0 ? cluster : user, pem[i], &a->files[i], &a->texts[i]);
        if (r >= 0)
                r = string_copy(&a->token, text_of(d, user, "token"));
        if (r >= 0)
                r = take_file(path, d, user, "tokenFile", &a->token_file, NULL);
        return r < 0 ? log_error_errno(r, "%s: A value cannot be read: %m", path) : 0;
}

int apiserver_init(Manager *m) {
        const char *path = m->kubeconfig;
        _cleanup_free_ char *text = NULL;
        Api *a = &m->api;
        yaml_parser_t p;
        yaml_document_t d;
        size_t size;
        int r = read_file_at(AT_FDCWD, path, KUBECONFIG_MAX, &text, &size);

        if (r < 0)
                return log_error_errno(r, "Failed to read %s: %m", path);
        if (!yaml_parser_initialize(&p))
                return log_error_errno(-ENOMEM, "Failed to read %s: %m", path);
        yaml_parser_set_input_string(&p, (const unsigned char *) text, size);
        if (yaml_parser_load(&p, &d)) {
                r = take_config(path, &d, a);
                yaml_document_delete(&d);
        } else
                r = log_error_errno(-EBADMSG, "%s is not YAML.", path);
        yaml_parser_delete(&p);
        a->tls = (HttpTls) { a->files[0], a->texts[0], a->files[1], a->texts[1], a->files[2], a->texts[2] };
        return r < 0 ? r : http_new(m->event, &a->tls, &a->http);
}

void apiserver_done(Api *a) {
        http_free(a->http);
        free(a->server);
        free(a->token);
        free(a->token_file);
        for (size_t i = 0; i < ELEMENTSOF(a->files); i++) {
                free(a->files[i]);
                free(a->texts[i]);
        }
}

int apiserver_start(const Api *a, const char *method, const char *path, json_object *body, http_done_t done,
                    void *userdata, HttpCall **ret_call) {
        _cleanup_free_ char *url = string_format("%s%s", a->server, path), *read = NULL, *authorization = NULL;
        int r = a->token_file ? agent_read_secret(a->token_file, &read) : 0;
        const char *token = read ?: a->token;
        const char *headers[] = { NULL, NULL };

        if (r < 0)
                return log_error_errno(r, "Failed to read the token in %s: %m", a->token_file);
        if (token)
                headers[0] = authorization = string_format("Authorization: Bearer %s", token);
        if (!url || (token && !authorization))
                return log_error_errno(-ENOMEM, "Failed to build the request to %s: %m", a->server);
        return http_start(a->http, &(HttpRequest) { .method = method, .url = url, .body = body, .headers = headers },
                          done, userdata, ret_call);
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
