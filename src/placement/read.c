/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "read.h"

#include <errno.h>
#include <stdio.h>

#include "agent/http.h"
#include "difference.h"
#include "model/json-value.h"
#include "util/log.h"
#include "util/strings.h"

int placement_bad_reply(const char *path) {
        return log_error("Placement's reply to %s cannot be parsed.", path), -EBADMSG;
}

/* Returns true when the member `key` of the reply is the list, or the map, that Placement sends there. */
static bool has_list(json_object *reply, const char *key) {
        bool is_map = streq(key, "allocations") || streq(key, "inventories");

        return json_object_is_type(member(reply, key), is_map ? json_type_object : json_type_array);
}

/* Checks the reply to a GET of path. Returns 0 if *ret has the list or map `key`. Otherwise frees *ret, and returns a
 * negative errno, logged. */
static int check_reply(Sync *s, const char *path, int status, const char *key, json_object **ret) {
        if (status == 200 && has_list(*ret, key))
                return 0;
        json_object_put(TAKE_PTR(*ret));
        return status < 0 ? status : status / 100 == 2 ? api_wrong_address(s->api, "GET", path, status) : -EACCES;
}

/* Sends a GET of the path `format` followed by `argument`, which is NULL when the caller ran out of memory. Returns as
 * check_reply(). */
static int get(Sync *s, const char *key, json_object **ret, const char *format, const char *argument) {
        _cleanup_free_ char *path = argument ? string_format("%s%s", format, argument) : NULL;

        *ret = NULL;
        if (!path)
                return log_error_errno(-ENOMEM, "Failed to read %s of Placement: %m", key);
        return check_reply(s, path, api_call(s->api, "GET", path, NULL, ret), key, ret);
}

/* Sends a GET of /resource_providers/UUID/KEY. Returns as check_reply(), or -ENOENT: the provider no longer exists. */
static int get_of(Sync *s, const char *uuid, const char *key, json_object **ret) {
        char path[128];
        int status;

        *ret = NULL;
        (void) snprintf(path, sizeof(path), "/resource_providers/%s/%s", uuid, key);
        status = api_try(s->api, "GET", path, NULL, ret);
        if (status == 409)
                status = api_wrong_address(s->api, "GET", path, status);
        if (status != 404)
                return check_reply(s, path, status, key, ret);
        json_object_put(TAKE_PTR(*ret));
        return -ENOENT;
}

/* Reads the claims on a provider. Not all changes of claims change the provider's generation, so the claims are also
 * read if the generation is the same. A provider without inventory can have no claims. Returns as get_of(). */
static int read_usage(Sync *s, const char *uuid) {
        _cleanup_json_ json_object *usage = NULL;
        int r = get_of(s, uuid, "allocations", &usage);

        if (r < 0)
                return r;
        return tree_parse_usage(s->have, uuid, usage) < 0 ? placement_bad_reply(uuid) : 0;
}

int placement_read_provider(Sync *s, const char *uuid) {
        _cleanup_json_ json_object *inventories = NULL, *traits = NULL;
        Provider *p = tree_find_provider(s->have, uuid);
        bool had_resources = p && p->n_resources > 0;
        int r = get_of(s, uuid, "traits", &traits);

        if (r < 0)
                return r;
        r = get_of(s, uuid, "inventories", &inventories);
        if (r < 0 || !p)
                return r;
        if (provider_parse_traits(p, traits) < 0 || provider_parse_inventories(p, inventories) < 0)
                return placement_bad_reply(uuid);
        return had_resources || p->n_resources > 0 ? read_usage(s, uuid) : 0;
}

static int get_by_name(Sync *s, const char *name, json_object **ret) {
        _cleanup_free_ char *escaped = http_escape(name);

        return get(s, "resource_providers", ret, "/resource_providers?name=", escaped);
}

int placement_read_name(Sync *s, const char *name) {
        _cleanup_json_ json_object *reply = NULL;
        json_object *found;
        int r = get_by_name(s, name, &reply);

        if (r < 0)
                return r;
        found = member_at(reply, "resource_providers", 0);
        if (!found)
                return -ENOENT;
        return tree_parse_provider(s->have, found) < 0 ? placement_bad_reply(name) : 0;
}

/* Finds the root provider. -ENOENT, logged: it does not exist, and the settings leave it to Nova. */
static int find_root(Sync *s) {
        _cleanup_json_ json_object *reply = NULL;
        const char *uuid;
        int r = get_by_name(s, s->settings->host, &reply);

        if (r < 0)
                return r;
        uuid = member_text(member_at(reply, "resource_providers", 0), "uuid");
        if (uuid && strlen(uuid) >= sizeof(s->root))
                return placement_bad_reply("/resource_providers");
        if (uuid)
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
        int r = get(s, key, &reply, path, "");

        if (r < 0)
                return r;
        all = member(reply, key);
        for (size_t i = 0; i < json_length(all); i++) {
                json_object *o = json_at(all, i);
                const char *name =
                        json_object_get_string(json_object_is_type(o, json_type_object) ? member(o, "name") : o);

                if (name && json_object_object_add(s->known, name, NULL) < 0)
                        return log_error_errno(-ENOMEM, "Failed to read %s of Placement: %m", key);
        }
        return 0;
}

