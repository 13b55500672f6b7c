/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ledger file: one allocation as text. The format is private to this program, and has what sysfs cannot tell, or
 * cannot tell while a device is missing. Pure: host/store.h reads and writes the files.
 */

#include "ledger/allocation.h"

/*
 * Version of the ledger file format. A daemon that reads a file of an unknown version becomes read-only. A new member
 * needs a new version: an older daemon ignores the member and leaves it out when it writes the file again. It might
 * then release the allocation wrongly, or allocate its hardware a second time.
 *
 * 1: devices, CPUs, memory. 2: attributes and baseline of VFs, variant drivers, identities, shared memory, topology.
 * Early daemons wrote these in files of version 1 too, so version 1 is read like version 2. 3: slots of services,
 * vGPUs and mediated devices on VFs, tags, tokens, consumers, leases, NVLink partitions, phases of devices; 0.3 wrote
 * most of these in files of version 2. 4: addresses with an instance, for mediated devices on a GPU without VFs.
 * 5: power management, persistence mode and reset methods before the allocation, which a release restores; the node of
 * a cell's memory; the kind of confidential guest. An allocation is written in the oldest version, from 2 on, that
 * has all its members, so that older daemons can read it.
 *
 * Two members need no new version, because an older daemon that drops them treats the hardware in the same way. "guest"
 * is the place of a device in a running guest; libvirt reports it again. "fatal_errors" counts the fatal errors of a
 * device; a release without it checks only that the device answers.
 */
#define LEDGER_FILE_VERSION 5
#define LEDGER_FILE_MAX     (256U * 1024U)

/* Formats the allocation. NULL when out of memory. The caller frees. */
char *ledger_file_format(const Allocation *a);

typedef enum LedgerFileResult {
        LEDGER_FILE_OK,
        LEDGER_FILE_BROKEN,          /* too large, not JSON, cut off, or a member is missing or has a wrong value */
        LEDGER_FILE_UNKNOWN_VERSION, /* of a version that this program does not know, such as that of a newer program */
} LedgerFileResult;
/* Parses the text of a file, which need not end with a NUL. LEDGER_FILE_OK sets *ret. Otherwise *ret_message, which
 * must be NULL before, says what is wrong, and the caller frees it; out of memory, it may stay NULL. A lack of memory
 * counts as LEDGER_FILE_BROKEN. */
LedgerFileResult ledger_file_parse(const char *text, size_t size, Allocation **ret, char **ret_message);
