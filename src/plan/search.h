/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The exact search for devices. Distances are an ultrametric, so the candidates form a tree (switch, root port, host
 * bridge, node, all), and the best choice for a vector of counts in a subtree consists of best choices in its children.
 * Dynamic programming over the tree, with cost vectors compared lexicographically, is therefore exhaustive without
 * exponential cost. Below the switch, the tree has levels for IOMMU groups and PFs. A vector is dropped when the rest
 * of the tree has too few devices to complete it. Pools whose devices are close together, or are all wanted, therefore
 * cost little; pools with candidates in many places multiply.
 *
 * Pairing: every device of the larger side, GPUs or NICs, gets a partner from the smaller side, and the partners are
 * shared evenly. Within a subtree as many pairs as possible are made, which in an ultrametric is optimal for the worst
 * and for the total distance. A limit between two pools asks for the same pairing between them: at a place of the size
 * of the limit, the chosen devices of the larger pool must find their partners within that place.
 */

#include "plan/plan.h"

/* Most choices kept for one place: the best one for each vector of counts. */
#define SEARCH_CHOICES_MAX 32768U

/* The relation of a device's NUMA node to the nodes of the guest. */
typedef enum NodeAffinity {
        NODE_AFFINITY_REFUSED, /* the NUMA policy does not allow these devices */
        NODE_AFFINITY_LOCAL,
        NODE_AFFINITY_UNKNOWN, /* the device's node is unknown; counts as off the nodes */
        NODE_AFFINITY_REMOTE,  /* on another node */
} NodeAffinity;

/* The place of a device: the index of its inventory_cpu_node(). */
#define SEARCH_NODE_UNKNOWN INVENTORY_NODES_MAX
#define SEARCH_NODES_MAX    (INVENTORY_NODES_MAX + 1U)
size_t search_node(const Inventory *inv, const PciDevice *dev);

typedef struct SearchPool {
        const Pool *pool;
        unsigned wanted;
        bool is_gpu, is_nic;       /* by its first free device */
        bool is_gpu_nic;           /* a NIC pool of a request that has GPUs */
        bool has_vfs, has_devices; /* among its free devices */
} SearchPool;

/* The tree for one request, for all sets of NUMA nodes. */
typedef struct Search Search;

/* is_free, is_required: by inventory index, borrowed only for the call. Each choice has all required devices, which are
 * free. 0 or -ENOMEM. */
int search_new(const HostView *view, const SearchPool *pools, size_t n_pools, const bool *is_free,
               const bool *is_required, Search **ret);
Search *search_free(Search *s);
/* Changes the counts. The pools must be those of search_new(), each with the same count or a smaller one. */
void search_want(Search *s, const SearchPool *pools, size_t n_pools);

/* Of pools with Fabric=yes, leaves only these devices as candidates, given as inventory indices. */
void search_narrow(Search *s, const uint32_t *devices, size_t n);

/* A RequestLimit, with pools by index. */
typedef struct SearchLimit {
        size_t pools[2];
        Distance limit;
} SearchLimit;

typedef struct SearchTask {
        uint8_t affinity[REQUEST_POOLS_MAX][SEARCH_NODES_MAX];      /* NodeAffinity, by pool of the request */
        unsigned have[REQUEST_POOLS_MAX][NODE_AFFINITY_REMOTE + 1]; /* candidates of the pool, by NodeAffinity */
        Distance limit;                                             /* largest distance of a GPU-NIC pair */
        SearchLimit limits[REQUEST_LIMITS_MAX];
        size_t n_limits;
        unsigned off, remote; /* lower bounds for Score.off_node and Score.remote */
} SearchTask;

typedef struct Picks {
        uint32_t devices[REQUEST_DEVICES_MAX]; /* inventory indices, ascending */
        size_t n;
        Score score; /* the members that depend on devices; other members are 0 */
} Picks;

/*
 * The best devices for a task. 0; -ENOENT when no set satisfies the counts and the limits; -ENOMEM; -E2BIG, with no
 * result, when *work, counted in compared pairs of choices, is used up, or a place has more than SEARCH_CHOICES_MAX
 * choices.
 */
int search_devices(Search *s, const SearchTask *task, uint64_t *work, Picks *ret);

/* Whether any set of devices satisfies the counts and the limits: 0, -ENOENT, -ENOMEM or -E2BIG. */
int search_is_feasible(Search *s, const SearchTask *task, uint64_t *work);
