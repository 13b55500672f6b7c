/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Interfaces between the planner's files, plan*.c. Only they and a unit test include this header. */

#include "plan/plan.h"
#include "search.h"

/* The most comparisons for one request: less than half a second. An allocation or attach blocks the daemon while it is
 * planned. */
#define PLAN_WORK_MAX 100000000U

/* The cost of examining one device or CPU, in comparisons. */
#define PLAN_DEVICE_WORK 64U

/* As plan_make(), but limited to *work comparisons, from which it deducts its cost. */
Verdict plan_make_within(const HostView *view, const Request *r, uint64_t *work, Plan **ret, Refusal *ret_refusal);

/* Facts for one request that do not depend on the set of NUMA nodes. */
typedef struct Planner {
        const HostView *context;
        const Request *request;
        SearchPool pools[REQUEST_POOLS_MAX];  /* the pools of the request, in its order */
        size_t limits[REQUEST_LIMITS_MAX][2]; /* indices into pools, for each limit of the request */
        bool *is_free;                        /* by index in the inventory, as is_required */
        bool *is_required;                    /* the request names the device */
        Search *search;
        uint64_t *work;   /* comparisons left for the request, including relaxed variants of it */
        bool lenient;     /* ignore the NUMA policies of pools */
        unsigned threads; /* the most SMT siblings of a core */
        unsigned candidates[REQUEST_POOLS_MAX][SEARCH_NODES_MAX]; /* free devices by pool and search_node() */
        CpuSet *free_cpus;                                        /* by node index, as are the next three members */
        unsigned n_free_cpus[INVENTORY_NODES_MAX];                /* only CPUs of cores that are wholly free */
        uint64_t free_memory[INVENTORY_NODES_MAX];                /* bytes free in pages of the request's size */
        size_t memory_node[INVENTORY_NODES_MAX]; /* index of the node whose memory guests on this node get, usually this
                                                    node */
        uint64_t page_size;
        size_t nodes[INVENTORY_NODES_MAX]; /* indices of the nodes with CPUs, on which a guest can be; ascending */
        size_t n_nodes;
        unsigned spoiled[INVENTORY_NODES_MAX]; /* by node index: number of free devices, of all pools */
        uint32_t
                modules[FABRIC_MODULE_MAX + 1]; /* by module id: 1 + the inventory index of its GPU; 0: none is known */
        uint64_t held; /* bits of the modules in the partitions of allocations. A GPU with such a module may still be
                          free, after a change of Module= or Partitions= */
        const FabricPartition *partition; /* the plan takes exactly the GPUs of this partition from pools with
                                             Fabric=yes; NULL: any GPUs */
        unsigned broken;                  /* Score.broken of the partition */
} Planner;

/* A set of NUMA nodes as ascending indices, their shares of the guest, and the best devices for them. */
typedef struct NodeChoice {
        size_t nodes[ALLOCATION_CELLS_MAX];
        size_t n_nodes;
        unsigned cpus[ALLOCATION_CELLS_MAX];   /* by position in `nodes`, as is memory: number of CPUs from that node */
        uint64_t memory[ALLOCATION_CELLS_MAX]; /* bytes */
        size_t places[ALLOCATION_REGIONS_MAX]; /* by region: a position in nodes. The region is on the node that gives
                                                  memory (Planner.memory_node) to the node at that position. SIZE_MAX:
                                                  the region exists already */
        Picks picks;                           /* the devices; its score includes the nodes */
        const FabricPartition *partition;
} NodeChoice;

/* Initializes the planner. view, r and work are borrowed. 0 or -ENOMEM. Call planner_done() also after -ENOMEM. */
int planner_init(Planner *p, const HostView *view, const Request *r, uint64_t *work);
void planner_done(Planner *p);
/*
 * Replaces the request by r, which must have the same pools and want no more of each than the first request. Free
 * devices and CPUs are not counted again. p may be a copy of a Planner, but both share the search, which then works on
 * r.
 */
void planner_ask(Planner *p, const Request *r);
unsigned planner_count(const Planner *p, size_t pool);
/* Returns the stricter one of the pool's NUMA policy and that of the request; that of the request if p->lenient. */
NumaPolicy planner_policy(const Planner *p, size_t pool);

/* Sets *ret to the best choice, and *ret_has_second to whether there is another one; *ret_second is then the second
 * best. Returns 0, -ENOENT (no choice), -ENOMEM, or -E2BIG (the work limit). */
int planner_choose(const Planner *p, NodeChoice *ret, NodeChoice *ret_second, bool *ret_has_second);

