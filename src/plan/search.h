/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The exact search for devices. Distances are an ultrametric, so the candidates form a tree (switch, root port, host
 * bridge, node, all). The best choice for a vector of counts in a subtree consists of best choices in its children.
 * Dynamic programming over the tree, with cost vectors compared lexicographically, is therefore exhaustive without
 * exponential cost. Below the switch, the tree has levels for IOMMU groups and PFs. A vector is dropped when the rest
 * of the tree has too few devices to complete it. Pools whose devices are close together, or are all wanted, therefore
 * cost little. Each pool with candidates in many places multiplies the cost.
 *
 * Pairing: every device of the larger side, GPUs or NICs, gets a partner from the smaller side, and the partners are
 * shared evenly. Within a subtree as many pairs as possible are made. In an ultrametric this is optimal for the worst
 * and for the total distance. A limit between two pools asks for the same pairing between them: in each place at the
 * level of the limit (for DISTANCE_PHB, below each host bridge), the chosen devices of the larger pool must find their
 * partners within that place. A limit of a pool with itself asks for all or none of its chosen devices in each such
 * place.
 */

#include "plan/plan.h"

/* The most choices for one place. Each is the best one for its vector of counts. */
#define SEARCH_CHOICES_MAX 32768U

/* Where a device is, relative to the NUMA nodes of the guest. */
typedef enum NodeAffinity {
        NODE_AFFINITY_REFUSED, /* the NUMA policy does not allow the device's node, which may be unknown */
        NODE_AFFINITY_LOCAL,
        NODE_AFFINITY_UNKNOWN, /* the node is unknown; counts as off the guest's nodes */
        NODE_AFFINITY_REMOTE,  /* on another node */
} NodeAffinity;

/* Returns the index in Inventory.nodes of the inventory_cpu_node() of the device's node, or SEARCH_NODE_UNKNOWN. */
#define SEARCH_NODE_UNKNOWN INVENTORY_NODES_MAX
#define SEARCH_NODES_MAX    (INVENTORY_NODES_MAX + 1U)
size_t search_node(const Inventory *inv, const PciDevice *dev);

typedef struct SearchPool {
        const Pool *pool;
        unsigned wanted;
        bool is_gpu, is_nic;       /* the pool's first free device is an accelerator, or a NIC. The search and Score
                                      treat all accelerators as GPUs */
        bool is_gpu_nic;           /* a pool of NICs, and the request has GPUs */
        bool has_vfs, has_devices; /* the pool has free VFs, or other free devices */
} SearchPool;

/* The tree for the devices of one request. It serves searches for any set of NUMA nodes. */
typedef struct Search Search;

/* Makes the tree. is_free and is_required, by inventory index, are borrowed for the call. Each choice has all required
 * devices, which must be free. 0 or -ENOMEM. */
int search_new(const HostView *view, const SearchPool *pools, size_t n_pools, const bool *is_free,
               const bool *is_required, Search **ret);
Search *search_free(Search *s);
/* Sets new counts, none higher than in search_new(). The pools must be those of search_new(), in the same order. */
void search_want(Search *s, const SearchPool *pools, size_t n_pools);

/* Leaves only these devices (inventory indices) as candidates of pools with Fabric=yes. */
void search_narrow(Search *s, const uint32_t *devices, size_t n);

/* A RequestLimit with indices in place of the names of pools. */
typedef struct SearchLimit {
        size_t pools[2];
        Distance limit;
} SearchLimit;

typedef struct SearchTask {
        uint8_t affinity[REQUEST_POOLS_MAX][SEARCH_NODES_MAX];      /* NodeAffinity by pool and search_node() */
        unsigned have[REQUEST_POOLS_MAX][NODE_AFFINITY_REMOTE + 1]; /* number of candidates by pool and NodeAffinity */
        Distance limit;                                             /* the largest allowed distance of a GPU-NIC pair */
        SearchLimit limits[REQUEST_LIMITS_MAX];
        size_t n_limits;
        unsigned off, remote; /* lower bounds for Score.off_node and Score.remote */
} SearchTask;

typedef struct Picks {
        uint32_t devices[REQUEST_DEVICES_MAX]; /* inventory indices, ascending */
        size_t n;
        Score score; /* only the members that depend on devices; the others are 0 */
} Picks;

/*
 * Finds the best devices for a task. Returns 0; -ENOENT when no set with all required devices satisfies the counts and
 * the limits; -ENOMEM; or -E2BIG when *work, in compared pairs of choices, is used up, or a place has more than
 * SEARCH_CHOICES_MAX choices.
 */
int search_devices(Search *s, const SearchTask *task, uint64_t *work, Picks *ret);

/* Returns 0 if search_devices() would find devices; or -ENOENT, -ENOMEM or -E2BIG, as search_devices(). */
int search_is_feasible(Search *s, const SearchTask *task, uint64_t *work);
