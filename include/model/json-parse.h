/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Parses JSON text into json-c's objects. All JSON that this program reads is parsed here and not by json-c's tokener,
 * because versions of json-c differ in what they accept, and each of them must accept the same ledger files. Pure.
 *
 * The text is one object as in RFC 8259, with nothing but white space around it. Beyond the RFC:
 * - a byte that is not UTF-8, and half of a surrogate pair, become U+FFFD, as json_text_string() writes them;
 * - refused are: a NUL in a string, a key that its object has already, more than JSON_DEPTH_MAX objects and arrays in
 *   each other, an integer that fits neither int64_t nor uint64_t, another number beyond the range of double, and a
 *   number of more than JSON_NUMBER_MAX bytes.
 */

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "util/cleanup.h"

static inline void cleanup_json(json_object **o) {
        (void) json_object_put(*o);
}
#define _cleanup_json_ _cleanup_(cleanup_json)

#define JSON_DEPTH_MAX  32U
#define JSON_NUMBER_MAX 64U

/* What a value costs, in units of about 100 bytes that json-c allocates. A member of an object also has a key and an
 * entry in a table. */
#define JSON_COST        1U
#define JSON_COST_ARRAY  4U
#define JSON_COST_OBJECT 8U
#define JSON_COST_MEMBER 2U

/* Parses a text, which need not be NUL-terminated. 0, -EBADMSG or -ENOMEM; *ret is NULL on failure. The caller owns
 * *ret. */
int json_parse(const char *text, size_t size, json_object **ret);

/* As json_parse(), for a text from another machine or program, whose values may take far more memory than the text
 * itself. -E2BIG: the values cost more than max. */
int json_parse_within(const char *text, size_t size, size_t max, json_object **ret);

/*
 * Readers of members of objects and of elements of arrays. They accept any value: if it is null, or has no such member
 * or element, they return NULL or 0.
 */

static inline json_object *member(json_object *o, const char *key) {
        return json_object_object_get(o, key);
}

/* Returns the member if it is an object, else NULL. */
static inline json_object *member_object(json_object *o, const char *key) {
        return json_object_is_type(member(o, key), json_type_object) ? member(o, key) : NULL;
}

/* Returns the member if it is an array, else NULL. */
static inline json_object *member_array(json_object *o, const char *key) {
        return json_object_is_type(member(o, key), json_type_array) ? member(o, key) : NULL;
}

/* Returns the text of the member; of any other value than a string, its JSON text. */
static inline const char *member_text(json_object *o, const char *key) {
        return json_object_get_string(member(o, key));
}

static inline int64_t member_number(json_object *o, const char *key) {
        return json_object_get_int64(member(o, key));
}

/* Returns the number; 0 for a negative one. */
static inline uint64_t member_size(json_object *o, const char *key) {
        return json_object_get_uint64(member(o, key));
}

static inline size_t json_length(json_object *array) {
        return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

static inline json_object *json_at(json_object *array, size_t i) {
        return i < json_length(array) ? json_object_array_get_idx(array, i) : NULL;
}

static inline size_t member_length(json_object *o, const char *key) {
        return json_length(member(o, key));
}

static inline json_object *member_at(json_object *o, const char *key, size_t i) {
        return json_at(member(o, key), i);
}

/* Returns the first element of the array whose member `key` has this text, or NULL. */
json_object *json_find(json_object *array, const char *key, const char *text);

/*
 * Readers that tell what is wrong. 0; -ENOENT: the object has no such member; -ENODATA: the member is null; -EBADMSG:
 * it has another type; -ERANGE: it is out of range, or an array with too many elements. *ret is unchanged on failure.
 */

/* Reads a text, which stays owned by o. */
int json_read_text(json_object *o, const char *key, const char **ret);
/* Read an integer from 0 to max: that of the member, or the value itself. For a value that is null, json_to_number()
 * returns -EBADMSG. */
int json_read_number(json_object *o, const char *key, uint64_t max, uint64_t *ret);
int json_to_number(json_object *value, uint64_t max, uint64_t *ret);
/* As json_read_number(), into a variable of any integer type that can hold max. */
#define JSON_READ_INTEGER(o, key, max, ret)                                                                            \
        ({                                                                                                             \
                uint64_t _number;                                                                                      \
                int _r = json_read_number(o, key, max, &_number);                                                      \
                if (_r >= 0)                                                                                           \
                        *(ret) = (__typeof__(*(ret))) _number;                                                         \
                _r;                                                                                                    \
        })
int json_read_flag(json_object *o, const char *key, bool *ret);
/* Reads an array of at most max elements, which stays owned by o. */
int json_read_array(json_object *o, const char *key, size_t max, json_object **ret);
