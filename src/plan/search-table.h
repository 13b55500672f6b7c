/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Tables with the best choice of devices for each vector of device counts, and the merge of two tables. Only the search
 * includes this header.
 */

#include "search.h"

/*
 * The members of Score that add up over subtrees, packed with the most important one uppermost. One addition adds all
 * members, one comparison compares all. No field can overflow: a request has at most REQUEST_DEVICES_MAX devices, a
 * host at most INVENTORY_DEVICES_MAX.
 */
typedef unsigned __int128 Cost;

typedef enum CostField {
        COST_VF_LEFT,
        COST_VF_LOAD,
        COST_LEFT_OVER,
        COST_HELD,
        COST_GPUS, /* twice the distances between GPUs, because each pair is counted at both GPUs */
        COST_NIC_OFF,
        COST_PAIRS,
        COST_REMOTE,
        COST_OFF,
        _COST_FIELD_MAX,
} CostField;

Cost cost_of(CostField field, uint64_t value);
unsigned cost_get(Cost cost, CostField field);
/* Returns COST_OFF and COST_REMOTE of a cost, without the other fields, for comparison with other such results. */
Cost cost_off_node(Cost cost);

/* COUNT_MAX is the largest count that leaves the uppermost bit of its byte clear. COUNT_GUARDS has the uppermost bit of
 * each byte. */
#define COUNT_MAX    0x7fU
#define COUNT_GUARDS 0x8080808080808080ULL

/* What a choice has, in numbers that can be added to those of another choice. */
typedef struct State {
        uint64_t counts; /* devices by pool, one byte each */
        uint64_t vfs;    /* VFs by pool, one byte each; 0 for a pool without SearchPool.has_devices */
        uint64_t tally;  /* one byte for each TallyField */
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
        State one[REQUEST_POOLS_MAX][2]; /* what one device of the pool adds to a State; [0]: no VF, [1]: a VF */
        uint64_t bias;       /* the counts of two choices stay within the request if their sum + bias sets no bit of
                                COUNT_GUARDS */
        unsigned devices;    /* number of devices that the request wants */
        unsigned gpus, nics; /* GPUs and NICs of the request */
        unsigned share; /* the most devices of the larger side (GPUs or NICs) that share one of the smaller side; 0: no
                           pairs */
        unsigned pairs;
        uint64_t vgpus; /* mask of the bytes in State.counts of pools with VgpuType= */
        size_t n_pools;
        struct {
                unsigned wanted;
                bool is_gpu, is_gpu_nic;
        } pools[REQUEST_POOLS_MAX];
} Space;

void space_init(Space *s, const SearchPool *pools, size_t n_pools);

/* Returns how many devices of the larger side (GPUs or NICs) in the state have no partner in the state. */
unsigned space_unpaired(const Space *s, const State *state);
/* Returns how many pairs there are of a GPU in the state and a GPU that the request wants besides. */
unsigned space_gpus_elsewhere(const Space *s, const State *state);
/* Returns whether the devices in the state satisfy the limit between two pools without partners from elsewhere. */
bool space_satisfies(const Space *s, const State *state, const size_t pools[2]);
/* Returns whether the state has vGPUs of several pools, which may have different types. */
bool space_mixes_vgpus(const Space *s, const State *state);
/* Returns the smallest counts that a choice needs, if others[p] more devices of each pool p can be added to it. */
uint64_t space_least(const Space *s, const unsigned *others);

/* Buffers of a merge, which the next merge uses again. */
typedef struct SearchScratch {
        uint16_t *slots; /* hash table: the index of a state's entry in the sum */
        size_t n_slots;
} SearchScratch;

void search_scratch_done(SearchScratch *s);

/* The best of all choices with the same counts and vfs. */
typedef struct Entry {
        Cost cost;
        State state; /* no other entry has the same counts and vfs */
        unsigned n;
        uint32_t picks[REQUEST_DEVICES_MAX]; /* inventory indices, ascending */
} Entry;

typedef struct Table {
        struct Table *next; /* next table to be recycled */
        Entry *entries;     /* in no order */
        size_t n, allocated;
} Table;

/* Returns a table whose only entry is the empty choice. NULL: out of memory. */
Table *search_table_new(void);
Table *search_table_free(Table *t);
void search_table_reset(Table *t);
/* Returns whether the only entry is the empty choice. */
bool search_table_is_empty(const Table *t);

/* Adds the choice of the last entry plus `device`, whose address is higher than those of that choice. 0 or -ENOMEM. */
int search_table_put(Table *t, Cost cost, const State *one, uint32_t device);
/* Removes the empty choice, so that each choice has a device. */
void search_table_drop_first(Table *t);
/* Returns the best choice with all devices of the request, or NULL. */
const Entry *search_table_best(const Space *s, const Table *t);

/*
 * Empties sum, and combines each choice of table `a` with each choice of table `b`. Of all combinations with the same
 * State.counts and State.vfs, enters the best one into sum. Leaves out combinations with more devices of a pool than
 * the request wants, with fewer devices of a pool than `least` (as space_least() returns), or with more devices off the
 * nodes than `most` (in the form of cost_off_node()). Deducts the work from *work. Returns 0, -ENOMEM, or -E2BIG when
 * *work does not suffice or there are more than SEARCH_CHOICES_MAX choices.
 */
int search_table_merge(const Space *s, SearchScratch *scratch, const Table *a, const Table *b, uint64_t least,
                       Cost most, uint64_t *work, Table *sum);
