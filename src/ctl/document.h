/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The documents of --json that passthroughctl makes itself, not the daemon. */

#include <json-c/json.h>

#include "options.h"

/* Prints the document as one line, and frees it. Returns 0 or -ENOMEM, reported. */
int document_print(const Args *args, json_object *o);
/* Prints {"result":"done"} with --json, otherwise nothing. For verbs that have nothing to print on success. Returns
 * 0. */
int document_print_done(const Args *args);
/* Formats a time in microseconds since 1970. local: local time for a line of text, "2026-03-01 13:00:00.123"; otherwise
 * UTC for a document, "2026-03-01T12:00:00.123456Z". */
#define DOCUMENT_TIME_MAX 64
void document_time(uint64_t usec, bool local, char buf[static DOCUMENT_TIME_MAX]);
/* Adds a string to the object; value NULL becomes null. Returns false when out of memory. */
bool document_add(json_object *o, const char *key, const char *value);
