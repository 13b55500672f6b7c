/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Tables and trees on stdout, drawn by libsmartcols. Columns are cut or wrapped, to page_width(), only on a terminal.
 * If adding a row fails, table_print() reports it. */

#include <libsmartcols.h>

#include "options.h"
#include "reply.h"

typedef struct Column {
        const char *name;
        const char *key;                 /* key of the member that table_add_object() shows */
        char *(*text)(json_object *row); /* if key is NULL: makes the cell for table_add_object(), which frees it */
        bool right;                      /* align right, for numbers */
        bool cut;                        /* the column may be cut when the terminal is too narrow */
        bool wrapped;                    /* the last column, with sentences, may be wrapped then */
        bool wide;                       /* the column is left out on a terminal of less than 100 columns */
        bool tree;                       /* the branches of table_add_below() are in this column */
} Column;

typedef struct Table {
        struct libscols_table *scols;
        const Column *columns;
        size_t n; /* rows */
        bool failed;
} Table;

/* Returns whether standard output is a terminal of less than 100 columns. */
bool table_is_narrow(void);

/* Begins a table with n columns, which must outlive it. The caller calls table_done(). */
void table_init(Table *t, const Column *columns, size_t n);
void table_done(Table *t);
#define _cleanup_table_ _cleanup_(table_done)

/* Adds a row. cells: one string for each column, copied; NULL when out of memory. */
void table_add(Table *t, const char *const *cells);
/* Adds a row with the members of the object, by the keys of the columns. */
void table_add_object(Table *t, json_object *o);
/* As table_add(), for a row below another row of a tree. above: NULL for a row at the root. colour: a name or an escape
 * sequence that libsmartcols accepts, or NULL. Returns the row, which the table owns; NULL on failure. */
struct libscols_line *table_add_below(Table *t, struct libscols_line *above, const char *colour,
                                      const char *const *cells);
/* Prints the table. If it has no rows, prints the sentence empty (unless NULL) on stderr instead. 0 or a negative
 * errno, reported. */
int table_print(Table *t, const Args *args, const char *empty);

/* Prints a table with a row for each object of the array, as table_add_object() and table_print(). */
int table_print_array(const Args *args, const Column *columns, size_t n, json_object *array, const char *empty);
