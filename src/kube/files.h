/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The files of claims: its record below the directory of this program, the metadata of its requests beside it, and a
 * CDI document. Which claims have devices is in the ledger of the daemon, not here: files without an allocation are
 * removed, and missing ones are made again of the record.
 */

#include <json-c/json.h>

/* Directories. */
typedef struct ClaimFiles {
        char *records, *metadata; /* in KUBELET/plugins/passthroughd.org */
        const char *cdi;
} ClaimFiles;

/* Makes the directories. 0 or a negative errno, logged; files_done() in both cases. cdi stays the caller's. */
int files_prepare(ClaimFiles *f, const char *kubelet, const char *cdi);
void files_done(ClaimFiles *f);

/* Writes the files that differ, the record first. The number of files, or a negative errno; -ENOENT: a device or its
 * IOMMU group is not there. */
int files_write(const ClaimFiles *f, json_object *record, json_object *document);
/* -ENOENT: there is none. */
int files_read_record(const ClaimFiles *f, const char *uid, json_object **ret);
/* Removes the files, the record last. None is not an error. */
int files_remove(const ClaimFiles *f, const char *uid);
/* The UIDs of all records, among other names; cleanup_names(). */
int files_list(const ClaimFiles *f, char ***ret, size_t *ret_n);
