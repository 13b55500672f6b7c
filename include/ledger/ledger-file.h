/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ledger file: one allocation as text. The format is private to this program and holds only what sysfs cannot tell.
 * Pure: host/store.h reads and writes the files.
 */

#include "ledger/allocation.h"

/*
 * Version of the ledger file format. A daemon that reads a file of an unknown version becomes read-only. A new member
 * needs a new version: an older daemon that ignores it would leave it out when it writes the file, release the
 * allocation wrongly or allocate its hardware again.
 *
 * 1: devices, CPUs, memory. 2: attributes and baseline of VFs, variant drivers, identities, shared memory, topology.
 * Early daemons wrote these in files of version 1 too, so version 1 is read like version 2. 3: slots of services,
 * vGPUs and mediated devices on VFs, tags, tokens, consumers, leases, NVLink partitions, phases of devices; 0.3 wrote
 * most of these in files of version 2. 4: addresses with an instance, for mediated devices on a GPU without VFs.
 * 5: what a release restores of power management, persistence mode and reset methods, and the node that gives a cell
 * its memory, which 0.3 would drop. An allocation is written with the oldest version that has all that it has, which
 * older daemons can read.
 *
 * The place of a device in a running guest ("guest") needs no version: libvirt tells it again, and an older daemon that
 * leaves it out does the same with the hardware. Nor does the count of fatal errors of a device ("fatal_errors"): a
 * release without it checks only that the device answers, as those of older daemons do.
 */
#define LEDGER_FILE_VERSION 5
#define LEDGER_FILE_MAX     (256U * 1024U)

/* Formats the allocation: the whole text or, when out of memory, NULL. The caller frees. */
char *ledger_file_format(const Allocation *a);

typedef enum LedgerFileResult {
        LEDGER_FILE_OK,
        LEDGER_FILE_BROKEN,          /* not JSON, truncated, or a member is missing or out of range */
        LEDGER_FILE_UNKNOWN_VERSION, /* written by a newer program */
} LedgerFileResult;
/*
 * text need not be NUL-terminated. LEDGER_FILE_OK sets *ret. Otherwise *ret_message says what is wrong; the caller
 * frees it.
 */
LedgerFileResult ledger_file_parse(const char *text, size_t size, Allocation **ret, char **ret_message);
