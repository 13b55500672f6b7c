/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the numbers of candidates below each switch alone say of a request's limits. Most searches for a plan that does
 * not exist end here, before any devices are combined. Only the search includes it.
 */

#include "search-space.h"
#include "search-tree.h"

/* The candidates of one NUMA node below one switch. */
typedef struct Stock {
        uint32_t at[DISTANCE_SYS]; /* its places, from DISTANCE_PIX to DISTANCE_NODE */
        uint8_t node;              /* search_node() */
        unsigned n[REQUEST_POOLS_MAX];
} Stock;

/* In the order of the leaves, so that each place is a range. 0 or -ENOMEM. */
int stocks_make(const Leaf *leaves, size_t n, Stock **ret, size_t *ret_n);

typedef enum Bound {
        BOUND_NOTHING, /* no choice satisfies the limits */
        BOUND_UNKNOWN,
        BOUND_ENOUGH, /* some choice does, if every pool has enough candidates */
} Bound;

/* farthest: by pool, candidates that stand farther off do not count. worst: the limit of pairs of a GPU and a NIC. */
Bound stocks_judge(const Stock *stocks, size_t n, const Space *s, const SearchTask *task, const NodeAffinity *farthest,
                   Distance worst);
