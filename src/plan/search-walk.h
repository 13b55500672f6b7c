/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One walk over the tree of candidates, from the leaves to the root. Only the search includes this header. */

#include "search-table.h"
#include "search-tree.h"

struct Search {
        Space space;
        SearchScratch scratch;
        Leaf *leaves;
        size_t n_leaves;
        Table *spare;
        /* of the current walk */
        const SearchTask *task;
        Distance worst;                           /* limit for GPU-NIC pairs */
        Cost most;                                /* limit for devices off the nodes, as cost_off_node() */
        NodeAffinity farthest[REQUEST_POOLS_MAX]; /* largest affinity of a candidate, by pool */
        unsigned have[REQUEST_POOLS_MAX];         /* number of candidates, by pool */
        unsigned others[REQUEST_POOLS_MAX];       /* candidates that the walk has not reached yet, by pool */
        uint64_t *work;
};

/* Tables are large and few are in use at a time, so they are recycled. NULL: out of memory. */
Table *search_take_table(Search *s);
void search_give_back(Search *s, Table *t);

/*
 * Fills *t, an empty table, with all choices of the current walk; *t may be replaced by another table. 0, -ENOENT when
 * there is no choice, -ENOMEM, -E2BIG.
 */
int search_walk(Search *s, Table **t);
