/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The planner makes a plan or a refusal from inventory, configuration, ledger and request. Pure, deterministic and
 * exact: the plan minimises Score, compared member by member from the top, over all sets of devices and NUMA nodes that
 * satisfy the request. Among equal scores the lowest addresses win.
 *
 * A guest on several NUMA nodes has equal shares of its CPUs and its memory on each node. Two shares differ at most by
 * an indivisible unit:
 * - CPUs are whole cores, as few as possible, and two shares differ by one core at most. When the vCPUs do not fill
 *   these cores, one of the largest shares leaves threads of one core unused. With fewer cores than nodes, each node
 *   gives fewer threads than a core has.
 * - Memory is whole pages, and two shares differ by one page at most. The lowest nodes with room for a larger share get
 *   the larger shares. CPUs and memory are shared out separately, memory after the nodes of new shared memory are
 *   chosen.
 */

#include "config/withdrawn.h"
#include "ledger/ledger.h"
#include "model/locality.h"
#include "plan/mlx4.h"
#include "plan/request.h"
#include "plan/score.h"
#include "steps/step.h"

typedef struct PlanPair {
        PciAddress gpu, nic;
        Distance distance;
} PlanPair;

/*
 * How near the devices of a RequestLimit are: their pairs, nearest first. A limit of a pool with itself has no pairs.
 */
typedef struct PlanLimit {
        char *pools[2];
        Proximity limit;
        Distance worst; /* the largest distance of a pair; of a pool with itself: between any two of its devices */
        struct {
                PciAddress devices[2];
                Distance distance;
        } pairs[REQUEST_DEVICES_MAX];
        size_t n_pairs;
} PlanLimit;

typedef struct Plan {
        Allocation *allocation; /* plan_make() leaves it without a name; the drivers and overrides to restore are those
                                   of the inventory */
        Score score;
        PlanPair *pairs;
        size_t n_pairs;
        PlanLimit *limits; /* one for each RequestLimit of the request, in the order of the request */
        size_t n_limits;
        bool has_runner_up; /* the next members are those of the second best plan: the best one on another set of as
                               many NUMA nodes, or with another NVLink partition */
        Score runner_up;
        int runner_up_partition; /* its NVLink partition, as Allocation.partition */
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
        const DeviceStatusTable *status; /* findings about devices; NULL: none */
        const Mlx4 *mlx4;
        const VfReportList *vfs; /* VFs as PFs report them; NULL: unknown */
        const LibvirtStatus *libvirt;
        const EndpointStatusTable *endpoints; /* whether endpoints of services answer; NULL: unknown */
        const FabricTable *fabric;            /* the partitions that Fabric Manager reports; NULL: unknown */
        const WithdrawnList *withdrawn;       /* NULL: none */
        const char *sysroot, *config_path;    /* --sysroot= and --config= of the daemon. Both NULL for a recorded node;
                                                 config_path also NULL if the daemon searches the default paths */
        const PciAddress *in_use;             /* the planner skips these devices and their IOMMU groups */
        size_t n_in_use;
        const Allocation *grown; /* an allocation outside the ledger whose vGPUs count as taken; NULL: none */
        bool may_miss_guests;    /* guests may run that the daemon does not know */
} HostView;

/*
 * Makes a plan. Returns VERDICT_NONE and sets *ret, which the caller frees. Otherwise *ret_refusal says why, for
 * example what is short and by how much.
 */
Verdict plan_make(const HostView *view, const Request *r, Plan **ret, Refusal *ret_refusal);
/*
 * Plans further devices for allocation `a`, as close as possible to those that it has. The allocation of *ret has only
 * the new devices, in slots that `a` does not have, and the name of `a`; the score is that of all devices together. `r`
 * may have pools, at, numa, proximity, limits, attributes and no_fabric. Otherwise as plan_make().
 */
Verdict plan_attach(const HostView *view, const Allocation *a, const Request *r, Plan **ret, Refusal *ret_refusal);
/*
 * Marks as detaching the devices that allocation `a` loses together with the assigned device in the slot: this device,
 * its companions, and devices held only because of it. If an earlier attach or detach was interrupted, all its devices
 * are marked together, and no other device can be detached. Refuses if no assigned device has the slot, or if the rest
 * needs the device: it is a GPU of an NVLink partition, another device of its IOMMU group stays, it is the last device
 * of the pool in Via= of a service, or the last device of an allocation without CPUs. Also refuses for a confidential
 * guest. After a refusal `a` is inconsistent, and must be dropped.
 */
Verdict plan_detach(const HostView *view, Allocation *a, const char *slot, Refusal *ret);
/* Returns the card that replaced the device of `d`. NULL: the device is there or lost, or its address has no card. */
const PciDevice *plan_find_replacement(const HostView *view, const AllocationDevice *d);
/*
 * Checks whether allocation `a` may have the cards that replaced its devices: each card is free, and has the role of
 * the device in its IOMMU group; the card of an assigned device is also in the pool of the device. VERDICT_MISSING or
 * VERDICT_WRONG_STATE: no device was replaced.
 */
Verdict plan_check_accept(const HostView *view, const Allocation *a, Refusal *ret);
/* Replaces devices of `a` by the cards that plan_find_replacement() returns, as in a new allocation: a release restores
 * the present drivers of the cards. 0 or -ENOMEM. */
int plan_accept(const HostView *view, Allocation *a);
Plan *plan_free(Plan *p);
DEFINE_CLEANUP(Plan *, plan_free)

/* The most allocations that plan_repeat() counts. */
#define REPEAT_MAX 1024U

typedef struct RepeatFit {
        const Allocation *allocation; /* named "#1", "#2" and so on; owned by Repeat.ledger */
        Score score;
        bool has_pairs; /* the plan pairs GPUs with NICs */
} RepeatFit;

typedef struct Repeat {
        Ledger *ledger; /* a copy of the ledger, with an allocation added for each fit */
        RepeatFit *fits;
        size_t n;
        Refusal refusal; /* why the request does not fit once more. VERDICT_LIMIT: REPEAT_MAX or the work limit is
                            reached, and the request may fit more often */
} Repeat;

/*
 * Counts how often the request fits: plans it repeatedly, each time as if the previous plans were allocations. Returns
 * VERDICT_NONE and sets *ret even when the request does not fit once for lack of room. Any other verdict: the request
 * does not fit once for another reason, such as an unknown pool; *ret_refusal says why.
 */
Verdict plan_repeat(const HostView *view, const Request *r, Repeat *ret, Refusal *ret_refusal);
void repeat_done(Repeat *r);
#define _cleanup_repeat_ _cleanup_(repeat_done)

/* Makes an allocation of dev, its companions and held group members, without name, CPUs and memory: for Bind=start, and
 * for the quarantine of a device that a guest of Nova has used. 0 or -ENOMEM. */
int plan_single(const HostView *view, const PciDevice *dev, Allocation **ret);
