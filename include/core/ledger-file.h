/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One allocation as the text of its file. Private to this program; only what sysfs cannot tell is kept. Pure:
 * host/store.h has the files. */

#include "core/allocation.h"

/* Version of the ledger file format. A file of another version is not ours to touch. */
#define LEDGER_FILE_VERSION 1
#define LEDGER_FILE_MAX     (256U * 1024U)

/* The text of its file. Caller frees; NULL when out of memory. */
char *ledger_file_format(const Allocation *a);

typedef enum LedgerFileResult {
        LEDGER_FILE_OK,
        LEDGER_FILE_BROKEN,          /* not JSON, truncated, or a member missing or out of range */
        LEDGER_FILE_UNKNOWN_VERSION, /* written by a newer program */
} LedgerFileResult;
/* text need not be NUL-terminated. *ret is set for LEDGER_FILE_OK; else *ret_message (caller frees) says what is wrong.
 */
LedgerFileResult ledger_file_parse(const char *text, size_t size, Allocation **ret, char **ret_message);
