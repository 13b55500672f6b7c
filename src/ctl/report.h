/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* How failure is told: a sentence on stderr, or with --json one document on stdout. */

#include "options.h"

/* error: a D-Bus error name, for --json; NULL: one that says nothing. Returns EXIT_FAILURE. */
int report_failure(const Args *args, const char *error, const char *format, ...) _printf_(3, 4);

/* For what only this program can get wrong: the sentence is "WHAT: strerror". Returns error, which is a negative errno.
 */
int report_errno(const Args *args, int error, const char *what);

/* A command line that makes no sense; always on stderr, with where to look. Returns EXIT_USAGE. */
int report_usage(const Args *args, const char *format, ...) _printf_(2, 3);
