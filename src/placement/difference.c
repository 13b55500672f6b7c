/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "difference.h"

#include <errno.h>

#include "model/json-value.h"
#include "util/strings.h"
#include "util/stringtable.h"

static const char *const change_kind_table[_CHANGE_KIND_MAX] = {
        [CHANGE_REMOVE_CLAIM] = "remove claim",
        [CHANGE_ADD_PROVIDER] = "add provider",
        [CHANGE_MOVE_PROVIDER] = "move provider",
        [CHANGE_INVENTORIES] = "set inventories",
        [CHANGE_TRAITS] = "set traits",
        [CHANGE_CLAIM] = "set claim",
        [CHANGE_REMOVE_PROVIDER] = "remove provider",
};
DEFINE_STRING_TABLE_TO_STRING(change_kind, ChangeKind, _CHANGE_KIND_MAX)

typedef struct Comparison {
        const Tree *wanted, *have;
        const ClaimOwner *owner;
        Changes *changes;
} Comparison;

void changes_done(Changes *c) {
        for (size_t i = 0; i < c->n; i++) {
                free(c->changes[i].name);
                json_object_put(c->changes[i].body);
        }
        free(c->changes);
        *c = (Changes) { 0 };
}

/* Appends a change. Takes ownership of body. */
static int add_change(Comparison *c, ChangeKind kind, const char *uuid, const char *name, json_object *body) {
        Change new = { .kind = kind, .name = name ? strdup(name) : NULL, .body = body };
        bool needs_body = kind != CHANGE_REMOVE_CLAIM && kind != CHANGE_REMOVE_PROVIDER;

        memcpy(new.uuid, uuid, sizeof(new.uuid));
        if ((needs_body && !body) || (name && !new.name) || ARRAY_RESERVE(c->changes->changes, c->changes->n) < 0) {
                free(new.name);
                json_object_put(body);
                return -ENOMEM;
        }
        c->changes->changes[c->changes->n++] = new;
        return 0;
}

static bool add_text(json_object *o, const char *key, const char *value) {
        return member_add(o, key, json_object_new_string(value));
}

/* Returns true when another provider in Placement's tree has the name: for example Nova's provider of the same
 * device. */
static bool is_taken(const Comparison *c, const Provider *wanted) {
        const Provider *p = tree_find_name(c->have, wanted->name);

        return p && !streq(p->uuid, wanted->uuid);
}

/* Returns true when the agent maintains the provider. A root that Nova's compute node has made is only a parent. */
static bool is_reported(const Comparison *c, const Provider *wanted) {
        return provider_is_own(wanted) && !is_taken(c, wanted);
}

static int64_t used_by_others(const Tree *have, const char *provider, const char *class) {
        int64_t sum = 0;

        for (size_t i = 0; i < have->n_claims; i++)
                if (have->claims[i].is_foreign)
                        sum += claim_amount(&have->claims[i], provider, class);
        return sum;
}

static json_object *provider_body(const Provider *p, bool is_new) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o || !add_text(o, "name", p->name) || (is_new && !add_text(o, "uuid", p->uuid)) ||
            (*p->parent && !add_text(o, "parent_provider_uuid", p->parent)))
                return NULL;
        return TAKE_PTR(o);
}

static int compare_place(Comparison *c, const Provider *wanted) {
        const Provider *have = tree_find_provider(c->have, wanted->uuid);

        if (!have)
                return add_change(c, CHANGE_ADD_PROVIDER, wanted->uuid, wanted->name, provider_body(wanted, true));
        if (wanted->is_missing || streq(have->parent, wanted->parent))
                return 0;
        return add_change(c, CHANGE_MOVE_PROVIDER, wanted->uuid, wanted->name, provider_body(wanted, false));
}

static bool resource_equal(const Resource *wanted, const Resource *have) {
        return have && !have->is_altered && wanted->total == have->total && wanted->reserved == have->reserved;
}

