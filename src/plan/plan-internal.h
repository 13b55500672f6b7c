/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Interfaces between the planner's files, plan*.c, which alone include this header. */

#include "plan/plan.h"
#include "search.h"

/*
 * Limit of comparisons for one request, which take less than half a second. Members of the group may call Plan, and the
 * daemon is blocked meanwhile.
 */
#define PLAN_WORK_MAX 100000000U

/* Cost of examining one device or CPU, in comparisons. */
#define PLAN_DEVICE_WORK 64U

/* As plan_make(), but deducts the cost from *work. */
Verdict plan_make_within(const HostView *view, const Request *r, uint64_t *work, Plan **ret, Refusal *ret_refusal);

/* The state of the host that does not depend on a set of NUMA nodes. */
typedef struct Planner {
        const HostView *context;
        const Request *request;
        SearchPool pools[REQUEST_POOLS_MAX];  /* the pools of the request, in its order */
        size_t limits[REQUEST_LIMITS_MAX][2]; /* indices into pools, for each limit of the request */
        bool *is_free;                        /* by device index, as the next */
        bool *is_required;                    /* devices that the request names */
        Search *search;
        uint64_t *work;   /* comparisons left for this request and all relaxed variants of it */
        bool lenient;     /* ignore the NUMA policies of pools */
        unsigned threads; /* SMT siblings per core */
        unsigned candidates[REQUEST_POOLS_MAX][SEARCH_NODES_MAX]; /* free devices, by search_node() */
        CpuSet *free_cpus;                                        /* by node index, as the members below */
        unsigned n_free_cpus[INVENTORY_NODES_MAX];                /* in whole cores */
        uint64_t free_memory[INVENTORY_NODES_MAX];                /* bytes, in pages of page_size */
        size_t memory_node[INVENTORY_NODES_MAX]; /* the node that gives memory to guests on the node: usually itself */
        uint64_t page_size;
        size_t nodes[INVENTORY_NODES_MAX]; /* those that a guest can be on, ascending: nodes with CPUs */
        size_t n_nodes;
        unsigned spoiled[INVENTORY_NODES_MAX];   /* free devices on the node */
        uint32_t modules[FABRIC_MODULE_MAX + 1]; /* by module id: 1 + the inventory index of its GPU; 0: unknown */
        uint64_t held; /* modules of the partitions that allocations have. After a change of Module= or Partitions= the
                        * GPUs with these modules may be free */
        const FabricPartition *partition; /* the GPUs are these; NULL: any GPUs */
        unsigned broken;                  /* Score.broken of the partition */
} Planner;

/* A set of NUMA nodes, as ascending indices, with the shares of the guest on each of them and its best devices. */
typedef struct NodeChoice {
        size_t nodes[ALLOCATION_CELLS_MAX];
        size_t n_nodes;
        unsigned cpus[ALLOCATION_CELLS_MAX];   /* by position in nodes, as memory */
        uint64_t memory[ALLOCATION_CELLS_MAX]; /* bytes */
        size_t places[ALLOCATION_REGIONS_MAX]; /* of new shared memory: positions in nodes */
        Picks picks;                           /* score complete */
        const FabricPartition *partition;
} NodeChoice;

/* 0, -ENOMEM. work is borrowed. */
int planner_init(Planner *p, const HostView *view, const Request *r, uint64_t *work);
void planner_done(Planner *p);
/*
 * Replaces the request. r must have the same pools and want no more of each. Free devices are not looked up again. p
 * may be a copy of a Planner, but shares the search with the original, which then works on r.
 */
void planner_ask(Planner *p, const Request *r);
unsigned planner_count(const Planner *p, size_t pool);
/* The NUMA policy for devices of a pool: the stricter one of the pool's and the request's. */
NumaPolicy planner_policy(const Planner *p, size_t pool);

/*
 * The best set of nodes, and the second best when *ret_has_second. 0, -ENOENT, -ENOMEM, -E2BIG when the work limit is
 * reached. plan-refuse.c and plan-nearest.c call it with relaxed requests.
 */
