/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The planner: facts, configuration, ledger and a request to a plan or a refusal. Pure, deterministic and exact: the
 * plan minimises Score, compared member by member from the top, over all sets of devices and NUMA nodes that satisfy
 * the request; then the lowest addresses.
 */

#include "core/eswitch.h"
#include "core/health.h"
#include "core/ledger.h"
#include "core/locality.h"
#include "core/policy.h"
#include "core/step.h"

/* Combinations of device counts the search may hold at once: the product of (count + 1) over the request's pools. */
#define PLAN_STATES_MAX 4096U

typedef struct Score {
        unsigned numa_nodes;     /* host nodes used */
        unsigned off_node;       /* devices not on those nodes, unknown ones among them */
        unsigned remote;         /* devices known to be on other nodes */
        unsigned worst_distance; /* of the GPU-NIC pairs, a Distance */
        unsigned total_distance; /* of the GPU-NIC pairs */
        unsigned gpu_distance;   /* over all pairs of GPUs */
        unsigned node_distance;  /* SLIT, over all pairs of nodes used */
        unsigned spoiled;        /* free devices on the nodes of a request that wants none */
        unsigned held;           /* free devices taken along only because they share a group; see below */
        unsigned left_over;      /* free physical devices left behind at the switches and nodes taken from */
        unsigned vf_load;        /* VFs in use on the PFs of the VFs taken from pools that spread, see below */
        unsigned vf_left;        /* free VFs left behind on the PFs that pools which pack take from */
} Score;

/*
 * Score.held counts a device once, and not when it is itself chosen, as long as its group is below one switch and has
 * either VFs of one PF only, or of each PF all free VFs. In any other group it counts once for each chosen device, and
 * chosen ones count for each other: that does not add up over switches, and is at least the same whenever the same is
 * asked.
 *
 * Score.vf_load counts for each VF of a pool with VfPlacement=spread the VFs of its PF that are in use, and two that
 * are taken of one PF count once for each other, when one of them is of such a pool.
 */

int score_compare(const Score *a, const Score *b);

typedef struct PlanPair {
        PciAddress gpu, nic;
        Distance distance;
} PlanPair;

/* What became of a limit between two pools: a pairing within it, best first; of a pool and itself there is none. */
typedef struct PlanLimit {
        char *pools[2];
        Proximity limit;
        Distance worst; /* of the pairs; of a pool and itself, of any two of its devices */
        struct {
                PciAddress devices[2];
                Distance distance;
        } pairs[REQUEST_DEVICES_MAX];
        size_t n_pairs;
} PlanLimit;

typedef struct Plan {
        Allocation
                *allocation; /* name NULL: a plan has none yet; prior driver and override are those of the inventory */
        Score score;
        PlanPair *pairs;
        size_t n_pairs;
        PlanLimit *limits; /* as the request has them */
        size_t n_limits;
        bool has_runner_up; /* the best plan on other NUMA nodes */
        Score runner_up;
        int runner_up_nodes[REQUEST_CELLS_MAX];
        size_t n_runner_up_nodes;
} Plan;

typedef struct PlanContext {
        const Inventory *inventory;
        const Locality *locality;
        const Config *config;
        const Policy *policy;
        const Ledger *ledger;
        const AnswerList *eswitches; /* NULL: nothing is known of them */
        const HealthList *health;    /* the same */
} PlanContext;

/* VERDICT_NONE when *ret was set (caller owns); else *ret_refusal says what was short and by how much. */
Verdict plan_make(const PlanContext *c, const Request *r, Plan **ret, Refusal *ret_refusal);
Plan *plan_free(Plan *p);
DEFINE_CLEANUP(Plan *, plan_free)

/* One device with the companions and held members it brings, as an allocation without name, CPUs and memory: what
 * Bind=start binds. */
int plan_single(const PlanContext *c, const PciDevice *dev, Allocation **ret);
