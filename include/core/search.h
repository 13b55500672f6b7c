/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The exact search for devices. Distances are an ultrametric, so candidates form a tree (switch, root port, host bridge, node, all), and the
 * best choice for any vector of counts in a subtree is made of best choices in its children: dynamic programming over the tree, with cost
 * vectors compared lexicographically, is exhaustive search without the exponent.
 *
 * Pairing: every device of the larger of the two sides, GPUs and NICs, gets one of the smaller, none of which serves more than its even
 * share; within a subtree as many pairs as possible are made, which in an ultrametric is optimal for the worst and for the total distance.
 */

#include "core/plan.h"

/* Devices that may be chosen for one pool of the request. */
typedef struct SearchPool {
        unsigned wanted;
        bool is_gpu, is_nic; /* by its first device */
        uint32_t *devices;   /* inventory indices, ascending */
        uint8_t *off, *remote; /* by candidate: its share in Score, for the NUMA nodes at hand */
        uint32_t *held;        /* by candidate: free devices its group drags along */
        size_t n;
} SearchPool;

typedef struct Search {
        const PlanContext *context;
        SearchPool pools[REQUEST_POOLS_MAX];
        size_t n_pools;
        Distance limit; /* no GPU-NIC pair may be farther apart */
} Search;

typedef struct Picks {
        uint32_t devices[REQUEST_DEVICES_MAX]; /* inventory indices, ascending */
        size_t n;
        Score score; /* the members that depend on devices; the others 0 */
} Picks;

/* 0, -ENOENT when no set satisfies the counts and the limit, -ENOMEM. */
int search_devices(const Search *s, Picks *ret);

/* The pairs of a set of devices, by address of the GPU; pairs has room for REQUEST_DEVICES_MAX. Returns their number. */
size_t search_pairs(const PlanContext *c, const uint32_t *devices, size_t n, PlanPair *pairs);
