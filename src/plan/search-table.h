/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The best choice for every vector of device counts, and how two such tables make one; only the search includes it. */

#include "search-space.h"

/* An entry of a table, which goes by its counts. */
typedef struct Order {
        uint64_t counts;
        uint32_t entry;
} Order;

/* Room for one merge at a time. */
typedef struct SearchScratch {
        uint16_t *slots; /* where in a table a state is, while that is made */
        Order *order;    /* one that it is made of */
} SearchScratch;

/* 0 or -ENOMEM; to be done either way. */
int search_scratch_init(SearchScratch *s);
void search_scratch_done(SearchScratch *s);

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

/* Adds the choice of a device beside those of the last entry, which have lower addresses. 0 or -ENOMEM. */
int search_table_put(Table *t, Cost cost, const State *one, uint32_t device);
/* The best complete choice, or NULL. */
const Entry *search_table_best(const Space *s, const Table *t);

/*
 * Every way to take some from a and some from b, into sum, which is reset; nothing that has fewer devices of a pool
 * than least or is farther off the nodes than most. Takes what it did from *work; -E2BIG when that is not enough or
 * there are more than SEARCH_CHOICES_MAX.
 */
int search_table_merge(const Space *s, const SearchScratch *scratch, const Table *a, const Table *b, uint64_t least,
                       Cost most, uint64_t *work, Table *sum);