/* Keeps a class that the node no longer has while consumers of other programs use it: all of its total is reserved. */
static int keep_used(Provider *to, const Provider *have, const Tree *tree) {
        for (size_t i = 0; have && i < have->n_resources; i++) {
                const Resource *old = &have->resources[i];
                Resource *r;

                if (provider_find_resource(to, old->class) || used_by_others(tree, have->uuid, old->class) == 0)
                        continue;
                r = provider_add_resource(to, old->class);
                if (!r)
                        return -ENOMEM;
                r->total = r->reserved = old->total;
        }
        return 0;
}

static bool inventories_equal(const Provider *wanted, const Provider *have) {
        if (wanted->n_resources != (have ? have->n_resources : 0))
                return false;
        for (size_t i = 0; i < wanted->n_resources; i++)
                if (!resource_equal(&wanted->resources[i], provider_find_resource(have, wanted->resources[i].class)))
                        return false;
        return true;
}

static json_object *inventories_body(const Provider *p) {
        _cleanup_json_ json_object *o = json_object_new_object();
        json_object *all = json_object_new_object();

        if (!o || !member_add(o, "inventories", all))
                return NULL;
        for (size_t i = 0; i < p->n_resources; i++)
                if (!member_add(all, p->resources[i].class, resource_to_json(&p->resources[i])))
                        return NULL;
        return TAKE_PTR(o);
}

/* Adds a change if the inventories differ. wanted: NULL for a provider that must be removed. */
static int compare_inventories(Comparison *c, const Provider *wanted, const Provider *have) {
        const Provider *p = wanted ?: have;
        Provider sum = { 0 };
        int r = 0;

        for (size_t i = 0; r >= 0 && wanted && i < wanted->n_resources; i++) {
                Resource *resource = provider_add_resource(&sum, wanted->resources[i].class);

                if (resource)
                        *resource = wanted->resources[i];
                else
                        r = -ENOMEM;
        }
        if (r >= 0)
                r = keep_used(&sum, have, c->have);
        if (r >= 0 && !inventories_equal(&sum, have))
                r = add_change(c, CHANGE_INVENTORIES, p->uuid, p->name, inventories_body(&sum));
        free(sum.resources);
        return r;
}

static int64_t used_by_all(const Tree *have, const char *provider, const char *class) {
        int64_t sum = 0;

        for (size_t i = 0; i < have->n_claims; i++)
                sum += claim_amount(&have->claims[i], provider, class);
        return sum;
}

bool provider_awaits_return(const Tree *have, const Provider *p, bool *ret_used) {
        const Resource *r = p->n_resources == 1 ? &p->resources[0] : NULL;

        if (provider_is_own(p) || !r || r->is_altered || r->total == 0 || r->reserved != r->total)
                return false;
        *ret_used = used_by_all(have, p->uuid, r->class) > 0;
        return true;
}

/* Nova reserves a one-time-use device for good when an instance gets the device. Sets the reserved amount of a cleaned
 * device to 0, so that Nova can use the device again. */
static int compare_cleaned(Comparison *c, const char *name) {
        const Provider *p = tree_find_name(c->have, name);
        bool is_used;
        Provider returned;
        Resource r;

        if (!p || !provider_awaits_return(c->have, p, &is_used) || is_used)
                return 0;
        r = p->resources[0];
        r.reserved = 0;
        returned = (Provider) { .resources = &r, .n_resources = 1 };
        return add_change(c, CHANGE_INVENTORIES, p->uuid, p->name, inventories_body(&returned));
}

static bool traits_equal(const Provider *wanted, const Provider *have) {
        for (size_t i = 0; i < wanted->n_traits; i++)
                if (!have || !provider_has_trait(have, wanted->traits[i]))
                        return false;
        for (size_t i = 0; have && i < have->n_traits; i++)
                if (trait_is_own(have->traits[i]) && !provider_has_trait(wanted, have->traits[i]))
                        return false;
        return true;
}

static bool append_trait(json_object *array, const char *trait) {
        return json_append(array, json_object_new_string(trait));
}

static json_object *traits_body(const Provider *wanted, const Provider *have) {
        _cleanup_json_ json_object *o = json_object_new_object();
        json_object *all = json_object_new_array();

        if (!o || !member_add(o, "traits", all))
                return NULL;
        for (size_t i = 0; i < wanted->n_traits; i++)
                if (!append_trait(all, wanted->traits[i]))
                        return NULL;
        for (size_t i = 0; have && i < have->n_traits; i++)
                if (!trait_is_own(have->traits[i]) && !append_trait(all, have->traits[i]))
                        return NULL;
        return TAKE_PTR(o);
}

