/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Model values as JSON, for D-Bus. Constructors return NULL when out of memory, which json-c writes as null. The caller
 * owns the object (json_object_put()). Pure.
 */

#include <json-c/json.h>

#include "model/cpuset.h"
#include "model/pciaddr.h"

static inline void cleanup_json(json_object **o) {
        (void) json_object_put(*o);
}
#define _cleanup_json_ _cleanup_(cleanup_json)

json_object *json_string_or_null(const char *s);
/* Returns the number, or null for a negative one, which means unknown. */
json_object *json_known_or_null(int n);
json_object *json_address(PciAddress a);
json_object *json_cpus(const CpuSet *set);
json_object *json_hex(unsigned value, int digits);

/* Formats o as one line without a newline, as model/json-text.h says. The caller frees; NULL when out of memory. */
char *json_text(json_object *o);
