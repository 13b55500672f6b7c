/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The requests that make Placement's tree the wanted tree. Pure.
 *
 * The agent changes only what it created: providers with its uuids, its traits (trait_is_own()), and claims of its
 * consumer type. The exception is the reserved amount of Nova's one-time-use devices, which the agent sets back to 0
 * when the daemon has cleaned the device. Inventory that a consumer of another program uses cannot be removed; its
 * reserved amount becomes its total.
 */

#include "tree.h"

/* Changes are made in this order, with two exceptions. Providers are added and moved in the order of the wanted tree.
 * If no part of a wanted claim can or need be claimed now, the claim is removed at the place of CHANGE_CLAIM. */
typedef enum ChangeKind {
        CHANGE_REMOVE_CLAIM,
        CHANGE_ADD_PROVIDER,
        CHANGE_MOVE_PROVIDER,
        CHANGE_INVENTORIES,
        CHANGE_TRAITS,
        CHANGE_CLAIM,
        CHANGE_REMOVE_PROVIDER,
        _CHANGE_KIND_MAX,
} ChangeKind;
const char *change_kind_to_string(ChangeKind kind);

typedef struct Change {
        ChangeKind kind;
        char uuid[TREE_UUID_SIZE]; /* uuid of the provider or consumer */
        char *name;                /* name of the provider; NULL for a claim */
        json_object *body;         /* without the generation of the provider; NULL for a removal */
} Change;

typedef struct Changes {
        Change *changes;
        size_t n;
} Changes;

void changes_done(Changes *c);
#define _cleanup_changes_ _cleanup_(changes_done)

typedef struct ClaimOwner {
        const char *project, *user; /* Placement requires both in every claim */
} ClaimOwner;

/*
 * Returns true when another program's provider has exactly one class, which is not altered (Resource.is_altered) and
 * all of whose total is reserved. Then *ret_used tells whether a consumer has claimed the class.
 */
bool provider_awaits_return(const Tree *have, const Provider *p, bool *ret_used);

/* Lists the changes that make Placement's tree the wanted tree. 0 or -ENOMEM. */
int tree_difference(const Tree *wanted, const Tree *have, const ClaimOwner *owner, Changes *ret);
