/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>

#include "util/cleanup.h"
#include "util/stringtable.h"

int string_table_find(const char *const *table, size_t n, const char *s) {
        for (size_t i = 0; s && i < n; i++)
                if (table[i] && streq(table[i], s))
                        return (int) i;
        return -EINVAL;
}
