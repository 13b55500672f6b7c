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
        COST_GPUS, /* twice the distance: each pair is counted from both ends */
        COST_NIC_OFF,
        COST_PAIRS,
        COST_REMOTE,
        COST_OFF,
        _COST_FIELD_MAX,
} CostField;

Cost cost_of(CostField field, uint64_t value);
unsigned cost_get(Cost cost, CostField field);
/* Returns COST_OFF and COST_REMOTE alone. The results can be compared. */
Cost cost_off_node(Cost cost);

/* The largest count that leaves the uppermost bit of its byte clear, and the uppermost bits of all bytes. */
#define COUNT_MAX    0x7fU
#define COUNT_GUARDS 0x8080808080808080ULL

/* The counts of a choice, which add up over subtrees. */
typedef struct State {
        uint64_t counts; /* devices by pool, a byte each */
        uint64_t vfs;    /* VFs by pool, a byte each, for pools with both VFs and whole devices */
        uint64_t tally;  /* a byte for each TallyField, enough for all devices of a request */
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
        State one[REQUEST_POOLS_MAX][2]; /* the state of one device of the pool; [1]: a VF */
        uint64_t bias;       /* two choices fit together if counts + counts + bias sets no bit of COUNT_GUARDS */
        unsigned devices;    /* of the whole request */
        unsigned gpus, nics; /* number of GPUs and NICs among them, for the GPU-NIC pairs */
        unsigned share; /* most devices of the larger side (GPUs or NICs) per device of the smaller side; 0: no pairs */
        unsigned pairs;
        uint64_t vgpus; /* bytes of State.counts for pools with VgpuType= */
        size_t n_pools;
        struct {
                unsigned wanted;
                bool is_gpu, is_gpu_nic;
        } pools[REQUEST_POOLS_MAX];
} Space;

void space_init(Space *s, const SearchPool *pools, size_t n_pools);

/* Returns the number of devices of the larger side, GPUs or NICs, without a partner among the devices of the state. */
unsigned space_unpaired(const Space *s, const State *state);
/* Returns the number of pairs of a GPU in the state and a GPU of the request outside of the state. */
unsigned space_gpus_elsewhere(const Space *s, const State *state);
/* Returns whether the devices of the state, without partners from elsewhere, satisfy the limit between two pools. */
bool space_satisfies(const Space *s, const State *state, const size_t pools[2]);
/* Returns whether the state has vGPUs of two pools. */
bool space_mixes_vgpus(const Space *s, const State *state);
/* Returns the smallest useful counts of a choice when others[p] further devices of each pool p are available
 * elsewhere. */
uint64_t space_least(const Space *s, const unsigned *others);

/* Buffers for one merge at a time. The next merge reuses them. */
typedef struct SearchScratch {
        uint16_t *slots; /* hash table from a state to the index of its entry in sum */
        size_t n_slots;
} SearchScratch;

void search_scratch_done(SearchScratch *s);

/* The best choice of a state. */
typedef struct Entry {
        Cost cost;
        State state; /* unique in the table, except for the tally */
        unsigned n;
        uint32_t picks[REQUEST_DEVICES_MAX]; /* inventory indices, ascending */
} Entry;

typedef struct Table {
        struct Table *next; /* next unused table */
        Entry *entries;     /* unordered */
        size_t n, allocated;
} Table;

/* Returns a table with only the empty choice. NULL: out of memory. */
Table *search_table_new(void);
Table *search_table_free(Table *t);
void search_table_reset(Table *t);
/* Returns whether the table contains only the empty choice. */
bool search_table_is_empty(const Table *t);

/* Adds a choice: device, and the devices of the last entry, which have lower addresses. Returns 0 or -ENOMEM. */
int search_table_put(Table *t, Cost cost, const State *one, uint32_t device);
/* Removes the first choice, which is the empty one. */
void search_table_drop_first(Table *t);
/* Returns the best complete choice, or NULL. */
const Entry *search_table_best(const Space *s, const Table *t);

/*
 * Empties sum and fills it with all combinations of a choice from a and one from b, except those with fewer devices of
 * a pool than least or with more devices off the nodes than most. Deducts the cost from *work. Returns 0, -ENOMEM, or
 * -E2BIG when *work does not suffice or there are more than SEARCH_CHOICES_MAX choices.
 */
int search_table_merge(const Space *s, SearchScratch *scratch, const Table *a, const Table *b, uint64_t least,
                       Cost most, uint64_t *work, Table *sum);
