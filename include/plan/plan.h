/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The planner: facts, configuration, ledger and a request to a plan or a refusal. Pure, deterministic and exact: the
 * plan minimises Score, compared member by member from the top, over all sets of devices and NUMA nodes that satisfy
 * the request; then the lowest addresses.
 */

#include "ledger/ledger.h"
#include "model/eswitch.h"
#include "model/health.h"
#include "model/locality.h"
#include "plan/mlx4.h"
#include "plan/request.h"
#include "plan/score.h"
#include "steps/step.h"

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
        bool has_runner_up; /* the best plan on as many other NUMA nodes */
        Score runner_up;
        int runner_up_nodes[ALLOCATION_CELLS_MAX];
        size_t n_runner_up_nodes;
        PciAddress runner_up_devices[REQUEST_DEVICES_MAX];
        size_t n_runner_up_devices;
} Plan;

typedef struct HostView {
        const Inventory *inventory;
        const Locality *locality;
        const Config *config;
        const Policy *policy;
        const Ledger *ledger;
        const Mlx4 *mlx4;
        const ProbeCache *eswitches; /* NULL: nothing is known of them */
        const HealthList *health;    /* the same */
        const VfReportList *vfs;     /* the same */
} HostView;

/* VERDICT_NONE when *ret was set (caller owns); else *ret_refusal says what was short and by how much. */
Verdict plan_make(const HostView *c, const Request *r, Plan **ret, Refusal *ret_refusal);
Plan *plan_free(Plan *p);
DEFINE_CLEANUP(Plan *, plan_free)

/* How many such requests fit one after the other, each planned as though those before it were allocations. */
#define REPEAT_MAX 1024U

typedef struct RepeatFit {
        Allocation *allocation; /* "#1" and so on; owned */
        Score score;
        bool has_pairs; /* of GPUs and NICs */
} RepeatFit;

typedef struct Repeat {
        RepeatFit *fits;
        size_t n;
        Refusal refusal; /* of the next one; VERDICT_LIMIT: there may be more, but no more were tried */
} Repeat;

/* VERDICT_NONE with *ret, also when not even one fits; else *ret_refusal says what is wrong with the request. */
Verdict plan_repeat(const HostView *c, const Request *r, Repeat *ret, Refusal *ret_refusal);
void repeat_done(Repeat *r);
#define _cleanup_repeat_ _cleanup_(repeat_done)

/* One device with the companions and held members it brings, as an allocation without name, CPUs and memory: what
 * Bind=start binds. */
int plan_single(const HostView *c, const PciDevice *dev, Allocation **ret);
