/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The cost of a choice of devices, and the vector of counts that identifies it. Only the search includes this header.
 */

#include "search.h"

/*
 * The members of Score that add up over subtrees, packed with the most important one uppermost: one addition adds all
 * members, one comparison compares all. No field can overflow: a request has at most REQUEST_DEVICES_MAX devices, a
 * host at most INVENTORY_DEVICES_MAX.
 */
typedef unsigned __int128 Cost;

typedef enum CostField {
        COST_VF_LEFT,
        COST_VF_LOAD,
        COST_LEFT_OVER,
        COST_HELD,
        COST_GPUS, /* twice the distance: each pair is counted from both ends */
        COST_NIC_OFF,
        COST_PAIRS,
        COST_REMOTE,
        COST_OFF,
        _COST_FIELD_MAX,
} CostField;

Cost cost_of(CostField field, uint64_t value);
unsigned cost_get(Cost cost, CostField field);
/* COST_OFF and COST_REMOTE alone; two such results can be compared. */
Cost cost_off_node(Cost cost);

/* The largest count that leaves the uppermost bit of its byte clear, and all these bits. */
#define COUNT_MAX    0x7fU
#define COUNT_GUARDS 0x8080808080808080ULL

/* The counts of a choice. They add up over subtrees. */
typedef struct State {
        uint64_t counts; /* devices by pool, a byte for each pool */
        uint64_t vfs;    /* VFs by pool, a byte for each, for pools that have VFs and whole devices */
        uint64_t tally;  /* a byte for each TallyField; a byte can count all devices of a request */
} State;

typedef enum TallyField {
        TALLY_PHYSICAL,   /* devices other than VFs */
        TALLY_SPREAD_VFS, /* VFs of pools with VfPlacement=spread */
        TALLY_PACKED_VFS,
        TALLY_GPUS,
        TALLY_NICS,
} TallyField;

unsigned state_get(const State *state, TallyField field);

typedef struct Space {
        State one[REQUEST_POOLS_MAX][2]; /* a device of the pool; [1] for VFs */
        uint64_t bias;       /* two choices fit together when counts + counts + bias sets no bit of COUNT_GUARDS */
        unsigned devices;    /* of the whole request */
        unsigned gpus, nics; /* of these, for the GPU-NIC pairs */
        unsigned share;      /* most devices of the larger side (GPUs or NICs) for one of the smaller; 0: no pairs */
        unsigned pairs;
        size_t n_pools;
        struct {
                unsigned wanted;
                bool is_gpu, is_gpu_nic;
        } pools[REQUEST_POOLS_MAX];
} Space;

void space_init(Space *s, const SearchPool *pools, size_t n_pools);

/* The number of devices of the larger side, GPUs or NICs, without a partner among these devices. */
unsigned space_unpaired(const Space *s, const State *state);
/* The number of pairs of a GPU in state and a GPU of the request that is not in state. */
unsigned space_gpus_elsewhere(const Space *s, const State *state);
/* True when these devices, without partners from elsewhere, satisfy the limit between two pools. */
bool space_satisfies(const Space *s, const State *state, const size_t pools[2]);
/* The smallest counts of a choice when others[p] more devices of each pool p are available elsewhere. */
uint64_t space_least(const Space *s, const unsigned *others);
