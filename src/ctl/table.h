/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Tables for people, by libsmartcols. */

#include <libsmartcols.h>
#include <stdbool.h>
#include <stddef.h>

#include "util/cleanup.h"

typedef struct Column {
        const char *name;
        bool right; /* numbers */
        bool cut;   /* may be cut where the terminal is too narrow */
} Column;

DEFINE_CLEANUP(struct libscols_table *, scols_unref_table)

/* NULL when out of memory. */
struct libscols_table *table_new(const Column *columns, size_t n);
/* cells: as many as there are columns, copied. */
int table_add(struct libscols_table *table, const char *const *cells);
int table_print(struct libscols_table *table);
