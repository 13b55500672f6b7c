/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Members of JSON objects. Reading any value is safe: NULL or 0 where it has no such member. Pure. */

#include <json-c/json.h>
#include <stdbool.h>

static inline json_object *member(json_object *o, const char *key) {
        return json_object_object_get(o, key);
}

static inline const char *member_text(json_object *o, const char *key) {
        return json_object_get_string(member(o, key));
}

/* The first element of the array o[key]. */
static inline json_object *member_first(json_object *o, const char *key) {
        json_object *all = member(o, key);

        return json_object_is_type(all, json_type_array) ? json_object_array_get_idx(all, 0) : NULL;
}

/* Takes ownership of value. False when out of memory, also if value is NULL. */
static inline bool member_add(json_object *o, const char *key, json_object *value) {
        if (value && json_object_object_add(o, key, value) == 0)
                return true;
        (void) json_object_put(value);
        return false;
}
