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

json_object *json_string_or_null(const char *s);
/* Negative is unknown. */
json_object *json_known_or_null(int n);
json_object *json_address(PciAddress a);
json_object *json_cpus(const CpuSet *set);
json_object *json_hex(unsigned value, int digits);

/* The text, one line without a newline. o owns it, until o is made into text again; NULL when out of memory. */
const char *json_line(json_object *o);
/* The same as a copy, or indented. Caller frees; NULL when out of memory. */
char *json_text(json_object *o, bool pretty);
