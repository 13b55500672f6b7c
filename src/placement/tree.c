/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tree.h"

#include <errno.h>
#include <inttypes.h>
#include <uuid/uuid.h>

#include "model/json-value.h"
#include "util/strings.h"

/* The namespace of provider uuids (version 5). It must never change, otherwise all providers would be created again. */
static const uuid_t provider_namespace = {
        0x9b, 0x1d, 0x53, 0x0c, 0x2e, 0x44, 0x4a, 0x0f, 0xb1, 0x7d, 0x57, 0x3c, 0xe8, 0x60, 0x2a, 0x91,
};

static void provider_done(Provider *p) {
        for (size_t i = 0; i < p->n_traits; i++)
                free(p->traits[i]);
        free(p->traits);
        free(p->resources);
        free(p->name);
}

Tree *tree_free(Tree *t) {
        if (!t)
                return NULL;
        for (size_t i = 0; i < t->n_providers; i++)
                provider_done(&t->providers[i]);
        for (size_t i = 0; i < t->n_claims; i++)
                free(t->claims[i].parts);
        for (size_t i = 0; i < t->n_cleaned; i++)
                free(t->cleaned[i]);
        json_object_put(t->by_uuid);
        json_object_put(t->by_name);
        json_object_put(t->by_consumer);
        free(t->cleaned);
        free(t->providers);
        free(t->claims);
        free(t);
        return NULL;
}

/* Copies a text. Returns false if it does not fit: Placement and the daemon send no such text. */
static bool copy_text(char *to, size_t size, const char *from) {
        size_t n = strlen(from);

        if (n >= size)
                return false;
        memcpy(to, from, n + 1);
        return true;
}

void tree_provider_uuid(const char *name, char ret[static TREE_UUID_SIZE]) {
        uuid_t uuid;

        uuid_generate_sha1(uuid, provider_namespace, name, strlen(name));
        uuid_unparse_lower(uuid, ret);
}

bool provider_is_own(const Provider *p) {
        char uuid[TREE_UUID_SIZE];

        tree_provider_uuid(p->name, uuid);
        return streq(uuid, p->uuid);
}

bool trait_is_own(const char *trait) {
        return streq(trait, TRAIT_NUMA) || strncmp(trait, TRAIT_PREFIX, strlen(TRAIT_PREFIX)) == 0;
}

/* Finds the index of an element by its key. A linear search is too slow: a reply may have tens of thousands of
 * elements. */
static bool index_find(json_object *index, const char *key, size_t *ret) {
        json_object *o;

        if (!json_object_object_get_ex(index, key, &o))
                return false;
        *ret = (size_t) json_object_get_int64(o);
        return true;
}

static bool index_add(json_object **index, const char *key, size_t i) {
        if (!*index)
                *index = json_object_new_object();
        return *index && member_add(*index, key, json_object_new_int64((int64_t) i));
}

static void index_move(json_object *index, const char *key, size_t i) {
        (void) json_object_set_int64(member(index, key), (int64_t) i);
}

Provider *tree_find_provider(const Tree *t, const char *uuid) {
        size_t i;

        return index_find(t->by_uuid, uuid, &i) ? &t->providers[i] : NULL;
}

Provider *tree_find_name(const Tree *t, const char *name) {
        size_t i;

        return index_find(t->by_name, name, &i) ? &t->providers[i] : NULL;
}

Provider *tree_add_provider(Tree *t, const char *name, const char *uuid, const char *parent) {
        Provider *p = tree_find_provider(t, uuid), new = { 0 };

        if (p)
                return p;
        /* Copy before the array grows: the texts may be those of an element, which moves then. */
        new.name = strdup(name);
        if (!new.name || !copy_text(new.uuid, sizeof(new.uuid), uuid) ||
            !copy_text(new.parent, sizeof(new.parent), parent) || ARRAY_RESERVE(t->providers, t->n_providers) < 0 ||
            (!tree_find_name(t, new.name) && !index_add(&t->by_name, new.name, t->n_providers)) ||
            !index_add(&t->by_uuid, new.uuid, t->n_providers)) {
                free(new.name);
                return NULL;
        }
        t->providers[t->n_providers] = new;
        return &t->providers[t->n_providers++];
}

/* Names are unique in Placement, so no other provider of the tree needs the entry in by_name. */
void tree_remove_provider(Tree *t, const char *uuid) {
        Provider *p = tree_find_provider(t, uuid);

        if (!p)
                return;
        json_object_object_del(t->by_uuid, p->uuid);
        json_object_object_del(t->by_name, p->name);
        provider_done(p);
        t->n_providers--;
        memmove(p, p + 1, (size_t) (t->providers + t->n_providers - p) * sizeof(*p));
        for (size_t i = (size_t) (p - t->providers); i < t->n_providers; i++) {
                index_move(t->by_uuid, t->providers[i].uuid, i);
                index_move(t->by_name, t->providers[i].name, i);
        }
}

Resource *provider_find_resource(const Provider *p, const char *class) {
        for (size_t i = 0; i < p->n_resources; i++)
                if (streq(p->resources[i].class, class))
                        return &p->resources[i];
        return NULL;
}

