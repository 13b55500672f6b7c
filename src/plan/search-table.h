/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Tables with the best choice of devices for each vector of device counts, and the merge of two tables. Only the search
 * includes this header.
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
        uint64_t vgpus; /* the bytes of State.counts of pools with VgpuType= */
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
/* True when vGPUs of two pools are among these devices. */
bool space_mixes_vgpus(const Space *s, const State *state);
/* The smallest counts of a choice when others[p] more devices of each pool p are available elsewhere. */
uint64_t space_least(const Space *s, const unsigned *others);

/* Buffers for one merge at a time, kept for the next. */
typedef struct SearchScratch {
        uint16_t *slots; /* hash table: state to index in the table being made */
        size_t n_slots;
} SearchScratch;

void search_scratch_done(SearchScratch *s);

/* The best choice for a state. */
typedef struct Entry {
        Cost cost;
        State state; /* unique in the table, not counting the tally */
        unsigned n;
        uint32_t picks[REQUEST_DEVICES_MAX]; /* inventory indices, ascending */
} Entry;

typedef struct Table {
        struct Table *next; /* next spare table */
        Entry *entries;     /* unordered */
        size_t n, allocated;
} Table;

/* A table with only the empty choice. NULL: out of memory. */
Table *search_table_new(void);
Table *search_table_free(Table *t);
void search_table_reset(Table *t);
/* True when the table contains only the empty choice. */
bool search_table_is_empty(const Table *t);

/* Adds a choice: the devices of the last entry, which have lower addresses, and device. 0 or -ENOMEM. */
int search_table_put(Table *t, Cost cost, const State *one, uint32_t device);
/* Drops the first choice, the empty one. */
void search_table_drop_first(Table *t);
/* The best complete choice, or NULL. */
const Entry *search_table_best(const Space *s, const Table *t);

/*
 * Resets sum and fills it with all combinations of a choice from a and one from b, except those with fewer devices of a
 * pool than least or with more devices off the nodes than most. Deducts the cost from *work. 0, -ENOMEM, -E2BIG when
 * *work does not suffice or there are more than SEARCH_CHOICES_MAX choices.
 */
int search_table_merge(const Space *s, SearchScratch *scratch, const Table *a, const Table *b, uint64_t least,
                       Cost most, uint64_t *work, Table *sum);
