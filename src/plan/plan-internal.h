/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the planner's files, plan*.c; nobody else includes it. */

#include "plan/plan.h"
#include "search.h"

/* Comparisons one request may cost, which is less than half a second: members of the group may call Plan, and the
 * daemon waits.
 */
#define PLAN_WORK_MAX 100000000U

/* What a look at one device or CPU costs, in the same. */
#define PLAN_DEVICE_WORK 64U

/* plan_make() that takes what it costs from *work. */
Verdict plan_make_within(const HostView *c, const Request *r, uint64_t *work, Plan **ret, Refusal *ret_refusal);

/* What the planner knows before it looks at any set of NUMA nodes. */
typedef struct Planner {
        const HostView *context;
        const Request *request;
        SearchPool pools[REQUEST_POOLS_MAX];  /* of the request, in its order */
        size_t limits[REQUEST_LIMITS_MAX][2]; /* pools between which the request has limits, in its order */
        bool *is_free;                        /* by device index */
        Search *search;
        uint64_t *work;   /* left for this request, whatever is asked on its behalf */
        bool lenient;     /* policies of pools do not count */
        unsigned threads; /* SMT siblings per core */
        unsigned candidates[REQUEST_POOLS_MAX][SEARCH_NODES_MAX]; /* free devices, by search_node() */
        CpuSet free_cpus[INVENTORY_NODES_MAX];                    /* by node index, and so on */
        unsigned n_free_cpus[INVENTORY_NODES_MAX];                /* in whole cores */
        uint64_t free_memory[INVENTORY_NODES_MAX];                /* bytes, of this page size: */
        uint64_t page_size;
        unsigned spoiled[INVENTORY_NODES_MAX]; /* free devices on the node */
} Planner;

/* A set of NUMA nodes, by index ascending, with its best devices. */
typedef struct NodeChoice {
        size_t nodes[ALLOCATION_CELLS_MAX];
        size_t n_nodes;
        Picks picks; /* score complete */
} NodeChoice;

/* 0, -ENOMEM, -E2BIG. work is borrowed. */
int planner_init(Planner *p, const HostView *c, const Request *r, uint64_t *work);
void planner_done(Planner *p);
/*
 * As though that had been asked, which has the same pools and wants no more of any: what is free stays as it was found.
 * p may be a copy, but the search is that of the original, which is for this request from now on.
 */
void planner_ask(Planner *p, const Request *r);
unsigned planner_count(const Planner *p, size_t pool);
/* What counts for devices of a pool: the stricter of its own policy and the request's. */
NumaPolicy planner_policy(const Planner *p, size_t pool);

/*
 * The best node set, with the runner-up when *ret_has_second. 0, -ENOENT, -ENOMEM, -E2BIG when the work is used up.
 * With relaxed requests (plan-refuse.c, plan-nearest.c) it answers "what if".
 */
int planner_choose(const Planner *p, NodeChoice *ret, NodeChoice *ret_second, bool *ret_has_second);

/* Whether there is a plan at all: 1 and on how few nodes, 0, or as above. */
int planner_is_feasible(const Planner *p, size_t *ret_n_nodes);

/* plan->limits of the choice. 0 or -ENOMEM. */
int plan_limits_make(const Planner *p, const NodeChoice *choice, Plan *plan);
void plan_limits_free(Plan *plan);

/* More work than one request may cost, or out of memory. */
Verdict planner_give_up(int r, Refusal *ret);

/* Why planner_choose() found nothing: the first of count, CPUs, memory, proximity, NUMA policy that is short, with
 * figures, and what would be found. */
Verdict planner_refuse(const Planner *p, Refusal *ret);

/* Puts into ret->nearest what would succeed in the place of the request, refused with v; nothing when that is not
 * found. Asks other things of the planner's search: the last that is done with it. */
void planner_nearest(const Planner *p, Verdict v, Refusal *ret);

/* The choice as an allocation with pins, cells, companions and held devices. */
Verdict planner_build(const Planner *p, const NodeChoice *choice, Allocation **ret, Refusal *ret_refusal);

/* plan-memory.c: no set of nodes that gives the CPUs has the memory. */
Verdict planner_refuse_memory(const Planner *p, Refusal *ret);
/* "node 0 has 62 GiB, node 1 has 0": free. The caller frees. */
char *planner_list_memory(const Planner *p);

/* plan-counts.c: a pool has fewer free devices than are wanted. */
Verdict planner_check_counts(const Planner *p, Refusal *ret);

/* plan-regions.c: memory to share */
Verdict planner_check_regions(const HostView *c, const Request *r, Refusal *ret);
/* What is not there yet has room on the nodes, beside those bytes of the guest's memory on each; what is there is on
 * them where the NUMA policy wants that. */
bool planner_has_room_to_share(const Planner *p, const NodeChoice *choice, const uint64_t *shares);
/* Needs a->cells. */
void planner_add_regions(const Planner *p, const NodeChoice *choice, Allocation *a);
Verdict planner_refuse_regions(const Planner *p, Refusal *ret);
/* With another NUMA policy they could be had. */
Verdict planner_refuse_region_nodes(const Planner *p, Refusal *ret);
