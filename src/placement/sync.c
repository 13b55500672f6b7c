/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "sync.h"

#include <errno.h>
#include <stdio.h>

#include "difference.h"
#include "model/json-value.h"
#include "read.h"
#include "util/log.h"
#include "util/strings.h"
#include "wanted.h"

#define ROUNDS_MAX 8 /* the most comparisons in one run, if conflicts repeat */

/* The result of a change; or a negative errno, which ends the run. */
enum {
        RESULT_DONE,
        RESULT_REFUSED,  /* logged; the run continues with the other changes */
        RESULT_CONFLICT, /* the compared data is out of date, or a claim lacks its provider: compare once more */
};

static void sync_forget(Sync *s) {
        s->have = tree_free(s->have);
        json_object_put(s->known);
        s->known = NULL;
        json_object_put(TAKE_PTR(s->returned));
}

void sync_reread(Sync *s) {
        s->is_stale = true;
}

void sync_done(Sync *s) {
        sync_forget(s);
}

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

/* Creates a custom resource class or trait, unless Placement has it. 0 or a negative errno. */
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
        json_object *classes = member(c->body, "inventories");
        json_object *traits = member(c->body, "traits");
        int r = 0;

        if (c->kind == CHANGE_INVENTORIES) {
                json_object_object_foreach(classes, class, unused) {
                        (void) unused;
                        if (r >= 0)
                                r = make_name(s, "resource_classes", class);
                }
        } else if (c->kind == CHANGE_TRAITS)
                for (size_t i = 0; r >= 0 && i < json_length(traits); i++)
                        r = make_name(s, "traits", json_object_get_string(json_at(traits, i)));
        return r;
}

/* Puts the provider's present generation into a change of inventories or traits: Placement refuses any other. -ENOENT:
 * the provider does not exist, because Placement did not add it. */
static int set_generation(const Sync *s, const Change *c) {
        const Provider *p = tree_find_provider(s->have, c->uuid);

        if (c->kind != CHANGE_INVENTORIES && c->kind != CHANGE_TRAITS)
                return 0;
        if (!p)
                return -ENOENT;
        return json_object_object_add(c->body, "resource_provider_generation", json_object_new_int64(p->generation));
}

/* Returns the generation that a provider or consumer has after a change. Should it be wrong, Placement refuses the next
 * change with 409, and the provider or claim is read again. */
static int64_t next_generation(int64_t generation) {
        return generation < INT64_MAX ? generation + 1 : 0;
}

/*
 * Enters in the tree a claim that Placement has accepted. The consumer and all providers of the claim get their next
 * generation.
 */
static int enter_claim(Sync *s, const Change *c) {
        Claim *claim;

        if (tree_parse_claim(s->have, c->uuid, c->body) < 0)
                return -ENOMEM;
        claim = tree_find_claim(s->have, c->uuid);
        if (claim)
                claim->generation = next_generation(claim->generation);
        json_object_object_foreach(member(c->body, "allocations"), uuid, unused) {
                Provider *p = tree_find_provider(s->have, uuid);

                (void) unused;
                if (p)
                        p->generation = next_generation(p->generation);
        }
        return 0;
}

/* Enters in the tree a change that Placement has accepted. 0 or a negative errno. */
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
        return member_text(member_at(reply, "errors", 0), "code") ?: "";
}

static const char *change_subject(const Change *c) {
        return c->name ?: c->uuid;
}

/* Reads a claim again. Then adds it, if missing, with generation 0: Placement keeps a consumer whose provider was
 * removed, but does not report the consumer. */
static int reread_claim(Sync *s, const char *consumer) {
        int r = placement_read_claim(s, consumer);

        if (r < 0)
                return r;
        return tree_add_claim(s->have, consumer) ? RESULT_CONFLICT : -ENOMEM;
}

