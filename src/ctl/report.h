/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reports failures: as a sentence on stderr, or with --json as a document on stdout. If args->problem is set,
 * report_failure() and report_errno() only store the sentence there, and free the sentence stored before. */

#include "options.h"

/* Reports a failure. error: the D-Bus error name for --json; NULL: SD_BUS_ERROR_FAILED. Returns EXIT_FAILURE. */
int report_failure(const Args *args, const char *error, const char *format, ...) _printf_(3, 4);

/* Reports "WHAT: STRERROR". error: a negative errno. Returns `error`. */
int report_errno(const Args *args, int error, const char *what);

/* Reports a wrong command line, with a hint to --help. Always writes to stderr. Returns EXIT_USAGE. */
int report_usage(const Args *args, const char *format, ...) _printf_(2, 3);
