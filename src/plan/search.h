/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The exact search for devices. Distances are an ultrametric, so candidates form a tree (switch, root port, host
 * bridge, node, all), and the best choice for any vector of counts in a subtree is made of best choices in its
 * children: dynamic programming over the tree, with cost vectors compared lexicographically, is exhaustive search
 * without the exponent. Below the switch the tree goes on with what else devices have in common: IOMMU groups and PFs.
 * A vector that leaves more of a pool to be found elsewhere than there is elsewhere is dropped, so that pools cost
 * little whose devices are together, or are all wanted; pools with a choice in many places multiply.
 *
 * Pairing: every device of the larger of the two sides, GPUs and NICs, gets one of the smaller, none of which serves
 * more than its even share; within a subtree as many pairs as possible are made, which in an ultrametric is optimal for
 * the worst and for the total distance. A limit between two pools asks for such a pairing of theirs: what was taken at
 * a place whose size is the limit has to be enough for itself.
 */

#include "plan/plan.h"

/* Choices kept of one place: the best for each vector of counts that there is. */
#define SEARCH_CHOICES_MAX 32768U

/* How the devices of one NUMA node stand to the nodes of the guest. */
typedef enum NodeAffinity {
        NODE_AFFINITY_REFUSED, /* the NUMA policy does not want them */
        NODE_AFFINITY_LOCAL,
        NODE_AFFINITY_UNKNOWN, /* off the nodes, for all that is known */
        NODE_AFFINITY_REMOTE,  /* off the nodes */
} NodeAffinity;

/* Where a device may be: nodes by index, then these. */
#define SEARCH_NODE_UNKNOWN   INVENTORY_NODES_MAX
#define SEARCH_NODE_ELSEWHERE (INVENTORY_NODES_MAX + 1U) /* a number that is no node of the inventory */
#define SEARCH_NODES_MAX      (INVENTORY_NODES_MAX + 2U)
size_t search_node(const Inventory *inv, const PciDevice *dev);

typedef struct SearchPool {
        const Pool *pool;
        unsigned wanted;
        bool is_gpu, is_nic;       /* by its first free device */
        bool is_gpu_nic;           /* a NIC pool of a request that has GPUs */
        bool has_vfs, has_devices; /* among the free ones */
} SearchPool;

/* The tree for one request; the same for all sets of NUMA nodes. */
typedef struct Search Search;

/* is_free by inventory index, borrowed only for the call. 0 or -ENOMEM. */
int search_new(const HostView *c, const SearchPool *pools, size_t n_pools, const bool *is_free, Search **ret);
Search *search_free(Search *s);
/* The same pools, of each as many devices as at first or fewer. */
void search_want(Search *s, const SearchPool *pools, size_t n_pools);

/* RequestLimit, by index of the pools. */
typedef struct SearchLimit {
        size_t pools[2];
        Distance limit;
} SearchLimit;

typedef struct SearchTask {
        uint8_t affinity[REQUEST_POOLS_MAX][SEARCH_NODES_MAX];      /* NodeAffinity, by pool of the request */
        unsigned have[REQUEST_POOLS_MAX][NODE_AFFINITY_REMOTE + 1]; /* candidates of the pool, by NodeAffinity */
        Distance limit;                                             /* no GPU-NIC pair may be farther apart */
        SearchLimit limits[REQUEST_LIMITS_MAX];
        size_t n_limits;
        unsigned off, remote; /* what a choice has at least, as Score has them */
        bool at_least;        /* one that has more is of no interest */
        bool any;             /* nor is which is the best: is there one? No picks are returned */
} SearchTask;

typedef struct Picks {
        uint32_t devices[REQUEST_DEVICES_MAX]; /* inventory indices, ascending */
        size_t n;
        Score score; /* the members that depend on devices; the others 0 */
} Picks;

/*
 * 0, -ENOENT when no set satisfies the counts and the limit, -ENOMEM, -E2BIG when *work, counted in pairs of choices
 * compared, was used up, or more than SEARCH_CHOICES_MAX were to be kept; then nothing is known.
 */
int search_devices(Search *s, const SearchTask *task, uint64_t *work, Picks *ret);

typedef struct SearchPair {
        uint32_t devices[2]; /* one of each side, inventory indices */
        Distance distance;
} SearchPair;

/* Pairs as above, nearest first, of the larger side each device once; room for REQUEST_DEVICES_MAX. Returns their
 * number. */
size_t search_match(const Locality *l, const uint32_t *first, size_t n_first, const uint32_t *second, size_t n_second,
                    SearchPair *pairs);

/* The GPU-NIC pairs of a set of devices, by address of the GPU; pairs has room for REQUEST_DEVICES_MAX. Returns their
 * number.
 */
size_t search_pairs(const HostView *c, const uint32_t *devices, size_t n, PlanPair *pairs);
