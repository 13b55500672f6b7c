/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "kubeconfig.h"

#include <errno.h>
#include <fcntl.h>
#include <yaml.h>

#include "agent/member.h"
#include "model/json-value.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/strings.h"

#define FILE_MAX_BYTES (1U << 20)
#define NODES_MAX      4096U /* an alias counts each time: without a limit, few lines could be many values */
#define DEPTH_MAX      16U

void kubeconfig_done(Kubeconfig *k) {
        char **all[] = { &k->server,   &k->ca_file,  &k->ca_text, &k->certificate_file, &k->certificate_text,
                         &k->key_file, &k->key_text, &k->token,   &k->token_file };

        for (size_t i = 0; i < ELEMENTSOF(all); i++)
                free(TAKE_PTR(*all[i]));
}

/* YAML. Scalars become strings: each value of a kubeconfig that is read here is one. */

static json_object *node_to_json(yaml_document_t *d, int id, unsigned depth, unsigned *left);

static json_object *mapping_to_json(yaml_document_t *d, const yaml_node_t *node, unsigned depth, unsigned *left) {
        _cleanup_json_ json_object *o = json_object_new_object();

        for (const yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
                const yaml_node_t *key = yaml_document_get_node(d, p->key);
                json_object *value = node_to_json(d, p->value, depth, left);

                if (!value || !key || key->type != YAML_SCALAR_NODE) {
                        json_object_put(value);
                        return NULL;
                }
                if (!member_add(o, (const char *) key->data.scalar.value, value))
                        return NULL;
        }
        return TAKE_PTR(o);
}

static json_object *node_to_json(yaml_document_t *d, int id, unsigned depth, unsigned *left) {
        const yaml_node_t *node = yaml_document_get_node(d, id);
        _cleanup_json_ json_object *array = NULL;

        if (!node || depth == 0 || *left == 0)
                return NULL;
        (*left)--;
        if (node->type == YAML_SCALAR_NODE)
                return json_object_new_string((const char *) node->data.scalar.value);
        if (node->type == YAML_MAPPING_NODE)
                return mapping_to_json(d, node, depth - 1, left);
        array = json_object_new_array();
        for (const yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++) {
                json_object *value = node_to_json(d, *i, depth - 1, left);

                if (!value || !array || json_object_array_add(array, value) < 0) {
                        json_object_put(value);
                        return NULL;
                }
        }
        return TAKE_PTR(array);
}

static json_object *parse_yaml(const char *text, size_t size) {
        unsigned left = NODES_MAX;
        json_object *o = NULL;
        yaml_document_t d;
        yaml_parser_t p;

        if (!yaml_parser_initialize(&p))
                return NULL;
        yaml_parser_set_input_string(&p, (const unsigned char *) text, size);
        if (yaml_parser_load(&p, &d)) {
                o = yaml_document_get_root_node(&d) ? node_to_json(&d, 1, DEPTH_MAX, &left) : NULL;
                yaml_document_delete(&d);
        }
        yaml_parser_delete(&p);
        return o;
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
static int take_file(const char *kubeconfig, json_object *o, const char *key, char **ret_file, char **ret_text) {
        _cleanup_free_ char *data_key = string_format("%s-data", key);
        const char *data;

        if (!data_key)
                return -ENOMEM;
        data = member_text(o, data_key);
        return data && *data ? decode_base64(data, ret_text) : take_path(kubeconfig, member_text(o, key), ret_file);
}

/* The value of the element with this name in a list: contexts, clusters and users have this shape. */
static json_object *find_entry(json_object *config, const char *list, const char *name, const char *key) {
        json_object *all = member(config, list);

        for (size_t i = 0; name && json_object_is_type(all, json_type_array) && i < json_object_array_length(all);
             i++) {
                json_object *o = json_object_array_get_idx(all, i);

                if (streq_ptr(member_text(o, "name"), name))
                        return member(o, key);
        }
        return NULL;
}

static int take_config(const char *path, json_object *config, Kubeconfig *k) {
        json_object *context = find_entry(config, "contexts", member_text(config, "current-context"), "context");
        json_object *cluster = find_entry(config, "clusters", member_text(context, "cluster"), "cluster");
        json_object *user = find_entry(config, "users", member_text(context, "user"), "user");
        const char *server = member_text(cluster, "server"), *token = member_text(user, "token");
        int r;

        if (!server)
                return log_error_errno(-EINVAL, "%s: The current context has no cluster with a server.", path);
        if (member(user, "exec") || member(user, "auth-provider"))
                return log_error_errno(-EINVAL,
                                       "%s: A program for credentials is not supported: use a token, a token "
                                       "file or a client certificate.",
                                       path);
        if (streq_ptr(member_text(cluster, "insecure-skip-tls-verify"), "true"))
                return log_error_errno(-EINVAL,
                                       "%s: insecure-skip-tls-verify is not supported: name a "
                                       "certificate-authority.",
                                       path);
        r = string_copy(&k->server, server);
        if (r >= 0 && server[strlen(server) - 1] == '/')
                k->server[strlen(server) - 1] = '\0';
        if (r >= 0)
                r = take_file(path, cluster, "certificate-authority", &k->ca_file, &k->ca_text);
        if (r >= 0)
                r = take_file(path, user, "client-certificate", &k->certificate_file, &k->certificate_text);
        if (r >= 0)
                r = take_file(path, user, "client-key", &k->key_file, &k->key_text);
        if (r >= 0)
                r = string_copy(&k->token, token);
        if (r >= 0)
                r = take_path(path, member_text(user, "tokenFile"), &k->token_file);
        return r < 0 ? log_error_errno(r, "%s: A value cannot be read: %m", path) : 0;
}

int kubeconfig_read(const char *path, Kubeconfig *ret) {
        _cleanup_json_ json_object *config = NULL;
        _cleanup_free_ char *text = NULL;
        Kubeconfig k = { 0 };
        size_t size;
        int r = read_file_at(AT_FDCWD, path, FILE_MAX_BYTES, &text, &size);

        if (r < 0)
                return log_error_errno(r, "Failed to read %s: %m", path);
        config = parse_yaml(text, size);
        if (!config)
                return log_error_errno(-EBADMSG, "%s is not YAML, or too large.", path);
        r = take_config(path, config, &k);
        if (r < 0) {
                kubeconfig_done(&k);
                return r;
        }
        *ret = k;
        return 0;
}
