/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Members of JSON objects and elements of arrays. Reading any value is safe: NULL or 0 where it has no such member.
 * Pure. */

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

/* 0 for what is no array. */
static inline size_t json_length(json_object *array) {
        return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

/* NULL beyond its end. */
static inline json_object *json_at(json_object *array, size_t i) {
        return i < json_length(array) ? json_object_array_get_idx(array, i) : NULL;
}

/* The first element of the array o[key]. */
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

/* The element of an array whose member has this text; NULL: there is none. */
static inline json_object *json_find(json_object *array, const char *key, const char *text) {
        for (size_t i = 0; i < json_length(array); i++)
                if (streq_ptr(member_text(json_at(array, i), key), text))
                        return json_at(array, i);
        return NULL;
}

/* The object or array of a text in which ' stands for ", as in json_format("{'name': '%s'}", name). The values need no
 * escapes: they are names and numbers. The caller owns it; NULL when out of memory. */
json_object *json_format(const char *format, ...) _printf_(1, 2);
