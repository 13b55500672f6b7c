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

/* What a vector of counts says of a choice, whichever devices it is made of. */
typedef struct State {
        uint64_t packed;                 /* a digit per pool, with a guard bit above each */
        unsigned taken;                  /* devices */
        unsigned physical;               /* of those no VFs */
        unsigned spread_vfs, packed_vfs; /* by VfPlacement= of their pools */
        unsigned unpaired; /* of the larger of the two sides, GPUs and NICs, those that find no partner among these
                              devices */
        unsigned gpus_elsewhere; /* ordered pairs of a GPU in here and one of the request's others */
        bool complete;           /* all pools have what is wanted */
} State;

typedef struct Space {
        State *states; /* by number: counts in mixed radix, VFs and whole devices of a pool counted apart */
        size_t n_states;
        uint64_t bias, guards; /* two states fit together when no guard bit of packed + packed + bias is set */
        uint32_t step[REQUEST_POOLS_MAX][2]; /* what one more device of the pool adds to the number; [1] for VFs */
        unsigned pairs;                      /* of the whole request */
        struct {
                unsigned wanted, shift, width; /* its digit in packed */
        } pools[REQUEST_POOLS_MAX];
} Space;

/* 0, -ENOMEM, -E2BIG beyond SEARCH_STATES_MAX. */
int space_init(Space *s, const SearchPool *pools, size_t n_pools);
void space_done(Space *s);

/* Whether devices that are together and no others near enough satisfy a limit between two pools. */
bool space_satisfies(const Space *s, const State *state, const size_t pools[2]);

typedef struct Entry {
        Cost cost;
        unsigned n;
        uint32_t picks[REQUEST_DEVICES_MAX]; /* inventory indices, ascending */
} Entry;

typedef struct Table {
        struct Table *next; /* of the spare ones */
        Entry *entries;     /* by state; good where present */
        bool *present;
        uint16_t *used; /* the states present, in no order */
        size_t n_used;
} Table;

/* Holds nothing but the empty choice. NULL: out of memory. */
Table *search_table_new(const Space *s);
Table *search_table_free(Table *t);
void search_table_reset(Table *t);

/* Adds a choice of one device. */
void search_table_put(Table *t, size_t state, Cost cost, uint32_t device);
/* The best complete choice, or NULL. */
const Entry *search_table_best(const Space *s, const Table *t);

/*
 * Every way to take some from a and some from b, into sum, which is reset; nothing that is farther off the nodes than
 * most. Takes what it did from *work; -E2BIG when that is not enough.
 */
int search_table_merge(const Space *s, const Table *a, const Table *b, Cost most, uint64_t *work, Table *sum);
