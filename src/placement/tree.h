/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A node in OpenStack Placement as data: a tree of resource providers with inventories and traits, and the claims of
 * consumers on them. Two trees are compared: the wanted tree (wanted.h), and Placement's tree, which the functions
 * below parse. Pure.
 */

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/json-value.h"
#include "util/cleanup.h"

#define TREE_UUID_SIZE 37
#define TREE_NAME_SIZE 256 /* with the NUL: Placement permits 255 characters */

/* Traits of the agent are TRAIT_NUMA, and those that begin with TRAIT_PREFIX. Other traits of a provider belong to the
 * operator. */
#define TRAIT_PREFIX "CUSTOM_PASSTHROUGHD"
#define TRAIT_NUMA   "HW_NUMA_ROOT"

typedef struct Resource {
        char class[TREE_NAME_SIZE];
        int64_t total, reserved;
        bool is_altered; /* in Placement's tree: units, step or ratio differ from those that the agent writes */
} Resource;

typedef struct Provider {
        char *name;
        char uuid[TREE_UUID_SIZE];
        char parent[TREE_UUID_SIZE]; /* "" for a root */
        int64_t generation;          /* in Placement's tree */
        Resource *resources;
        size_t n_resources;
        char **traits;
        size_t n_traits;
        bool is_missing; /* in the wanted tree: the device is missing, so its place in the tree and its traits stay as
                            they are in Placement */
} Provider;

typedef struct ClaimPart {
        char provider[TREE_UUID_SIZE];
        char class[TREE_NAME_SIZE];
        int64_t amount;
} ClaimPart;

typedef struct Claim {
        char consumer[TREE_UUID_SIZE];
        int64_t generation; /* in Placement's tree: of the consumer */
        /* In the wanted tree: a consumer whose claim may have some of these resources already; only the rest is
         * claimed. "": none. */
        char covered_by[TREE_UUID_SIZE];
        ClaimPart *parts;
        size_t n_parts;
        bool is_checked; /* in Placement's tree: is_foreign is valid */
        bool is_foreign; /* another program made the claim: the consumer type is not CONSUMER_TYPE */
} Claim;

#define CONSUMER_TYPE "PASSTHROUGHD"

/* The most resources and traits of a provider, and parts of a claim. A reply with more is refused. */
#define TREE_RESOURCES_MAX 4096U
#define TREE_TRAITS_MAX    4096U
#define TREE_PARTS_MAX     16384U

/* Pointers to elements are valid until the next element is added or removed. */
typedef struct Tree {
        Provider *providers; /* in the wanted tree: the root first, and parents before their children */
        size_t n_providers;
        Claim *claims;
        size_t n_claims;
        /* Indices of the elements: of providers by uuid and by name, of claims by consumer. */
        json_object *by_uuid, *by_name, *by_consumer;
        /* In the wanted tree: names of Nova's providers whose one-time-use device is clean and available. */
        char **cleaned;
        size_t n_cleaned;
} Tree;

Tree *tree_free(Tree *t);
DEFINE_CLEANUP(Tree *, tree_free)

/* Computes the uuid that a provider of this name has if the agent creates it. Other programs choose other uuids. */
void tree_provider_uuid(const char *name, char ret[static TREE_UUID_SIZE]);
/* Returns true when the provider's uuid is tree_provider_uuid() of its name: the agent created it. */
bool provider_is_own(const Provider *p);
bool trait_is_own(const char *trait);

/* The functions that add a provider, resource or claim return the new or existing element; or NULL when out of memory,
 * beyond a limit, or for a text that is too long. */
Provider *tree_add_provider(Tree *t, const char *name, const char *uuid, const char *parent);
Provider *tree_find_provider(const Tree *t, const char *uuid);
Provider *tree_find_name(const Tree *t, const char *name);
void tree_remove_provider(Tree *t, const char *uuid);
/* Moves inventories and traits from `from` to `p`, which must have none. */
void provider_take(Provider *p, Provider *from);
Resource *provider_add_resource(Provider *p, const char *class);
Resource *provider_find_resource(const Provider *p, const char *class);
bool provider_has_trait(const Provider *p, const char *trait);
int provider_add_trait(Provider *p, const char *trait);

/* Adds a copy of a name to Tree.cleaned. 0 or -ENOMEM. */
int tree_add_cleaned(Tree *t, const char *name);
Claim *tree_add_claim(Tree *t, const char *consumer);
Claim *tree_find_claim(const Tree *t, const char *consumer);
void tree_remove_claim(Tree *t, const char *consumer);
/* Adds an amount of a class on a provider to the claim. 0, -ENOMEM, or -EBADMSG beyond TREE_PARTS_MAX or for a text
 * that is too long. */
int claim_add(Claim *c, const char *provider, const char *class, int64_t amount);
int64_t claim_amount(const Claim *c, const char *provider, const char *class);

/* Parsers of Placement's replies. Each replaces what the tree has of the same provider or claim. 0, -ENOMEM, or
 * -EBADMSG for a document that Placement does not send. */
/* Parses an element of GET /resource_providers, or the reply to a POST. */
int tree_parse_provider(Tree *t, json_object *o);
/* Parse the replies to GET or PUT of inventories and of traits of a provider; both set its generation. */
int provider_parse_inventories(Provider *p, json_object *o);
int provider_parse_traits(Provider *p, json_object *o);
/* Parses the reply to GET of a provider's allocations: the parts of each consumer on this provider. */
int tree_parse_usage(Tree *t, const char *provider, json_object *o);
/* Parses the reply to GET /allocations/CONSUMER, or the body of its PUT. Removes a consumer without allocations. */
int tree_parse_claim(Tree *t, const char *consumer, json_object *o);

/* Make documents for Placement; NULL when out of memory. */
json_object *resource_to_json(const Resource *r);
json_object *claim_to_json(const Claim *c);
