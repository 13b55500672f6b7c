/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a choice of devices costs, and the vectors of counts that choices are told apart by; only the search includes
 * it. */

#include "search.h"

/*
 * What a choice costs: the members of Score that add up over subtrees, the most important one uppermost, so that one
 * sum adds all and one comparison compares all. No field overflows into the next: of one request there are at most
 * REQUEST_DEVICES_MAX devices, of one node at most INVENTORY_DEVICES_MAX.
 */
typedef unsigned __int128 Cost;

typedef enum CostField {
        COST_VF_LEFT,
        COST_VF_LOAD,
        COST_LEFT_OVER,
        COST_HELD,
        COST_GPUS, /* twice the distance: pairs are seen from both ends */
        COST_NIC_OFF,
        COST_PAIRS,
        COST_REMOTE,
        COST_OFF,
        _COST_FIELD_MAX,
} CostField;

Cost cost_of(CostField field, uint64_t value);
unsigned cost_get(Cost cost, CostField field);
/* COST_OFF and COST_REMOTE alone, comparable with others of the kind. */
Cost cost_off_node(Cost cost);

/* What a choice is made of, as far as it matters; it adds up over subtrees. */
typedef struct State {
        uint64_t counts; /* of devices by pool: a digit for each, with a guard bit above it */
        uint64_t vfs;    /* the same without guards, of the VFs in pools that have whole devices too */
        uint64_t tally;  /* by TallyField a byte each, which holds more than the devices of one request */
} State;

typedef enum TallyField {
        TALLY_PHYSICAL,   /* devices that are no VFs */
        TALLY_SPREAD_VFS, /* by VfPlacement= of their pools */
        TALLY_PACKED_VFS,
        TALLY_GPUS,
        TALLY_NICS,
} TallyField;

unsigned state_get(const State *state, TallyField field);

typedef struct Space {
        State one[REQUEST_POOLS_MAX][2]; /* a device of the pool; [1] for VFs */
        uint64_t bias, guards; /* two choices fit together when no guard bit of counts + counts + bias is set */
        unsigned devices;      /* of the whole request */
        unsigned gpus, nics;   /* of those, which decide how pairs are made */
        unsigned share;        /* how many of the larger side one of the smaller may serve; 0: there are no pairs */
        unsigned pairs;
        size_t n_pools;
        struct {
                unsigned wanted, shift, width; /* its digit */
                bool is_gpu, is_gpu_nic;
        } pools[REQUEST_POOLS_MAX];
} Space;

void space_init(Space *s, const SearchPool *pools, size_t n_pools);

/* Those of the larger of the two sides, GPUs and NICs, that find no partner among these devices. */
unsigned space_unpaired(const Space *s, const State *state);
/* Ordered pairs of a GPU among these and one of the request's others. */
unsigned space_gpus_elsewhere(const Space *s, const State *state);
/* Whether devices that are together and no others near enough satisfy a limit between two pools. */
bool space_satisfies(const Space *s, const State *state, const size_t pools[2]);
/* The counts that choices have at least where of each pool there are so many others to choose from. */
uint64_t space_least(const Space *s, const unsigned *others);
