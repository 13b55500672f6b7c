/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Enums to text and back. Above the macro stands
 *         static const char *const PREFIX_table[MAX] = { [VALUE] = "text", ... };
 * and the prototypes of what it defines are in the header of the enum.
 */

#include <stddef.h>

/* Position of s in a table of n strings, or -EINVAL: the _X_INVALID of every enum. NULL is in no table. */
int string_table_find(const char *const *table, size_t n, const char *s);

/* PREFIX_to_string(): NULL for what is not in the table. A negative value becomes a huge size_t, so it is out of range
 * too. */
#define DEFINE_STRING_TABLE_TO_STRING(prefix, Type, MAX)                                                               \
        const char *prefix##_to_string(Type value) {                                                                   \
                return (size_t) value < (size_t) (MAX) ? prefix##_table[(size_t) value] : NULL;                        \
        }

/* PREFIX_to_string() and PREFIX_from_string(), which returns -EINVAL for unknown text. */
#define DEFINE_STRING_TABLE(prefix, Type, MAX)                                                                         \
        DEFINE_STRING_TABLE_TO_STRING(prefix, Type, MAX)                                                               \
        Type prefix##_from_string(const char *s) {                                                                     \
                return (Type) string_table_find(prefix##_table, (size_t) (MAX), s);                                    \
        }