int planner_choose(const Planner *p, NodeChoice *ret, NodeChoice *ret_second, bool *ret_has_second);

/* 1 when there is a plan, with the smallest number of nodes in *ret_n_nodes; 0 when there is none; -ENOMEM, -E2BIG. */
int planner_is_feasible(const Planner *p, size_t *ret_n_nodes);

/* Gives every node enough memory for the request. p: a copy of the Planner. */
void planner_ignore_memory(Planner *p);

/*
 * The GPU-NIC pairs of a set of devices, by address of the GPU. pairs has room for REQUEST_DEVICES_MAX. Returns the
 * number of pairs.
 */
size_t search_pairs(const HostView *view, const uint32_t *devices, size_t n, PlanPair *pairs);
/* Sets plan->limits from the choice. 0 or -ENOMEM. */
int plan_limits_make(const Planner *p, const NodeChoice *choice, Plan *plan);
void plan_limits_free(Plan *plan);

/* Whether the planner can take memory of the node, given as index. */
bool planner_gives_memory(const Planner *p, size_t node);

/* The refusal for -E2BIG (work limit reached) or -ENOMEM. */
Verdict planner_give_up(int r, Refusal *ret);

/*
 * Refuses after planner_choose() found nothing: names the first of count, CPUs, memory, proximity, NUMA policy that is
 * short, with figures, and the nearest request that would fit.
 */
Verdict planner_refuse(const Planner *p, Refusal *ret);

/*
 * Sets ret->nearest to the nearest request that would fit instead of the one refused with v; leaves it unset when none
 * is found. Changes the request of p's search, so it must be the last use of the search.
 */
void planner_nearest(const Planner *p, Verdict v, Refusal *ret);

/* Makes an allocation with pins, cells, companions and held devices from the choice. */
Verdict planner_build(const Planner *p, const NodeChoice *choice, Allocation **ret, Refusal *ret_refusal);

/* plan-unavailable.c: refuses when one of the devices, nodes or CPUs that the request names cannot be had, and says
 * which. */
Verdict planner_check_exact(const HostView *view, const Request *r, Refusal *ret);
/* Refuses when a pool has fewer free devices than the request wants. */
Verdict planner_check_counts(const Planner *p, Refusal *ret);
/* VERDICT_NONE when a new allocation may have the device; device_check_vgpu() and
 * device_check_mode() included. */
Verdict planner_check_device(const HostView *view, const PciDevice *dev, Refusal *ret);
/* The NVLink partition of the allocation; NULL: none, or not in the configuration. */
const FabricPartition *planner_partition(const HostView *view, const Allocation *a);

/* plan-fabric.c. The request wants GPUs of pools with Fabric=yes, and as an NVLink partition. */
bool planner_wants_partition(const Planner *p);
/*
 * Makes p a planner that chooses exactly the GPUs of the partition, p's search included. False when the request cannot
 * have the partition.
 */
bool planner_narrow(Planner *p, const FabricPartition *partition);
/* Refuses when the request can have no partition. */
Verdict planner_check_fabric(const Planner *p, Refusal *ret);

/* plan-services.c: adds free slots of the services that the request wants to a, or refuses. */
Verdict planner_pick_slots(const HostView *view, const Request *r, Allocation *a, Refusal *ret);

/* plan-regions.c: shared memory. */
Verdict planner_check_regions(const HostView *view, const Request *r, Refusal *ret);
/*
 * Sets choice->memory and choice->places. False when the nodes do not have room for the guest's memory and new shared
 * memory beside it, or existing shared memory is on nodes that the NUMA policy does not allow.
 */
bool planner_place_memory(const Planner *p, NodeChoice *choice);
void planner_add_regions(const Planner *p, const NodeChoice *choice, Allocation *a);
Verdict planner_refuse_regions(const Planner *p, Refusal *ret);
/* Refuses because of the NUMA policy; with another policy the shared memory would fit. */
Verdict planner_refuse_region_nodes(const Planner *p, Refusal *ret);