static int read_providers(Sync *s) {
        _cleanup_json_ json_object *reply = NULL;
        json_object *all;
        int r = get(s, "resource_providers", &reply, "/resource_providers?in_tree=", s->root);

        if (r < 0)
                return r;
        all = member(reply, "resource_providers");
        for (size_t i = 0; i < json_length(all); i++)
                if (tree_parse_provider(s->have, json_at(all, i)) < 0)
                        return placement_bad_reply("/resource_providers");
        return 0;
}

/* Returns the provider of the old tree if its data is still valid: its generation has not changed. Otherwise returns
 * NULL. */
static Provider *find_same(const Tree *old, const Provider *p) {
        Provider *before = old ? tree_find_provider(old, p->uuid) : NULL;

        return before && before->generation == p->generation ? before : NULL;
}

static int reread_provider(Sync *s, const Provider *p, const Tree *old) {
        const Provider *before = find_same(old, p);

        if (!before)
                return placement_read_provider(s, p->uuid);
        return before->n_resources > 0 ? read_usage(s, p->uuid) : 0;
}

/* Logs that another program has removed a provider. Returns -EAGAIN: the next comparison reads the tree without it. */
static int was_removed(const char *name) {
        return log_warning_errno(-EAGAIN, "Another program has removed the provider '%s'; trying again later.", name);
}

static void take_providers(Sync *s, const Tree *old) {
        for (size_t i = 0; i < s->have->n_providers; i++) {
                Provider *before = find_same(old, &s->have->providers[i]);

                if (before && provider_is_own(before))
                        provider_take(&s->have->providers[i], before);
        }
}

/* Copies from the old tree whether the agent made a claim: the type of a consumer does not change. */
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

static int read_parts(Sync *s, const Tree *old) {
        int r = find_root(s);

        if (r < 0)
                return r;
        r = read_known(s, "/resource_classes", "resource_classes");
        if (r < 0)
                return r;
        r = read_known(s, "/traits?name=startswith:" TRAIT_PREFIX, "traits");
        if (r < 0)
                return r;
        r = read_providers(s);
        for (size_t i = 0; r >= 0 && i < s->have->n_providers; i++)
                if (provider_is_own(&s->have->providers[i])) {
                        r = reread_provider(s, &s->have->providers[i], old);
                        if (r == -ENOENT)
                                r = was_removed(s->have->providers[i].name);
                }
        return r;
}

int placement_read_tree(Sync *s) {
        _cleanup_(cleanup_tree_free) Tree *old = TAKE_PTR(s->have);
        int r;

        s->have = calloc(1, sizeof(*s->have));
        json_object_put(s->known);
        s->known = json_object_new_object();
        json_object_put(TAKE_PTR(s->returned));
        if (!s->have || !s->known)
                return log_error_errno(-ENOMEM, "Failed to read Placement's tree: %m");
        r = read_parts(s, old);
        if (r < 0) {
                /* Keep the old tree: the next try reads only providers that have changed since. */
                tree_free(s->have);
                s->have = TAKE_PTR(old);
                s->is_stale = true;
                return r;
        }
        take_providers(s, old);
        take_types(s, old);
        s->is_stale = false;
        return 0;
}

int placement_read_claim(Sync *s, const char *consumer) {
        _cleanup_json_ json_object *reply = NULL;
        int r = get(s, "allocations", &reply, "/allocations/", consumer);

        if (r < 0)
                return r;
        return tree_parse_claim(s->have, consumer, reply) < 0 ? placement_bad_reply(consumer) : 0;
}

int placement_check_claims(Sync *s, const Tree *wanted) {
        int r = 0;

        for (size_t i = s->have->n_claims; r >= 0 && i > 0; i--) {
                const Claim *c = &s->have->claims[i - 1];
                char consumer[TREE_UUID_SIZE];

                memcpy(consumer, c->consumer, sizeof(consumer));
                if (!c->is_checked && !tree_find_claim(wanted, consumer))
                        r = placement_read_claim(s, consumer);
        }
        for (size_t i = 0; r >= 0 && i < wanted->n_claims; i++)
                if (*wanted->claims[i].covered_by && !tree_find_claim(s->have, wanted->claims[i].covered_by))
                        r = placement_read_claim(s, wanted->claims[i].covered_by);
        return r;
}

int placement_read_cleaned(Sync *s, const Tree *wanted) {
        json_object *returned = json_object_new_object();
        bool can_return = false;
        int r = 0;

        if (!returned)
                return log_error_errno(-ENOMEM, "Failed to read Nova's providers: %m");
        for (size_t i = 0; r >= 0 && i < wanted->n_cleaned; i++) {
                const char *name = wanted->cleaned[i];
                Provider *p = tree_find_name(s->have, name);
                bool is_read = !json_object_object_get_ex(s->returned, name, NULL), is_used = false, awaits;

                if (!p || provider_is_own(p))
                        continue;
                if (is_read)
                        r = placement_read_provider(s, p->uuid);
                if (r == -ENOENT)
                        r = was_removed(name);
                if (r < 0)
                        break;
                awaits = provider_awaits_return(s->have, p, &is_used);
                can_return |= is_read && awaits && !is_used;
                /* A device that Nova still uses is not in `returned`, so that it is read again each time. */
                if (!is_used && json_object_object_add(returned, name, NULL) < 0)
                        r = log_error_errno(-ENOMEM, "Failed to read Nova's providers: %m");
        }
        json_object_put(s->returned);
        s->returned = returned;
        return r < 0 ? r : can_return;
}
