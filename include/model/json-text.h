/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Appends JSON text to a json-c printbuf. The JSON of all programs of this package, except the output of
 * 'passthroughctl nova-config', is formatted here and is ASCII: other characters become \uHHHH or a surrogate pair of
 * these, and each byte that is not UTF-8 becomes U+FFFD. json-c itself formats only numbers with a fraction, true,
 * false and null. Long arrays of devices are written without a json_object for each value, which is faster. Ledger
 * files are written in this way too, because no member of theirs may be missing for lack of memory. Most other JSON is
 * built from json_objects, which is simpler. Pure.
 */

#include <json-c/json.h>
#include <json-c/printbuf.h>

#include "model/pciaddr.h"

/* A JSON text that is being written. failed: memory ran out, so the text is incomplete. */
typedef struct JsonText {
        struct printbuf *out;
        bool failed;
} JsonText;

/* Begins a text. json_text_finish() ends the text and returns it, or NULL if it is incomplete. The caller frees. */
JsonText json_text_new(void);
char *json_text_finish(JsonText *t);

void json_text_put(JsonText *t, const char *text, size_t n);
#define json_text_literal(t, literal) json_text_put((t), literal, sizeof(literal) - 1)

/* Append the key of a member, a string literal. The first key of an object opens it. */
#define json_text_first_key(t, key) json_text_literal((t), "{\"" key "\":")
#define json_text_key(t, key)       json_text_literal((t), ",\"" key "\":")

/* Append a value. A NULL pointer, and a negative number in json_text_known(), become null; only NULL words become
 * []. json_text_object() takes ownership of o. */
void json_text_string(JsonText *t, const char *s);
void json_text_words(JsonText *t, const char *words); /* "flr bus" becomes ["flr","bus"] */
void json_text_address(JsonText *t, PciAddress a);
void json_text_hex(JsonText *t, unsigned value, unsigned digits);
void json_text_boolean(JsonText *t, bool value);
void json_text_number(JsonText *t, uint64_t n);
void json_text_known(JsonText *t, int n);
void json_text_value(JsonText *t, json_object *o);
void json_text_object(JsonText *t, json_object *o);
/* Append a member: json_text_member(t, "driver", string, dev->driver). The first member of an object opens it. */
#define json_text_first_member(t, key, type, ...) (json_text_first_key((t), key), json_text_##type((t), __VA_ARGS__))
#define json_text_member(t, key, type, ...)       (json_text_key((t), key), json_text_##type((t), __VA_ARGS__))
