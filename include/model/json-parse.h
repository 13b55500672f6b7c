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
#include <stddef.h>

#define JSON_DEPTH_MAX  32U
#define JSON_NUMBER_MAX 64U

/* The units of memory, of about 100 bytes, that json-c allocates for a value and, in an object, for its key and table
 * entry. */
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
