/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Tables and trees on standard output, drawn by libsmartcols. On a terminal, the columns that may be cut or wrapped are
 * narrowed, so that the table is not wider than page_width(). If a row cannot be added, table_print() reports that. */

#include <libsmartcols.h>

#include "options.h"
#include "reply.h"

typedef struct Column {
        const char *name;
        const char *key;                 /* key of the member that table_add_object() puts into the cell */
        char *(*text)(json_object *row); /* if key is NULL: makes the cell for table_add_object(), which frees it */
        bool right;                      /* align to the right, for numbers */
        bool cut;                        /* may be cut if the terminal is too narrow */
        bool wrapped;                    /* may be wrapped likewise: at a space, or at a comma if there is no space */
        bool wide;                       /* left out on a terminal of less than 100 columns */
        bool tree;                       /* has the branches of table_add_below() */
} Column;

typedef struct Table {
        struct libscols_table *scols;
        const Column *columns;
        size_t n; /* number of rows */
        bool failed;
} Table;

/* Returns true when standard output is a terminal of less than 100 columns. */
bool table_is_narrow(void);

/* Begins a table with n columns, which must outlive the table. The caller calls table_done(). */
void table_init(Table *t, const Column *columns, size_t n);
void table_done(Table *t);
#define _cleanup_table_ _cleanup_(table_done)

/* Adds a row. cells: a string for each column, copied. A string that is NULL, because memory for it ran out, is a
 * failure. */
void table_add(Table *t, const char *const *cells);
/* Adds a row. The cell of a column is the member of the object with the column's key, or the result of its text(). */
void table_add_object(Table *t, json_object *o);
/* As table_add(), for a tree. above: the parent row; NULL: the new row is at the root. colour: a name or an escape
 * sequence for libsmartcols, or NULL. Returns the row, which the table owns; NULL on a failure. */
struct libscols_line *table_add_below(Table *t, struct libscols_line *above, const char *colour,
                                      const char *const *cells);
/* Prints the table. If it has no rows, prints the sentence `empty` (if not NULL) on stderr instead. Returns 0 or a
 * negative errno, reported. */
int table_print(Table *t, const Args *args, const char *empty);

/* Prints a table with a row for each object of the array, as table_add_object() and table_print() do. */
int table_print_array(const Args *args, const Column *columns, size_t n, json_object *array, const char *empty);