Resource *provider_add_resource(Provider *p, const char *class) {
        Resource *r = provider_find_resource(p, class);

        if (r)
                return r;
        if (p->n_resources >= TREE_RESOURCES_MAX || ARRAY_RESERVE(p->resources, p->n_resources) < 0)
                return NULL;
        r = &p->resources[p->n_resources];
        *r = (Resource) { 0 };
        if (!copy_text(r->class, sizeof(r->class), class))
                return NULL;
        p->n_resources++;
        return r;
}

void provider_take(Provider *p, Provider *from) {
        p->resources = TAKE_PTR(from->resources);
        p->n_resources = from->n_resources;
        p->traits = TAKE_PTR(from->traits);
        p->n_traits = from->n_traits;
        from->n_resources = from->n_traits = 0;
}

bool provider_has_trait(const Provider *p, const char *trait) {
        for (size_t i = 0; i < p->n_traits; i++)
                if (streq(p->traits[i], trait))
                        return true;
        return false;
}

int provider_add_trait(Provider *p, const char *trait) {
        if (provider_has_trait(p, trait))
                return 0;
        if (p->n_traits >= TREE_TRAITS_MAX)
                return -EBADMSG;
        if (ARRAY_RESERVE(p->traits, p->n_traits) < 0)
                return -ENOMEM;
        p->traits[p->n_traits] = strdup(trait);
        return p->traits[p->n_traits] ? (p->n_traits++, 0) : -ENOMEM;
}

int tree_add_cleaned(Tree *t, const char *name) {
        if (ARRAY_RESERVE(t->cleaned, t->n_cleaned) < 0)
                return -ENOMEM;
        t->cleaned[t->n_cleaned] = strdup(name);
        return t->cleaned[t->n_cleaned] ? (t->n_cleaned++, 0) : -ENOMEM;
}

Claim *tree_find_claim(const Tree *t, const char *consumer) {
        size_t i;

        return index_find(t->by_consumer, consumer, &i) ? &t->claims[i] : NULL;
}

Claim *tree_add_claim(Tree *t, const char *consumer) {
        Claim *c = tree_find_claim(t, consumer);

        if (c)
                return c;
        if (ARRAY_RESERVE(t->claims, t->n_claims) < 0)
                return NULL;
        c = &t->claims[t->n_claims];
        *c = (Claim) { 0 };
        if (!copy_text(c->consumer, sizeof(c->consumer), consumer) ||
            !index_add(&t->by_consumer, c->consumer, t->n_claims))
                return NULL;
        t->n_claims++;
        return c;
}

/* Removes claims that have no parts left. */
static void remove_empty_claims(Tree *t) {
        size_t n = 0;

        for (size_t i = 0; i < t->n_claims; i++) {
                Claim *c = &t->claims[i];

                if (c->n_parts > 0) {
                        index_move(t->by_consumer, c->consumer, n);
                        t->claims[n++] = *c;
                } else {
                        json_object_object_del(t->by_consumer, c->consumer);
                        free(c->parts);
                }
        }
        t->n_claims = n;
}

void tree_remove_claim(Tree *t, const char *consumer) {
        Claim *c = tree_find_claim(t, consumer);

        if (!c)
                return;
        json_object_object_del(t->by_consumer, c->consumer);
        free(c->parts);
        t->n_claims--;
        memmove(c, c + 1, (size_t) (t->claims + t->n_claims - c) * sizeof(*c));
        for (size_t i = (size_t) (c - t->claims); i < t->n_claims; i++)
                index_move(t->by_consumer, t->claims[i].consumer, i);
}

static ClaimPart *find_part(const Claim *c, const char *provider, const char *class) {
        for (size_t i = 0; i < c->n_parts; i++)
                if (streq(c->parts[i].provider, provider) && streq(c->parts[i].class, class))
                        return &c->parts[i];
        return NULL;
}

int64_t claim_amount(const Claim *c, const char *provider, const char *class) {
        const ClaimPart *part = find_part(c, provider, class);

        return part ? part->amount : 0;
}

int claim_add(Claim *c, const char *provider, const char *class, int64_t amount) {
        ClaimPart *part = find_part(c, provider, class);

        if (part) {
                part->amount += amount;
                return 0;
        }
        if (c->n_parts >= TREE_PARTS_MAX)
                return -EBADMSG;
        if (ARRAY_RESERVE(c->parts, c->n_parts) < 0)
                return -ENOMEM;
        part = &c->parts[c->n_parts];
        *part = (ClaimPart) { .amount = amount };
        if (!copy_text(part->provider, sizeof(part->provider), provider) ||
            !copy_text(part->class, sizeof(part->class), class))
                return -EBADMSG;
        c->n_parts++;
        return 0;
}

