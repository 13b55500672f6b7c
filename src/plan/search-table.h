/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Tables with the best choice for each vector of device counts, and the merge of two tables. Only the search includes
 * this header.
 */

#include "search-space.h"

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
/* The best complete choice, or NULL. */
const Entry *search_table_best(const Space *s, const Table *t);

/*
 * Resets sum and fills it with all combinations of a choice from a and one from b, except those with fewer devices of a
 * pool than least or with more devices off the nodes than most. Deducts the cost from *work. 0, -ENOMEM, -E2BIG when
 * *work does not suffice or there are more than SEARCH_CHOICES_MAX choices.
 */
int search_table_merge(const Space *s, SearchScratch *scratch, const Table *a, const Table *b, uint64_t least,
                       Cost most, uint64_t *work, Table *sum);
