/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* JSON documents that this program makes itself, for --json. */

#include <json-c/json.h>

#include "options.h"

/* Prints a document of our own, one line, and frees it. */
int document_print(const Args *args, json_object *o);
/* The answer of a verb that only succeeds: with --json {"result":"done"}, else nothing. */
int document_print_done(const Args *args);
/* Adds a string; false when out of memory. NULL becomes null. */
bool document_add(json_object *o, const char *key, const char *value);