int tree_parse_provider(Tree *t, json_object *o) {
        const char *name = member_text(o, "name"), *uuid = member_text(o, "uuid");
        const char *parent = member_text(o, "parent_provider_uuid") ?: "";
        Provider *p;

        if (!name || !uuid || strlen(uuid) >= TREE_UUID_SIZE || strlen(parent) >= TREE_UUID_SIZE)
                return -EBADMSG;
        p = tree_add_provider(t, name, uuid, parent);
        if (!p)
                return -ENOMEM;
        (void) copy_text(p->parent, sizeof(p->parent), parent);
        p->generation = member_number(o, "generation");
        return 0;
}

int provider_parse_inventories(Provider *p, json_object *o) {
        json_object *all = member_object(o, "inventories");

        if (!all)
                return -EBADMSG;
        p->n_resources = 0;
        p->generation = member_number(o, "resource_provider_generation");
        json_object_object_foreach(all, class, i) {
                Resource *r = provider_add_resource(p, class);

                if (!r)
                        return -ENOMEM;
                r->total = member_number(i, "total");
                r->reserved = member_number(i, "reserved");
                r->is_altered = member_number(i, "min_unit") != 1 || member_number(i, "step_size") != 1 ||
                                member_number(i, "max_unit") != r->total ||
                                json_object_get_double(member(i, "allocation_ratio")) != 1.0;
        }
        return 0;
}

int provider_parse_traits(Provider *p, json_object *o) {
        json_object *all = member_array(o, "traits");

        if (!all)
                return -EBADMSG;
        while (p->n_traits > 0)
                free(p->traits[--p->n_traits]);
        p->generation = member_number(o, "resource_provider_generation");
        for (size_t i = 0; i < json_length(all); i++)
                if (provider_add_trait(p, json_object_get_string(json_at(all, i)) ?: "") < 0)
                        return -ENOMEM;
        return 0;
}

/* Removes the parts of the claim on this provider; NULL: all parts. */
static void claim_forget(Claim *c, const char *provider) {
        size_t n = 0;

        for (size_t i = 0; i < c->n_parts; i++)
                if (provider && !streq(c->parts[i].provider, provider))
                        c->parts[n++] = c->parts[i];
        c->n_parts = n;
}

/* Adds the parts of a claim on a provider. allocation: {"resources": {CLASS: AMOUNT}}. 0, -ENOMEM or -EBADMSG. */
static int claim_parse_part(Claim *c, const char *provider, json_object *allocation) {
        json_object *resources = member_object(allocation, "resources");

        if (!resources)
                return -EBADMSG;
        json_object_object_foreach(resources, class, amount) {
                int r = claim_add(c, provider, class, json_object_get_int64(amount));

                if (r < 0)
                        return r;
        }
        return 0;
}

int tree_parse_usage(Tree *t, const char *provider, json_object *o) {
        json_object *all = member_object(o, "allocations");

        if (!all)
                return -EBADMSG;
        for (size_t i = 0; i < t->n_claims; i++)
                claim_forget(&t->claims[i], provider);
        remove_empty_claims(t);
        json_object_object_foreach(all, consumer, allocation) {
                Claim *c = strlen(consumer) < TREE_UUID_SIZE ? tree_add_claim(t, consumer) : NULL;
                int r = c ? claim_parse_part(c, provider, allocation) : -ENOMEM;

                if (r < 0)
                        return r;
                c->generation = member_number(allocation, "consumer_generation");
        }
        return 0;
}

int tree_parse_claim(Tree *t, const char *consumer, json_object *o) {
        json_object *all = member_object(o, "allocations");
        const char *type = member_text(o, "consumer_type");
        Claim *c;

        if (!all)
                return -EBADMSG;
        if (json_object_object_length(all) == 0) {
                tree_remove_claim(t, consumer);
                return 0;
        }
        c = tree_add_claim(t, consumer);
        if (!c)
                return -ENOMEM;
        claim_forget(c, NULL);
        c->generation = member_number(o, "consumer_generation");
        c->is_checked = true;
        c->is_foreign = !streq_ptr(type, CONSUMER_TYPE);
        json_object_object_foreach(all, provider, allocation) {
                int r = claim_parse_part(c, provider, allocation);

                if (r < 0)
                        return r;
        }
        return 0;
}

json_object *resource_to_json(const Resource *r) {
        return json_format("{'total': %" PRId64 ", 'reserved': %" PRId64 ", 'min_unit': 1, 'max_unit': %" PRId64
                           ", 'step_size': 1, 'allocation_ratio': 1.0}",
                           r->total, r->reserved, r->total);
}

json_object *claim_to_json(const Claim *c) {
        _cleanup_json_ json_object *o = json_object_new_object();

        for (size_t i = 0; o && i < c->n_parts; i++) {
                const ClaimPart *part = &c->parts[i];
                json_object *of = member(o, part->provider), *resources;

                if (!of) {
                        of = json_object_new_object();
                        if (!member_add(o, part->provider, of) ||
                            !member_add(of, "resources", json_object_new_object()))
                                return NULL;
                }
                resources = member(of, "resources");
                if (!member_add(resources, part->class, json_object_new_int64(part->amount)))
                        return NULL;
        }
        return TAKE_PTR(o);
}
