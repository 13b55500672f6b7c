/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Members of JSON objects and elements of arrays. Reading is safe with any value: NULL or 0 when there is no such
 * member. Pure. */

#include <json-c/json.h>
#include <stdbool.h>

#include "util/cleanup.h"

static inline json_object *member(json_object *o, const char *key) {
        return json_object_object_get(o, key);
}

static inline const char *member_text(json_object *o, const char *key) {
        return json_object_get_string(member(o, key));
}

/* Takes ownership of value. False when out of memory, also if value is NULL. */
static inline bool member_add(json_object *o, const char *key, json_object *value) {
        if (value && json_object_object_add(o, key, value) == 0)
                return true;
        (void) json_object_put(value);
        return false;
}

/* Returns the length of an array; 0 for any other value. */
static inline size_t json_length(json_object *array) {
        return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

/* Returns element i of an array; NULL beyond the end. */
static inline json_object *json_at(json_object *array, size_t i) {
        return i < json_length(array) ? json_object_array_get_idx(array, i) : NULL;
}

/* Returns the first element of the array o[key]. */
static inline json_object *member_first(json_object *o, const char *key) {
        return json_at(member(o, key), 0);
}

/* Takes ownership of value. False when out of memory, also if value is NULL. */
static inline bool json_append(json_object *array, json_object *value) {
        if (value && json_object_array_add(array, value) == 0)
                return true;
        (void) json_object_put(value);
        return false;
}

/* Returns the element of an array whose member key is this text; NULL: there is none. */
static inline json_object *json_find(json_object *array, const char *key, const char *text) {
        for (size_t i = 0; i < json_length(array); i++)
                if (streq_ptr(member_text(json_at(array, i), key), text))
                        return json_at(array, i);
        return NULL;
}

/* Parses an object or array from a format in which ' stands for ", as in json_format("{'name': '%s'}", name). The
 * values must need no escapes, as names and numbers. The caller owns the result; NULL when out of memory. */
json_object *json_format(const char *format, ...) _printf_(1, 2);