static int compare_traits(Comparison *c, const Provider *wanted) {
        const Provider *have = tree_find_provider(c->have, wanted->uuid);

        if ((wanted->is_missing && have) || traits_equal(wanted, have))
                return 0;
        return add_change(c, CHANGE_TRAITS, wanted->uuid, wanted->name, traits_body(wanted, have));
}

/*
 * Returns whether Placement accepts the part: new parts must not be on reserved resources. So a part on a device that
 * is out of service stays in a claim that has the part already. Other claims get the part when the device is in service
 * again.
 */
static bool part_is_possible(const Comparison *c, const ClaimPart *part, const Claim *have) {
        const Provider *p = tree_find_provider(c->wanted, part->provider);
        const Resource *r = p && is_reported(c, p) ? provider_find_resource(p, part->class) : NULL;

        return r && (r->reserved < r->total || (have && claim_amount(have, part->provider, part->class) > 0));
}

static bool claims_equal(const Claim *a, const Claim *b) {
        if (a->n_parts != (b ? b->n_parts : 0))
                return false;
        for (size_t i = 0; i < a->n_parts; i++)
                if (claim_amount(b, a->parts[i].provider, a->parts[i].class) != a->parts[i].amount)
                        return false;
        return true;
}

static json_object *claim_body(const Comparison *c, const Claim *claim, const Claim *have) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o || !member_add(o, "allocations", claim_to_json(claim)) ||
            !add_text(o, "project_id", c->owner->project) || !add_text(o, "user_id", c->owner->user) ||
            !add_text(o, "consumer_type", CONSUMER_TYPE))
                return NULL;
        /* null tells Placement that the consumer is new */
        if (json_object_object_add(o, "consumer_generation", have ? json_object_new_int64(have->generation) : NULL) < 0)
                return NULL;
        return TAKE_PTR(o);
}

/* Returns how much of the part is in the claim of the consumer `covered_by` already. If several allocations share that
 * claim, it covers the earlier allocations first. */
static int64_t covered_amount(const Comparison *c, const Claim *wanted, const ClaimPart *part) {
        const Claim *cover = tree_find_claim(c->have, wanted->covered_by);
        int64_t covered = cover ? claim_amount(cover, part->provider, part->class) : 0;

        for (const Claim *before = c->wanted->claims; before < wanted; before++)
                if (streq(before->covered_by, wanted->covered_by))
                        covered -= claim_amount(before, part->provider, part->class);
        return MAX(covered, 0);
}

static int compare_claim(Comparison *c, const Claim *wanted) {
        const Claim *have = tree_find_claim(c->have, wanted->consumer);
        Claim possible = { 0 };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < wanted->n_parts; i++) {
                const ClaimPart *part = &wanted->parts[i];
                int64_t covered = covered_amount(c, wanted, part);

                if (part->amount > covered && part_is_possible(c, part, have))
                        r = claim_add(&possible, part->provider, part->class, part->amount - covered);
        }
        if (r >= 0 && !claims_equal(&possible, have))
                r = possible.n_parts > 0
                            ? add_change(c, CHANGE_CLAIM, wanted->consumer, NULL, claim_body(c, &possible, have))
                            : add_change(c, CHANGE_REMOVE_CLAIM, wanted->consumer, NULL, NULL);
        free(possible.parts);
        return r;
}

static bool is_used_by_others(const Comparison *c, const Provider *p) {
        for (size_t i = 0; i < p->n_resources; i++)
                if (used_by_others(c->have, p->uuid, p->resources[i].class) > 0)
                        return true;
        return false;
}

/* The children of each provider of Placement's tree, as lists of indices. NO_CHILD ends a list. */
typedef struct Children {
        size_t *first, *next;
} Children;

#define NO_CHILD  SIZE_MAX
#define DEPTH_MAX 256U

static void children_done(Children *c) {
        free(c->first);
        free(c->next);
}

