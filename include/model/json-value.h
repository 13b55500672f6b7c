/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Values of the model as JSON, for the ledger's files and for the bus. Constructors return NULL when out of memory, and
 * json-c writes NULL as null; the caller owns the object (json_object_put()). Pure.
 */

#include <json-c/json.h>

#include "model/cpuset.h"
#include "model/pciaddr.h"

static inline void cleanup_json(json_object **o) {
        (void) json_object_put(*o);
}
#define _cleanup_json_ _cleanup_(cleanup_json)

/* Adds a member whose key is new to o and a string literal: json-c does not look for the key and does not copy it. */
void json_put(json_object *o, const char *key, json_object *value);
json_object *json_string_or_null(const char *s);
/* Negative is unknown. */
json_object *json_known_or_null(int n);
json_object *json_address(PciAddress a);
json_object *json_cpus(const CpuSet *set);
json_object *json_hex(unsigned value, int digits);

/* The text, one line without a newline, or indented. Caller frees; NULL when out of memory. */
char *json_text(json_object *o, bool pretty);
