/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* JSON documents that passthroughctl itself makes for --json. */

#include <json-c/json.h>

#include "options.h"

/* Prints the document as one line and frees it. 0 or -ENOMEM, reported. */
int document_print(const Args *args, json_object *o);
/* Prints {"result":"done"} with --json, else nothing: for verbs whose success has no other output. Returns 0. */
int document_print_done(const Args *args);
/* Formats a time in microseconds since the epoch: in UTC for a document, "2026-03-01T12:00:00.123456Z"; with local, for
 * a line of text, "2026-03-01 13:00:00.123". */
#define DOCUMENT_TIME_MAX 64
void document_time(uint64_t usec, bool local, char buf[static DOCUMENT_TIME_MAX]);
/* Adds a string member; value NULL becomes null. False when out of memory. */
bool document_add(json_object *o, const char *key, const char *value);
