/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Conversion between the values of an enum and text. A file defines "static const char *const PREFIX_table[MAX] = {
 * [VALUE] = "text", ... };" and then uses one of the macros below. The header of the enum declares the functions. */

#include <stddef.h>

/* Returns the index of s in a table of n strings. Returns -EINVAL, the value of every enum's _X_INVALID, if the table
 * does not have s or if s is NULL. */
int string_table_find(const char *const *table, size_t n, const char *s);

/* Defines PREFIX_to_string(), which returns NULL for a value outside the table. A negative value is outside too,
 * because it becomes a huge size_t. */
#define DEFINE_STRING_TABLE_TO_STRING(prefix, Type, MAX)                                                               \
        const char *prefix##_to_string(Type value) {                                                                   \
                return (size_t) value < (size_t) (MAX) ? prefix##_table[(size_t) value] : NULL;                        \
        }

/* Defines PREFIX_to_string() and PREFIX_from_string(). The latter returns -EINVAL for unknown text. */
#define DEFINE_STRING_TABLE(prefix, Type, MAX)                                                                         \
        DEFINE_STRING_TABLE_TO_STRING(prefix, Type, MAX)                                                               \
        Type prefix##_from_string(const char *s) {                                                                     \
                return (Type) string_table_find(prefix##_table, (size_t) (MAX), s);                                    \
        }