static int find_children(const Tree *t, Children *ret) {
        ret->first = calloc(t->n_providers + 1, sizeof(*ret->first));
        ret->next = calloc(t->n_providers + 1, sizeof(*ret->next));
        if (!ret->first || !ret->next)
                return -ENOMEM;
        for (size_t i = 0; i < t->n_providers; i++)
                ret->first[i] = NO_CHILD;
        for (size_t i = t->n_providers; i > 0; i--) {
                const Provider *parent = tree_find_provider(t, t->providers[i - 1].parent);
                size_t *list = parent ? &ret->first[parent - t->providers] : NULL;

                ret->next[i - 1] = list ? *list : NO_CHILD;
                if (list)
                        *list = i - 1;
        }
        return 0;
}

/*
 * Adds a change for each removal: first of the provider's children, then of the provider, unless they stay. *ret_stays:
 * the provider or one below it stays, because it is wanted, used by another program's consumer, or created by another
 * program. depth: the depth of the provider in the tree; the agent creates none at DEPTH_MAX.
 */
static int remove_provider(Comparison *c, const Children *children, const Provider *p, unsigned depth,
                           bool *ret_stays) {
        bool stays = !provider_is_own(p) || is_used_by_others(c, p) || tree_find_provider(c->wanted, p->uuid);
        int r = 0;

        *ret_stays = true;
        if (depth == DEPTH_MAX)
                return 0;
        for (size_t i = children->first[p - c->have->providers]; r >= 0 && i != NO_CHILD; i = children->next[i]) {
                bool child_stays = true;

                r = remove_provider(c, children, &c->have->providers[i], depth + 1, &child_stays);
                stays |= child_stays;
        }
        *ret_stays = stays;
        return r < 0 || stays ? r : add_change(c, CHANGE_REMOVE_PROVIDER, p->uuid, p->name, NULL);
}

static int compare_removed(Comparison *c) {
        _cleanup_(children_done) Children children = { 0 };
        int r = find_children(c->have, &children);

        for (size_t i = 0; r >= 0 && i < c->have->n_providers; i++) {
                const Provider *p = &c->have->providers[i];
                bool stays;

                if (*p->parent == '\0')
                        r = remove_provider(c, &children, p, 0, &stays);
        }
        return r;
}

int tree_difference(const Tree *wanted, const Tree *have, const ClaimOwner *owner, Changes *ret) {
        Comparison c = { .wanted = wanted, .have = have, .owner = owner, .changes = ret };
        int r = 0;

        *ret = (Changes) { 0 };
        for (size_t i = 0; r >= 0 && i < have->n_claims; i++)
                if (have->claims[i].is_checked && !have->claims[i].is_foreign &&
                    !tree_find_claim(wanted, have->claims[i].consumer))
                        r = add_change(&c, CHANGE_REMOVE_CLAIM, have->claims[i].consumer, NULL, NULL);
        for (size_t i = 0; r >= 0 && i < wanted->n_providers; i++)
                if (is_reported(&c, &wanted->providers[i]))
                        r = compare_place(&c, &wanted->providers[i]);
        for (size_t i = 0; r >= 0 && i < wanted->n_providers; i++)
                if (is_reported(&c, &wanted->providers[i]))
                        r = compare_inventories(&c, &wanted->providers[i],
                                                tree_find_provider(have, wanted->providers[i].uuid));
        for (size_t i = 0; r >= 0 && i < have->n_providers; i++)
                if (provider_is_own(&have->providers[i]) && !tree_find_provider(wanted, have->providers[i].uuid))
                        r = compare_inventories(&c, NULL, &have->providers[i]);
        for (size_t i = 0; r >= 0 && i < wanted->n_cleaned; i++)
                r = compare_cleaned(&c, wanted->cleaned[i]);
        for (size_t i = 0; r >= 0 && i < wanted->n_providers; i++)
                if (is_reported(&c, &wanted->providers[i]))
                        r = compare_traits(&c, &wanted->providers[i]);
        for (size_t i = 0; r >= 0 && i < wanted->n_claims; i++)
                r = compare_claim(&c, &wanted->claims[i]);
        if (r >= 0)
                r = compare_removed(&c);
        if (r < 0)
                changes_done(ret);
        return r;
}
