/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The best choice for every vector of device counts, and how two such tables make one; only the search includes it. */

#include "core/search.h"

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

/* An entry of a table, which goes by its counts. */
typedef struct Order {
        uint64_t counts;
        uint32_t entry;
} Order;

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
        } pools[REQUEST_POOLS_MAX];
        uint16_t *slots; /* scratch: where in a table a state is, while that is made */
        Order *order;    /* scratch: one that it is made of */
} Space;

/* 0 or -ENOMEM. */
int space_init(Space *s, const SearchPool *pools, size_t n_pools);
void space_done(Space *s);

/* Those of the larger of the two sides, GPUs and NICs, that find no partner among these devices. */
unsigned space_unpaired(const Space *s, const State *state);
/* Ordered pairs of a GPU among these and one of the request's others. */
unsigned space_gpus_elsewhere(const Space *s, const State *state);
/* Whether devices that are together and no others near enough satisfy a limit between two pools. */
bool space_satisfies(const Space *s, const State *state, const size_t pools[2]);
/* The counts that choices have at least where of each pool there are so many others to choose from. */
uint64_t space_least(const Space *s, const unsigned *others);

/* A choice, the best one of its state. */
typedef struct Entry {
        Cost cost;
        State state; /* but for the tally no other of the table has */
        unsigned n;
        uint32_t picks[REQUEST_DEVICES_MAX]; /* inventory indices, ascending */
} Entry;

typedef struct Table {
        struct Table *next; /* of the spare ones */
        Entry *entries;     /* in no order */
        size_t n, allocated;
} Table;

/* Holds nothing but the empty choice. NULL: out of memory. */
Table *search_table_new(void);
Table *search_table_free(Table *t);
void search_table_reset(Table *t);
/* As it was after that. */
bool search_table_is_empty(const Table *t);

/* Adds a choice of one device. 0 or -ENOMEM. */
int search_table_put(Table *t, Cost cost, const State *one, uint32_t device);
/* The best complete choice, or NULL. */
const Entry *search_table_best(const Space *s, const Table *t);

/*
 * Every way to take some from a and some from b, into sum, which is reset; nothing that has fewer devices of a pool
 * than least or is farther off the nodes than most. Takes what it did from *work; -E2BIG when that is not enough or
 * there are more than SEARCH_CHOICES_MAX.
 */
int search_table_merge(const Space *s, const Table *a, const Table *b, uint64_t least, Cost most, uint64_t *work,
                       Table *sum);
