/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Error messages: a sentence on stderr, or with --json a document on stdout. */

#include "options.h"

/* Reports a failure. error: a D-Bus error name, for --json; NULL: SD_BUS_ERROR_FAILED. Returns EXIT_FAILURE. */
int report_failure(const Args *args, const char *error, const char *format, ...) _printf_(3, 4);

/* Reports the sentence "WHAT: STRERROR". error: a negative errno, which is also returned. */
int report_errno(const Args *args, int error, const char *what);

/* Reports a wrong command line, on stderr even with --json, and refers to --help. Returns EXIT_USAGE. */
int report_usage(const Args *args, const char *format, ...) _printf_(2, 3);
