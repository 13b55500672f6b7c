/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "sync.h"

#include <errno.h>
#include <stdio.h>

#include "difference.h"
#include "util/log.h"
#include "util/strings.h"
#include "wanted.h"

#define ROUNDS_MAX 8 /* of conflicts in one run */

/* What became of a change. Negative: the run ends. */
enum {
        RESULT_DONE,
        RESULT_REFUSED,  /* logged; the other changes go on */
        RESULT_CONFLICT, /* the subject was read again */
};

static void sync_forget(Sync *s) {
        s->have = tree_free(s->have);
        json_object_put(s->known);
        s->known = NULL;
}

void sync_reread(Sync *s) {
        s->is_stale = true;
}

void sync_done(Sync *s) {
        sync_forget(s);
}

static int bad_reply(const char *path) {
        return log_error("Placement's reply to %s cannot be parsed.", path), -EBADMSG;
}

/* Placement's tree */

/* GET. 0 with a document, -ENOENT for status 404, or a negative errno, logged. */
static int get(Sync *s, json_object **ret, const char *format, const char *argument) {
        _cleanup_free_ char *path = string_format("%s%s", format, argument);
        int status = path ? api_call(s->api, "GET", path, NULL, ret) : -ENOMEM;

        if (status < 0)
                return status;
        if (status == 200 && *ret)
                return 0;
        json_object_put(TAKE_PTR(*ret));
        return status == 404 ? -ENOENT : status < 400 ? bad_reply(path) : -EACCES;
}

static int get_of(Sync *s, const char *uuid, const char *what, json_object **ret) {
        char path[128];

        (void) snprintf(path, sizeof(path), "/resource_providers/%s%s", uuid, what);
        return get(s, ret, path, "");
}

/* Claims change without a new generation of their provider. A provider without inventory has none. */
static int read_usage(Sync *s, const char *uuid) {
        _cleanup_json_ json_object *usage = NULL;
        int r = get_of(s, uuid, "/allocations", &usage);

        if (r < 0)
                return r;
        return tree_parse_usage(s->have, uuid, usage) < 0 ? bad_reply(uuid) : 0;
}

/* Reads inventories, traits and claims of a provider. -ENOENT: Placement does not have it any more. */
static int read_provider(Sync *s, const char *uuid) {
        _cleanup_json_ json_object *inventories = NULL, *traits = NULL;
        Provider *p = tree_find_provider(s->have, uuid);
        bool had_resources = p && p->n_resources > 0;
        int r = get_of(s, uuid, "/traits", &traits);

        if (r >= 0)
                r = get_of(s, uuid, "/inventories", &inventories);
        if (r < 0 || !p)
                return r;
        if (provider_parse_traits(p, traits) < 0 || provider_parse_inventories(p, inventories) < 0)
                return bad_reply(uuid);
        return had_resources || p->n_resources > 0 ? read_usage(s, uuid) : 0;
}

/* -ENOENT, logged: the root does not exist, and the settings leave it to Nova. */
static int find_root(Sync *s) {
        _cleanup_free_ char *name = api_escape(s->api, s->settings->host);
        _cleanup_json_ json_object *reply = NULL;
        const char *uuid;
        int r = name ? get(s, &reply, "/resource_providers?name=", name) : -ENOMEM;

        if (r < 0)
                return r;
        uuid = json_object_get_string(json_object_object_get(
                json_object_array_get_idx(json_object_object_get(reply, "resource_providers"), 0), "uuid"));
        if (uuid && strlen(uuid) < sizeof(s->root))
                (void) strcpy(s->root, uuid);
        else if (s->settings->add_root)
                tree_provider_uuid(s->settings->host, s->root);
        else
                return log_warning_errno(-ENOENT, "Placement has no provider '%s' yet.", s->settings->host);
        return 0;
}

