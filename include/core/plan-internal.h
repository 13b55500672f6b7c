/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the planner's files, plan*.c; nobody else includes it. */

#include "core/plan.h"
#include "core/search.h"

/* What the planner knows before it looks at any set of NUMA nodes. */
typedef struct Planner {
        const PlanContext *context;
        const Request *request;
        const Pool *pools[REQUEST_POOLS_MAX]; /* of the request, in its order */
        Search search;                        /* all free candidates; off, remote and the NUMA policy are applied per node set */
        unsigned threads;                     /* SMT siblings per core */
        CpuSet free_cpus[INVENTORY_NODES_MAX]; /* by node index */
        unsigned n_free_cpus[INVENTORY_NODES_MAX];
        uint64_t free_memory[INVENTORY_NODES_MAX]; /* bytes, of the request's page size */
        unsigned spoiled[INVENTORY_NODES_MAX];     /* free devices on the node */
} Planner;

/* A set of NUMA nodes, by index ascending, with its best devices. */
typedef struct NodeChoice {
        size_t nodes[REQUEST_CELLS_MAX];
        size_t n_nodes;
        Picks picks; /* score complete */
} NodeChoice;

int planner_init(Planner *p, const PlanContext *c, const Request *r);
void planner_done(Planner *p);

/*
 * The best node set, with the runner-up when *ret_has_second. 0, -ENOENT, -ENOMEM. With relaxed requests (plan-refuse.c) it answers
 * "what if".
 */
int planner_choose(const Planner *p, NodeChoice *ret, NodeChoice *ret_second, bool *ret_has_second);

/* Why planner_choose() found nothing: the first of count, CPUs, memory, proximity, NUMA policy that is short, with figures. */
Verdict planner_refuse(const Planner *p, Refusal *ret);

/* The choice as an allocation with pins, cells, companions and held devices. */
Verdict planner_build(const Planner *p, const NodeChoice *choice, Allocation **ret, Refusal *ret_refusal);