/* Handles status 409, a conflict: reads the provider or claim again. Returns a RESULT_*, or a negative errno. */
static int resolve_conflict(Sync *s, const Change *c, json_object *reply) {
        bool is_claim = c->kind == CHANGE_CLAIM || c->kind == CHANGE_REMOVE_CLAIM;

        /* This is no conflict of generations: another tree has a provider of this name, or another consumer took the
         * resources first. */
        if (c->kind == CHANGE_ADD_PROVIDER || (is_claim && !streq(error_code(reply), "placement.concurrent_update"))) {
                int r = is_claim ? -ENOENT : placement_read_name(s, c->name);
                _cleanup_free_ char *reason = reply ? json_text(reply) : NULL;

                log_warning("Placement refuses to %s '%s': %s", change_kind_to_string(c->kind), change_subject(c),
                            reason ?: "no reason given.");
                return r == -ENOENT ? RESULT_REFUSED : r < 0 ? r : RESULT_CONFLICT;
        }
        log_debug("Conflict: %s '%s', reading it again.", change_kind_to_string(c->kind), change_subject(c));
        if (is_claim)
                return reread_claim(s, c->uuid);
        switch (placement_read_provider(s, c->uuid)) {
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
        int status, r = set_generation(s, c);

        if (r == -ENOENT)
                return RESULT_REFUSED;
        if (r == 0)
                r = make_names(s, c);
        if (r < 0)
                return r;
        change_path(c, path, sizeof(path));
        status = api_try(s->api, change_method(c->kind), path, c->body, &reply);
        if (status < 0)
                return status;
        if (status == 409)
                return resolve_conflict(s, c, reply);
        if (status == 404 && !streq(change_method(c->kind), "DELETE")) {
                sync_forget(s); /* the provider no longer exists */
                return RESULT_CONFLICT;
        }
        if (status >= 300 && status != 404)
                return status == 400 ? RESULT_REFUSED : -EACCES;
        r = enter_change(s, c, reply);
        if (r < 0)
                return placement_bad_reply(path);
        s->changes++;
        return RESULT_DONE;
}

static int print_changes(const Changes *changes) {
        for (size_t i = 0; i < changes->n; i++) {
                const Change *c = &changes->changes[i];
                _cleanup_free_ char *body = c->body ? json_text(c->body) : NULL;

                printf("%s %s%s%s\n", change_kind_to_string(c->kind), change_subject(c), body ? " " : "", body ?: "");
        }
        return fflush(stdout) == 0 ? 0 : -errno;
}

/* Makes the changes in order. Returns 0 when all are made or refused, RESULT_CONFLICT when the caller must compare once
 * more, or a negative errno. */
static int make_changes(Sync *s, const Changes *changes) {
        bool lacks_provider = false;
        int conflict = 0;

        for (size_t i = 0; i < changes->n && s->have; i++) {
                const Change *c = &changes->changes[i];
                /* The claim may be on a provider that was not added because of a conflict: compare once more. */
                int r = lacks_provider && c->kind == CHANGE_CLAIM ? RESULT_CONFLICT : make_change(s, c);

                if (r < 0)
                        return r;
                if (r == RESULT_CONFLICT) {
                        conflict = RESULT_CONFLICT;
                        lacks_provider |= c->kind == CHANGE_ADD_PROVIDER;
                }
        }
        return conflict;
}

static int run_once(Sync *s, json_object *document) {
        _cleanup_(cleanup_tree_free) Tree *wanted = NULL;
        _cleanup_changes_ Changes changes = { 0 };
        ClaimOwner owner = { .project = s->settings->project, .user = s->settings->user };
        char own_root[TREE_UUID_SIZE];
        WantedOptions options = { .host = s->settings->host, .root = s->root };
        int r = s->have && !s->is_stale ? 0 : placement_read_tree(s);

        if (r < 0)
                return r;
        tree_provider_uuid(s->settings->host, own_root);
        options.devices_only = !streq(s->root, own_root);
        r = tree_wanted(document, &options, &wanted);
        if (r < 0)
                return log_error_errno(r, "Failed to read the reply of passthroughd: %m");
        r = placement_read_cleaned(s, wanted);
        if (r > 0) /* a guest may have used a device since the document was made: get a new document */
                return RESULT_CONFLICT;
        if (r < 0)
                return r;
        r = placement_check_claims(s, wanted);
        if (r < 0)
                return r;
        r = tree_difference(wanted, s->have, &owner, &changes);
        if (r < 0)
                return r;
        return s->dry_run ? print_changes(&changes) : make_changes(s, &changes);
}

int sync_run(Sync *s) {
        int r = RESULT_CONFLICT;

        for (int i = 0; i < ROUNDS_MAX && r == RESULT_CONFLICT; i++) {
                _cleanup_json_ json_object *document = NULL;

                r = s->describe(s->userdata, &document);
                if (r < 0)
                        return r; /* Placement's tree as read stays valid */
                r = run_once(s, document);
        }
        if (r == RESULT_CONFLICT)
                r = log_warning_errno(-EAGAIN, "Other programs change Placement at the same time; trying again later.");
        /* These failures discard what was read. Other failures keep it, to send few requests to a Placement that is
         * slow already. */
        if (r == -EBADMSG || r == -EADDRNOTAVAIL || r == -ENOMEM)
                sync_forget(s);
        else if (r < 0)
                sync_reread(s);
        return r;
}
