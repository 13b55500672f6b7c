/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Interfaces between the planner's files, plan*.c. Only they include this header. */

#include "plan/plan.h"
#include "search.h"

/*
 * The most comparisons for one request, which take less than half a second. Members of the group may call Plan, which
 * blocks the daemon.
 */
#define PLAN_WORK_MAX 100000000U

/* The cost of examining one device or CPU, in comparisons. */
#define PLAN_DEVICE_WORK 64U

/* Plans as plan_make() does, and deducts the cost from *work. */
Verdict plan_make_within(const HostView *view, const Request *r, uint64_t *work, Plan **ret, Refusal *ret_refusal);

/* The facts about the host that no set of NUMA nodes changes. */
typedef struct Planner {
        const HostView *context;
        const Request *request;
        SearchPool pools[REQUEST_POOLS_MAX];  /* the pools of the request, in the request's order */
        size_t limits[REQUEST_LIMITS_MAX][2]; /* indices into pools, for each limit of the request */
        bool *is_free;                        /* by device index, as the next array */
        bool *is_required;                    /* the devices that the request names */
        Search *search;
        uint64_t *work;   /* comparisons left for the request and all its relaxed variants */
        bool lenient;     /* the NUMA policies of pools are ignored */
        unsigned threads; /* SMT siblings per core */
        unsigned candidates[REQUEST_POOLS_MAX][SEARCH_NODES_MAX]; /* free devices, by search_node() */
        CpuSet *free_cpus;                                        /* by node index, as the members below */
        unsigned n_free_cpus[INVENTORY_NODES_MAX];                /* in whole cores */
        uint64_t free_memory[INVENTORY_NODES_MAX];                /* bytes, in pages of page_size */
        size_t memory_node[INVENTORY_NODES_MAX]; /* index of the node that gives memory to guests on the node, usually
                                                    itself */
        uint64_t page_size;
        size_t nodes[INVENTORY_NODES_MAX]; /* nodes that a guest can be on (with CPUs), ascending */
        size_t n_nodes;
        unsigned spoiled[INVENTORY_NODES_MAX];   /* free devices on the node */
        uint32_t modules[FABRIC_MODULE_MAX + 1]; /* by module id: 1 + the inventory index of its GPU; 0: unknown */
        uint64_t held; /* modules of the partitions of allocations. Their GPUs may be free after a change of Module= or
                          Partitions= */
        const FabricPartition *partition; /* the plan has exactly its GPUs; NULL: any GPUs */
        unsigned broken;                  /* Score.broken of the partition */
} Planner;

/* A set of NUMA nodes as ascending indices, with the guest's shares on each node and the best devices. */
typedef struct NodeChoice {
        size_t nodes[ALLOCATION_CELLS_MAX];
        size_t n_nodes;
        unsigned cpus[ALLOCATION_CELLS_MAX];   /* by position in nodes, as is memory */
        uint64_t memory[ALLOCATION_CELLS_MAX]; /* bytes */
        size_t places[ALLOCATION_REGIONS_MAX]; /* of new shared memory, as positions in nodes */
        Picks picks;                           /* with the complete score */
        const FabricPartition *partition;
} NodeChoice;

/* Returns 0 or -ENOMEM. work is borrowed. */
int planner_init(Planner *p, const HostView *view, const Request *r, uint64_t *work);
void planner_done(Planner *p);
/*
 * Replaces the request by r, which must have the same pools and want no more of each. Free devices are not counted
 * again. p may be a copy of a Planner, but both share the search, which then works on r.
 */
void planner_ask(Planner *p, const Request *r);
unsigned planner_count(const Planner *p, size_t pool);
/* Returns the NUMA policy for devices of a pool: the stricter one of the pool's and the request's. */
NumaPolicy planner_policy(const Planner *p, size_t pool);

/*
 * Finds the best set of nodes, and the second best if *ret_has_second. Returns 0, -ENOENT, -ENOMEM, or -E2BIG at the
 * work limit. plan-refuse.c and plan-nearest.c pass relaxed requests.
 */