/* Returns 1 if there is a plan, and sets *ret_n_nodes to the smallest number of nodes that a plan has. Otherwise 0,
 * -ENOMEM or -E2BIG. */
int planner_is_feasible(const Planner *p, size_t *ret_n_nodes);

/* Pretends that each node has enough memory for the guest. New shared memory still needs room. p: a copy of the
 * planner. */
void planner_ignore_memory(Planner *p);

/* Finds the GPU-NIC pairs of a set of devices, and sorts them by the address of the GPU. pairs has room for
 * REQUEST_DEVICES_MAX. Returns their number. */
size_t search_pairs(const HostView *view, const uint32_t *devices, size_t n, PlanPair *pairs);
/* Sets plan->limits from the choice. Returns 0 or -ENOMEM. */
int plan_limits_make(const Planner *p, const NodeChoice *choice, Plan *plan);
void plan_limits_free(Plan *plan);

/* Returns whether the planner may take memory of the node with this index. */
bool planner_gives_memory(const Planner *p, size_t node);

/* Refuses after -E2BIG (the work limit) or -ENOMEM. */
Verdict planner_give_up(int r, Refusal *ret);

/*
 * Refuses after planner_choose() found nothing. Checks these causes in this order, and names the first one that
 * applies, with figures: too few devices, no whole NVLink partition, too few CPUs or too little memory, the proximity,
 * the NUMA policy. Also names the nearest request that would fit, if planner_nearest() finds one; for an exact request
 * (request_is_exact()), it lists what the request names instead.
 */
Verdict planner_refuse(const Planner *p, Refusal *ret);

/*
 * Sets ret->nearest to a sentence with the nearest request that would succeed, or leaves it NULL. v: the verdict of the
 * refused request. Changes the request of p's search, so this call must be the last use of the search.
 */
void planner_nearest(const Planner *p, Verdict v, Refusal *ret);

/* Makes dev the device of `d`: records its VFIO variant driver, and what a release restores. 0 or -ENOMEM. */
int planner_record_device(AllocationDevice *d, const HostView *view, const PciDevice *dev);
/* Makes the allocation of the choice. VERDICT_NONE, or a refusal. */
Verdict planner_build(const Planner *p, const NodeChoice *choice, Allocation **ret, Refusal *ret_refusal);

/* plan-unavailable.c. Refuses if a device, node or CPU that the request names is unavailable, and says which. */
Verdict planner_check_exact(const HostView *view, const Request *r, Refusal *ret);
/* Refuses when a pool has fewer free devices than the request wants. */
Verdict planner_check_counts(const Planner *p, Refusal *ret);
/* planner.c. Returns VERDICT_NONE if a new allocation may have the device. Includes device_check_vgpu() and
 * device_check_mode(). */
Verdict planner_check_device(const HostView *view, const PciDevice *dev, Refusal *ret);
/* Returns the configured NVLink partition of the allocation. NULL: the allocation has none, or the configuration no
 * longer has the partition. */
const FabricPartition *planner_partition(const HostView *view, const Allocation *a);

/* plan-fabric.c. Returns whether the request's GPUs must form an NVLink partition. */
bool planner_wants_partition(const Planner *p);
/* Leaves only the GPUs of the partition as candidates of pools with Fabric=yes. Changes p, which must be a copy of the
 * planner, and the search, which p shares with the planner. Returns false if the request cannot have this partition; p
 * must then be dropped. */
bool planner_narrow(Planner *p, const FabricPartition *partition);
/* Refuses if the request cannot have any partition. */
Verdict planner_check_fabric(const Planner *p, Refusal *ret);

/* plan-services.c. Adds free slots of the wanted services to `a`, or refuses. */
Verdict planner_pick_slots(const HostView *view, const Request *r, Allocation *a, Refusal *ret);

/* plan-regions.c. Refuses any region for a guest of Xen, a region that the caller may not use, and an existing region
 * that the request describes differently. */
Verdict planner_check_regions(const HostView *view, const Request *r, Refusal *ret);
/* Places the guest's memory and new regions: sets choice->memory and choice->places. False: the nodes lack room, the
 * guest has fewer pages than nodes, or the NUMA policy does not allow the node of an existing region. */
bool planner_place_memory(const Planner *p, NodeChoice *choice);
void planner_add_regions(const Planner *p, const NodeChoice *choice, Allocation *a);
Verdict planner_refuse_regions(const Planner *p, Refusal *ret);
/* Refuses because of the NUMA policy of the request: only with another policy does the shared memory fit. */
Verdict planner_refuse_region_nodes(const Planner *p, Refusal *ret);
