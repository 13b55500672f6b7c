/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* JSON of Kubernetes. Pure. */

#include "agent/member.h"
#include "model/json-value.h"
#include "util/strings.h"

/* The object or array of a text in which ' stands for ", as in json_format("{'name': '%s'}", name). The values need no
 * escapes: they are names and numbers. The caller owns it; NULL when out of memory. */
json_object *json_format(const char *format, ...) _printf_(1, 2);
/* Takes ownership of value. False when out of memory, also if value is NULL. */
bool json_append(json_object *array, json_object *value);
/* The bytes of the whole characters of a text that fit into max. */
size_t text_prefix(const char *text, size_t max);
/* 0 for what is no array. */
size_t json_length(json_object *array);