int planner_choose(const Planner *p, NodeChoice *ret, NodeChoice *ret_second, bool *ret_has_second);

/* Returns 1 if there is a plan, with its smallest number of nodes in *ret_n_nodes; else 0, -ENOMEM or -E2BIG. */
int planner_is_feasible(const Planner *p, size_t *ret_n_nodes);

/* Gives every node enough memory for the request. p: a copy of the Planner. */
void planner_ignore_memory(Planner *p);

/*
 * Finds the GPU-NIC pairs of a set of devices, by address of the GPU. pairs has room for REQUEST_DEVICES_MAX. Returns
 * the number of pairs.
 */
size_t search_pairs(const HostView *view, const uint32_t *devices, size_t n, PlanPair *pairs);
/* Sets plan->limits from the choice. Returns 0 or -ENOMEM. */
int plan_limits_make(const Planner *p, const NodeChoice *choice, Plan *plan);
void plan_limits_free(Plan *plan);

/* Returns whether the planner may take memory of the node, an index. */
bool planner_gives_memory(const Planner *p, size_t node);

/* Refuses because of -E2BIG (the work limit) or -ENOMEM. */
Verdict planner_give_up(int r, Refusal *ret);

/*
 * Refuses after planner_choose() found nothing. Names the first shortage of count, CPUs, memory, proximity and NUMA
 * policy, with figures, and the nearest request that would fit.
 */
Verdict planner_refuse(const Planner *p, Refusal *ret);

/*
 * Sets ret->nearest to the nearest feasible request instead of the one refused with v, or leaves it unset. Changes the
 * request of p's search, so this call must be the last use of the search.
 */
void planner_nearest(const Planner *p, Verdict v, Refusal *ret);

/* Makes the allocation of the choice, with pins, cells, companions and held devices. */
Verdict planner_build(const Planner *p, const NodeChoice *choice, Allocation **ret, Refusal *ret_refusal);

/* plan-unavailable.c: refuses when a device, node or CPU that the request names is unavailable, and says which. */
Verdict planner_check_exact(const HostView *view, const Request *r, Refusal *ret);
/* Refuses when a pool has fewer free devices than the request wants. */
Verdict planner_check_counts(const Planner *p, Refusal *ret);
/* Returns VERDICT_NONE if a new allocation may have the device. Includes device_check_vgpu() and
 * device_check_mode(). */
Verdict planner_check_device(const HostView *view, const PciDevice *dev, Refusal *ret);
/* Returns the NVLink partition of the allocation. NULL: it has none, or none in the configuration. */
const FabricPartition *planner_partition(const HostView *view, const Allocation *a);

/* plan-fabric.c. Returns whether the request wants GPUs of pools with Fabric=yes as an NVLink partition. */
bool planner_wants_partition(const Planner *p);
/* Makes p, with its search, choose exactly the GPUs of the partition. False: the request cannot have the partition. */
bool planner_narrow(Planner *p, const FabricPartition *partition);
/* Refuses when the request cannot have any partition. */
Verdict planner_check_fabric(const Planner *p, Refusal *ret);

/* plan-services.c: adds free slots of the wanted services to a, or refuses. */
Verdict planner_pick_slots(const HostView *view, const Request *r, Allocation *a, Refusal *ret);

/* plan-regions.c: shared memory. */
Verdict planner_check_regions(const HostView *view, const Request *r, Refusal *ret);
/*
 * Sets choice->memory and choice->places. False: the nodes lack room for the guest's memory and new shared memory, or
 * the NUMA policy does not allow the nodes of existing shared memory.
 */
bool planner_place_memory(const Planner *p, NodeChoice *choice);
void planner_add_regions(const Planner *p, const NodeChoice *choice, Allocation *a);
Verdict planner_refuse_regions(const Planner *p, Refusal *ret);
/* Refuses because of the NUMA policy: with another policy the shared memory would fit. */
Verdict planner_refuse_region_nodes(const Planner *p, Refusal *ret);
