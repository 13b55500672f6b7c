/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables on stdout: a thin layer over libsmartcols. */
#include <errno.h>

#include "table.h"

struct libscols_table *table_new(const Column *columns, size_t n) {
        _cleanup_(cleanup_scols_unref_table) struct libscols_table *table = scols_new_table();

        if (!table)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                int flags = (columns[i].right ? SCOLS_FL_RIGHT : 0) | (columns[i].cut ? SCOLS_FL_TRUNC : 0);
                if (!scols_table_new_column(table, columns[i].name, 0, flags))
                        return NULL;
        }
        return TAKE_PTR(table);
}

int table_add(struct libscols_table *table, const char *const *cells) {
        struct libscols_line *line = scols_table_new_line(table, NULL);

        if (!line)
                return -ENOMEM;
        for (size_t i = 0; i < scols_table_get_ncols(table); i++) {
                int r = scols_line_set_data(line, i, cells[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

int table_print(struct libscols_table *table) {
        return scols_print_table(table);
}
