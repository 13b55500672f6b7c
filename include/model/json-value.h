/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Model values as JSON. Constructors return NULL when out of memory; in json-c, NULL is the value null. The caller owns
 * the object (json_object_put()). Pure.
 */

#include "model/cpuset.h"
#include "model/json-parse.h"
#include "model/pciaddr.h"

json_object *json_string_or_null(const char *s);
/* Returns the number as JSON; null for a negative number, which means unknown. */
json_object *json_known_or_null(int n);
json_object *json_address(PciAddress a);
json_object *json_cpus(const CpuSet *set);
json_object *json_hex(unsigned value, int digits);

/* Add a value, and take ownership of it. Return false when out of memory, or if value is NULL. */
bool member_add(json_object *o, const char *key, json_object *value);
bool json_append(json_object *array, json_object *value);

/* Formats and parses a JSON text in which ' stands for ", as in json_format("{'name': '%s'}", name). Arguments are not
 * escaped, so they must be names or numbers. The caller owns the value; NULL when out of memory, or if the text is not
 * valid. */
json_object *json_format(const char *format, ...) _printf_(1, 2);

/* Formats o as one line without a newline, as model/json-text.h says. The caller frees; NULL when out of memory. */
char *json_text(json_object *o);
