/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Tables on stdout, drawn by libsmartcols. */

#include <libsmartcols.h>
#include <stdbool.h>
#include <stddef.h>

#include "util/cleanup.h"

typedef struct Column {
        const char *name;
        bool right; /* align right, for numbers */
        bool cut;   /* the column may be cut when the terminal is too narrow */
} Column;

DEFINE_CLEANUP(struct libscols_table *, scols_unref_table)

/* n: number of columns. NULL when out of memory. The caller frees with scols_unref_table(). */
struct libscols_table *table_new(const Column *columns, size_t n);
/* Adds a row. cells: one string for each column, copied. 0 or a negative errno. */
int table_add(struct libscols_table *table, const char *const *cells);
/* 0 or a negative errno. */
int table_print(struct libscols_table *table);
