/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* JSON as text at the end of a json-c buffer, without an object for each value. For arrays of thousands of objects;
 * json-c's objects are simpler for all else. Shared by json*.c. */

#include <json-c/json.h>
#include <json-c/printbuf.h>

#include "model/pciaddr.h"

/* failed: out of memory; the text is not complete. */
typedef struct JsonText {
        struct printbuf *out;
        bool failed;
} JsonText;

void json_text_put(JsonText *t, const char *text, size_t n);
#define json_text_literal(t, literal) json_text_put((t), literal, sizeof(literal) - 1)

/* The key of the next member of an object, a string literal. The first member's key has no comma before it. */
#define json_text_first_key(t, key) json_text_literal((t), "{\"" key "\":")
#define json_text_key(t, key)       json_text_literal((t), ",\"" key "\":")

/* A value. NULL and negative numbers are null; json_text_object() takes o over. */
void json_text_string(JsonText *t, const char *s);
void json_text_words(JsonText *t, const char *words); /* "flr bus" as ["flr","bus"] */
void json_text_address(JsonText *t, PciAddress a);
void json_text_hex(JsonText *t, unsigned value, unsigned digits);
void json_text_number(JsonText *t, uint64_t n);
void json_text_known(JsonText *t, int n);
void json_text_object(JsonText *t, json_object *o);
