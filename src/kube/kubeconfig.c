/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "kubeconfig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <yaml.h>

#include "util/fileio.h"
#include "util/log.h"
#include "util/strings.h"

#define FILE_MAX_BYTES (1U << 20)

void kubeconfig_done(Kubeconfig *k) {
        char **all[] = { &k->server,   &k->ca_file,  &k->ca_text, &k->certificate_file, &k->certificate_text,
                         &k->key_file, &k->key_text, &k->token,   &k->token_file };

        for (size_t i = 0; i < ELEMENTSOF(all); i++)
                free(TAKE_PTR(*all[i]));
}

/* YAML */

static const char *scalar(const yaml_node_t *node) {
        return node && node->type == YAML_SCALAR_NODE ? (const char *) node->data.scalar.value : NULL;
}

/* The value of a key; NULL for what is no mapping, or has no such key. */
static yaml_node_t *value_of(yaml_document_t *d, const yaml_node_t *node, const char *key) {
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

/* The value of the element with this name in a list: contexts, clusters and users have this shape. */
static yaml_node_t *find_entry(yaml_document_t *d, const char *list, const char *name, const char *key) {
        const yaml_node_t *all = value_of(d, yaml_document_get_root_node(d), list);

        if (!all || all->type != YAML_SEQUENCE_NODE)
                return NULL;
        for (const yaml_node_item_t *i = all->data.sequence.items.start; i < all->data.sequence.items.top; i++) {
                const yaml_node_t *entry = yaml_document_get_node(d, *i);

                if (name && streq_ptr(text_of(d, entry, "name"), name))
                        return value_of(d, entry, key);
        }
        return NULL;
}

/* Values */

static int base64_value(char c) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const char *found = c ? strchr(digits, c) : NULL;

        return found ? (int) (found - digits) : -1;
}

static int decode_base64(const char *text, char **ret) {
        _cleanup_free_ char *out = malloc(strlen(text) + 1);
        unsigned bits = 0, n_bits = 0;
        size_t n = 0;

        if (!out)
                return -ENOMEM;
        for (; *text && *text != '='; text++) {
                int value = base64_value(*text);

                if (*text == '\n' || *text == ' ')
                        continue;
                if (value < 0)
                        return -EINVAL;
                bits = bits << 6 | (unsigned) value;
                n_bits += 6;
                if (n_bits >= 8)
                        out[n++] = (char) (bits >> (n_bits -= 8));
        }
        out[n] = '\0';
        *ret = TAKE_PTR(out);
        return 0;
}

/* A path is relative to the directory of the kubeconfig. */
static int take_path(const char *kubeconfig, const char *value, char **ret) {
        const char *slash = strrchr(kubeconfig, '/');

        if (!value || !*value)
                return 0;
        if (*value == '/' || !slash)
                return string_copy(ret, value);
        return string_replace(ret, "%.*s/%s", (int) (slash - kubeconfig), kubeconfig, value);
}

/* KEY is a path, KEY-data its content; the content counts where both are there. */
static int take_file(const char *kubeconfig, yaml_document_t *d, const yaml_node_t *node, const char *key,
                     char **ret_file, char **ret_text) {
        char data_key[64];
        const char *data;

        (void) snprintf(data_key, sizeof(data_key), "%s-data", key);
        data = text_of(d, node, data_key);
        return data && *data ? decode_base64(data, ret_text) : take_path(kubeconfig, text_of(d, node, key), ret_file);
}

static int take_config(const char *path, yaml_document_t *d, Kubeconfig *k) {
        const char *current = text_of(d, yaml_document_get_root_node(d), "current-context");
        const yaml_node_t *context = find_entry(d, "contexts", current, "context");
        const yaml_node_t *cluster = find_entry(d, "clusters", text_of(d, context, "cluster"), "cluster");
        const yaml_node_t *user = find_entry(d, "users", text_of(d, context, "user"), "user");
        const char *server = text_of(d, cluster, "server");
        int r;

        if (!server || !*server)
                return log_error_errno(-EINVAL, "%s: The current context has no cluster with a server.", path);
        if (value_of(d, user, "exec") || value_of(d, user, "auth-provider"))
                return log_error_errno(-EINVAL,
                                       "%s: A program for credentials is not supported: use a token, a token file or a "
                                       "client certificate.",
                                       path);
        if (value_of(d, cluster, "tls-server-name") || value_of(d, cluster, "proxy-url") ||
            value_of(d, user, "username"))
                return log_error_errno(-EINVAL,
                                       "%s: tls-server-name, proxy-url and username are not supported: use a server "
                                       "that is reached by its own name, and another credential.",
                                       path);
        if (streq_ptr(text_of(d, cluster, "insecure-skip-tls-verify"), "true"))
                return log_error_errno(
                        -EINVAL, "%s: insecure-skip-tls-verify is not supported: name a certificate-authority.", path);
        r = string_copy(&k->server, server);
        if (r >= 0 && server[strlen(server) - 1] == '/')
                k->server[strlen(server) - 1] = '\0';
        if (r >= 0)
                r = take_file(path, d, cluster, "certificate-authority", &k->ca_file, &k->ca_text);
        if (r >= 0)
                r = take_file(path, d, user, "client-certificate", &k->certificate_file, &k->certificate_text);
        if (r >= 0)
                r = take_file(path, d, user, "client-key", &k->key_file, &k->key_text);
        if (r >= 0)
                r = string_copy(&k->token, text_of(d, user, "token"));
        if (r >= 0)
                r = take_path(path, text_of(d, user, "tokenFile"), &k->token_file);
        return r < 0 ? log_error_errno(r, "%s: A value cannot be read: %m", path) : 0;
}

/* Logs. */
static int parse(const char *path, yaml_parser_t *p, const char *text, size_t size, Kubeconfig *ret) {
        yaml_document_t d;
        int r;

        yaml_parser_set_input_string(p, (const unsigned char *) text, size);
        if (!yaml_parser_load(p, &d))
                return log_error_errno(-EBADMSG, "%s is not YAML.", path);
        r = take_config(path, &d, ret);
        yaml_document_delete(&d);
        return r;
}

int kubeconfig_read(const char *path, Kubeconfig *ret) {
        _cleanup_free_ char *text = NULL;
        yaml_parser_t p;
        size_t size;
        int r = read_file_at(AT_FDCWD, path, FILE_MAX_BYTES, &text, &size);

        if (r < 0)
                return log_error_errno(r, "Failed to read %s: %m", path);
        if (!yaml_parser_initialize(&p))
                return log_error_errno(-ENOMEM, "Failed to read %s: %m", path);
        r = parse(path, &p, text, size, ret);
        yaml_parser_delete(&p);
        return r;
}
