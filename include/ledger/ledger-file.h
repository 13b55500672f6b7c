/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One allocation as the text of its file. Private to this program; only what sysfs cannot tell is kept. Pure:
 * host/store.h has the files. */

#include "ledger/allocation.h"

/*
 * Version of the ledger file format. A daemon that does not know the version of a file is read-only. The version goes
 * up with every member that an older daemon must not ignore: it would release the allocation wrongly, or give away what
 * the allocation has. A member that only informs needs no new version.
 *
 * 1: devices, CPUs, memory. 2: attributes and baseline of VFs, variant drivers, identities, shared memory, topology;
 * early daemons wrote them in files of version 1 too, so version 1 is read like version 2.
 */
#define LEDGER_FILE_VERSION 2
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
