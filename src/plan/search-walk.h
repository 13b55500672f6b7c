/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One walk over the tree of candidates, from the leaves up; only the search includes it. */

#include "search-bounds.h"
#include "search-table.h"

struct Search {
        Space space;
        SearchScratch scratch;
        Leaf *leaves;
        size_t n_leaves;
        Stock *stocks;
        size_t n_stocks;
        Table *spare;
        /* of the run at hand */
        const SearchTask *task;
        Distance worst;                           /* pairs farther apart are not allowed */
        Cost most;                                /* nor more devices off the nodes, as cost_off_node() has it */
        NodeAffinity farthest[REQUEST_POOLS_MAX]; /* of the candidates of a pool */
        unsigned have[REQUEST_POOLS_MAX];         /* candidates of it, in all */
        unsigned others[REQUEST_POOLS_MAX];       /* and those the walk has yet to pass */
        uint64_t *work;
};

/* Tables are large; few are in use at a time. NULL: out of memory. */
Table *search_take_table(Search *s);
void search_give_back(Search *s, Table *t);

/* All choices of the run at hand. *t holds nothing yet, and may be exchanged for another. -ENOENT: there is none. */
int search_walk(Search *s, Table **t);
