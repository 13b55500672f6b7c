/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A quick check of a request's limits, from the number of candidates below each switch alone. Most searches without a
 * result end here, before any devices are combined. Only the search includes this header.
 */

#include "search-space.h"
#include "search-tree.h"

/* The candidates of one NUMA node below one switch. */
typedef struct Stock {
        uint32_t at[DISTANCE_SYS]; /* the places it is in, from DISTANCE_PIX to DISTANCE_NODE */
        uint8_t node;              /* search_node() */
        unsigned n[REQUEST_POOLS_MAX];
} Stock;

/* Groups the leaves into stocks, in the order of the leaves: the stocks of one place are a range. 0 or -ENOMEM. */
int stocks_make(const Leaf *leaves, size_t n, Stock **ret, size_t *ret_n);

typedef enum Bound {
        BOUND_NOTHING, /* no choice satisfies the limits */
        BOUND_UNKNOWN,
        BOUND_ENOUGH, /* some choice satisfies the limits, if every pool has enough candidates */
} Bound;

/* farthest: by pool, the largest affinity of a candidate. worst: the limit for GPU-NIC pairs. */
Bound stocks_judge(const Stock *stocks, size_t n, const Space *s, const SearchTask *task, const NodeAffinity *farthest,
                   Distance worst);