static int read_known(Sync *s, const char *path, const char *key) {
        _cleanup_json_ json_object *reply = NULL;
        json_object *all;
        int r = get(s, &reply, path, "");

        if (r < 0)
                return r;
        all = json_object_object_get(reply, key);
        if (!json_object_is_type(all, json_type_array))
                return bad_reply(path);
        for (size_t i = 0; i < json_object_array_length(all); i++) {
                json_object *o = json_object_array_get_idx(all, i);
                const char *name = json_object_get_string(
                        json_object_is_type(o, json_type_object) ? json_object_object_get(o, "name") : o);

                if (name && json_object_object_add(s->known, name, NULL) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int read_providers(Sync *s) {
        _cleanup_json_ json_object *reply = NULL;
        json_object *all;
        int r = get(s, &reply, "/resource_providers?in_tree=", s->root);

        if (r < 0)
                return r;
        all = json_object_object_get(reply, "resource_providers");
        if (!json_object_is_type(all, json_type_array))
                return bad_reply("/resource_providers");
        for (size_t i = 0; i < json_object_array_length(all); i++)
                if (tree_parse_provider(s->have, json_object_array_get_idx(all, i)) < 0)
                        return bad_reply("/resource_providers");
        return 0;
}

/* What was read of a provider is true as long as its generation is the same. */
static int reread_provider(Sync *s, Provider *p, Tree *old) {
        Provider *before = old ? tree_find_provider(old, p->uuid) : NULL;

        if (!before || before->generation != p->generation)
                return read_provider(s, p->uuid);
        provider_take(p, before);
        return p->n_resources > 0 ? read_usage(s, p->uuid) : 0;
}

/* The type of a consumer stays. */
static void take_types(Sync *s, const Tree *old) {
        for (size_t i = 0; old && i < s->have->n_claims; i++) {
                Claim *c = &s->have->claims[i];
                const Claim *before = tree_find_claim(old, c->consumer);

                if (before && before->is_checked) {
                        c->is_checked = true;
                        c->is_foreign = before->is_foreign;
                }
        }
}

static int read_tree(Sync *s) {
        _cleanup_(cleanup_tree_free) Tree *old = TAKE_PTR(s->have);
        int r;

        s->have = calloc(1, sizeof(*s->have));
        json_object_put(s->known);
        s->known = json_object_new_object();
        if (!s->have || !s->known)
                return log_error_errno(-ENOMEM, "Failed to read Placement's tree: %m");
        r = find_root(s);
        if (r >= 0)
                r = read_known(s, "/resource_classes", "resource_classes");
        if (r >= 0)
                r = read_known(s, "/traits?name=startswith:" TRAIT_PREFIX, "traits");
        if (r >= 0)
                r = read_providers(s);
        for (size_t i = 0; r >= 0 && i < s->have->n_providers; i++)
                if (provider_is_own(&s->have->providers[i]))
                        r = reread_provider(s, &s->have->providers[i], old);
        if (r < 0)
                return r;
        take_types(s, old);
        s->is_stale = false;
        return 0;
}

static int read_claim(Sync *s, const char *consumer) {
        _cleanup_json_ json_object *reply = NULL;
        int r = get(s, &reply, "/allocations/", consumer);

        if (r < 0)
                return r;
        return tree_parse_claim(s->have, consumer, reply) < 0 ? bad_reply(consumer) : 0;
}

/* Finds out which claims that are not wanted are the agent's. */
static int check_claims(Sync *s, const Tree *wanted) {
        int r = 0;

        for (size_t i = s->have->n_claims; r >= 0 && i > 0; i--) {
                const Claim *c = &s->have->claims[i - 1];
                char consumer[TREE_UUID_SIZE];

                memcpy(consumer, c->consumer, sizeof(consumer));
                if (!c->is_checked && !tree_find_claim(wanted, consumer))
                        r = read_claim(s, consumer);
        }
        return r;
}

/* Changes */

static const char *change_method(ChangeKind kind) {
        return kind == CHANGE_REMOVE_CLAIM || kind == CHANGE_REMOVE_PROVIDER ? "DELETE"
               : kind == CHANGE_ADD_PROVIDER                                 ? "POST"
                                                                             : "PUT";
}

static void change_path(const Change *c, char *ret, size_t size) {
        bool is_claim = c->kind == CHANGE_CLAIM || c->kind == CHANGE_REMOVE_CLAIM;

        if (c->kind == CHANGE_ADD_PROVIDER)
                (void) snprintf(ret, size, "/resource_providers");
        else
                (void) snprintf(ret, size, "/%s/%s%s", is_claim ? "allocations" : "resource_providers", c->uuid,
                                c->kind == CHANGE_INVENTORIES ? "/inventories"
                                : c->kind == CHANGE_TRAITS    ? "/traits"
                                                              : "");
}

/* Makes a resource class or a trait that Placement does not have yet. */
static int make_name(Sync *s, const char *kind, const char *name) {
        char path[TREE_NAME_SIZE + 32];
        int status;

        if (strncmp(name, "CUSTOM_", 7) != 0 || json_object_object_get_ex(s->known, name, NULL))
                return 0;
        (void) snprintf(path, sizeof(path), "/%s/%s", kind, name);
        status = api_call(s->api, "PUT", path, NULL, NULL);
        if (status < 0)
                return status;
        return status < 300 && json_object_object_add(s->known, name, NULL) == 0 ? 0 : -EACCES;
}

static int make_names(Sync *s, const Change *c) {
        json_object *classes = json_object_object_get(c->body, "inventories");
        json_object *traits = json_object_object_get(c->body, "traits");
        int r = 0;

        if (c->kind == CHANGE_INVENTORIES) {
                json_object_object_foreach(classes, class, unused) {
                        (void) unused;
                        if (r >= 0)
                                r = make_name(s, "resource_classes", class);
                }
        } else if (c->kind == CHANGE_TRAITS)
                for (size_t i = 0; r >= 0 && i < json_object_array_length(traits); i++)
                        r = make_name(s, "traits", json_object_get_string(json_object_array_get_idx(traits, i)));
        return r;
}

/* Placement accepts a change of a provider only with its present generation. */
static int set_generation(const Sync *s, const Change *c) {
        const Provider *p = tree_find_provider(s->have, c->uuid);

        if (c->kind != CHANGE_INVENTORIES && c->kind != CHANGE_TRAITS)
                return 0;
        return json_object_object_add(c->body, "resource_provider_generation",
                                      json_object_new_int64(p ? p->generation : 0));
}

/* Placement has the claim: each provider in it has a new generation, and so has the consumer. */
static int enter_claim(Sync *s, const Change *c) {
        Claim *claim;

        if (tree_parse_claim(s->have, c->uuid, c->body) < 0)
                return -ENOMEM;
        claim = tree_find_claim(s->have, c->uuid);
        if (claim)
                claim->generation++;
        json_object_object_foreach(json_object_object_get(c->body, "allocations"), uuid, unused) {
                Provider *p = tree_find_provider(s->have, uuid);

                (void) unused;
                if (p)
                        p->generation++;
        }
        return 0;
}

/* Enters a change that Placement accepted into its tree. */
static int enter_change(Sync *s, const Change *c, json_object *reply) {
        Provider *p = tree_find_provider(s->have, c->uuid);

        switch (c->kind) {
        case CHANGE_REMOVE_CLAIM:
                tree_remove_claim(s->have, c->uuid);
                return 0;
        case CHANGE_ADD_PROVIDER:
        case CHANGE_MOVE_PROVIDER:
                return reply ? tree_parse_provider(s->have, reply) : -EBADMSG;
        case CHANGE_INVENTORIES:
                return p && reply ? provider_parse_inventories(p, reply) : -EBADMSG;
        case CHANGE_TRAITS:
                return p && reply ? provider_parse_traits(p, reply) : -EBADMSG;
        case CHANGE_CLAIM:
                return enter_claim(s, c);
        case CHANGE_REMOVE_PROVIDER:
                tree_remove_provider(s->have, c->uuid);
                return 0;
        case _CHANGE_KIND_MAX:
                break;
        }
        return -EINVAL;
}

static const char *error_code(json_object *reply) {
        return json_object_get_string(json_object_object_get(
                       json_object_array_get_idx(json_object_object_get(reply, "errors"), 0), "code"))
                       ?: "";
}

static const char *change_subject(const Change *c) {
        return c->name ?: c->uuid;
}

/* Placement refuses the change with status 409. */
static int resolve_conflict(Sync *s, const Change *c, json_object *reply) {
        bool is_claim = c->kind == CHANGE_CLAIM || c->kind == CHANGE_REMOVE_CLAIM;

        /* Another tree has a provider of that name, or a consumer of another program took the resources first. */
        if (c->kind == CHANGE_ADD_PROVIDER || (is_claim && !streq(error_code(reply), "placement.concurrent_update"))) {
                log_warning("Placement refuses to %s '%s': %s", change_kind_to_string(c->kind), change_subject(c),
                            reply ? json_line(reply) ?: "" : "no reason given.");
                return RESULT_REFUSED;
        }
        log_debug("Conflict: %s '%s', reading it again.", change_kind_to_string(c->kind), change_subject(c));
        if (is_claim) {
                int r = read_claim(s, c->uuid);

                return r < 0 ? r : RESULT_CONFLICT;
        }
        switch (read_provider(s, c->uuid)) {
        case 0:
                return RESULT_CONFLICT;
        case -ENOENT:
                sync_forget(s);
                return RESULT_CONFLICT;
        default:
                return -EAGAIN;
        }
}

static int make_change(Sync *s, const Change *c) {
        _cleanup_json_ json_object *reply = NULL;
        char path[128];
        int status, r = make_names(s, c);

        if (r < 0 || set_generation(s, c) < 0)
                return r < 0 ? r : -ENOMEM;
        change_path(c, path, sizeof(path));
        status = api_call(s->api, change_method(c->kind), path, c->body, &reply);
        if (status < 0)
                return status;
        if (status == 409)
                return resolve_conflict(s, c, reply);
        if (status == 404 && !streq(change_method(c->kind), "DELETE")) {
                sync_forget(s); /* the provider was removed */
                return RESULT_CONFLICT;
        }
        if (status >= 400 && status != 404)
                return status == 400 ? RESULT_REFUSED : -EACCES;
        r = enter_change(s, c, reply);
        if (r < 0)
                return bad_reply(path);
        s->changes++;
        return RESULT_DONE;
}

static int print_changes(const Changes *changes) {
        for (size_t i = 0; i < changes->n; i++) {
                const Change *c = &changes->changes[i];

                printf("%s %s%s%s\n", change_kind_to_string(c->kind), change_subject(c), c->body ? " " : "",
                       c->body ? json_line(c->body) ?: "" : "");
        }
        return fflush(stdout) == 0 ? 0 : -errno;
}

/* 0: Placement's tree is the wanted tree, but for refused changes. RESULT_CONFLICT: try again. */
static int make_changes(Sync *s, const Changes *changes) {
        int conflict = 0;

        for (size_t i = 0; i < changes->n && s->have; i++) {
                int r = make_change(s, &changes->changes[i]);

                if (r < 0)
                        return r;
                if (r == RESULT_CONFLICT)
                        conflict = RESULT_CONFLICT;
        }
        return conflict;
}

static int run_once(Sync *s, json_object *describe) {
        _cleanup_(cleanup_tree_free) Tree *wanted = NULL;
        _cleanup_changes_ Changes changes = { 0 };
        ClaimOwner owner = { .project = s->settings->project, .user = s->settings->user };
        char own_root[TREE_UUID_SIZE];
        WantedOptions options = { .host = s->settings->host, .root = s->root };
        int r = s->have && !s->is_stale ? 0 : read_tree(s);

        if (r < 0)
                return r;
        tree_provider_uuid(s->settings->host, own_root);
        options.devices_only = !streq(s->root, own_root);
        r = tree_wanted(describe, &options, &wanted);
        if (r < 0)
                return log_error_errno(r, "Failed to read the reply of passthroughd: %m");
        r = check_claims(s, wanted);
        if (r >= 0)
                r = tree_difference(wanted, s->have, &owner, &changes);
        if (r < 0)
                return r;
        return s->dry_run ? print_changes(&changes) : make_changes(s, &changes);
}

int sync_run(Sync *s, json_object *describe) {
        int r = RESULT_CONFLICT;

        for (int i = 0; i < ROUNDS_MAX && r == RESULT_CONFLICT; i++)
                r = run_once(s, describe);
        if (r == RESULT_CONFLICT)
                r = log_warning_errno(-EAGAIN, "Other programs change Placement at the same time; trying again later.");
        if (r < 0)
                sync_forget(s);
        return r;
}
