/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The files of claims: its record below the directory of this program, the metadata of its requests beside it, and a
 * CDI document. Which claims have devices is in the ledger of the daemon, not here: files without an allocation are
 * removed, and missing ones are made again of the record.
 */

#include <json-c/json.h>
#include <stdbool.h>

typedef struct ClaimFiles {
        char *directory; /* KUBELET/plugins/passthroughd.org */
        char *cdi;       /* of CDI documents */
} ClaimFiles;

/* Makes the directories. 0 or a negative errno, logged. */
int files_prepare(const ClaimFiles *f);

/* Writes the files, the record first. 0 or a negative errno; -ENOENT: a device or its IOMMU group is not there. */
int files_write(const ClaimFiles *f, json_object *record, json_object *document);
/* -ENOENT: there is none. */
int files_read_record(const ClaimFiles *f, const char *uid, json_object **ret);
bool files_have_cdi(const ClaimFiles *f, const char *uid);
/* Removes the files, the record last. None is not an error. */
int files_remove(const ClaimFiles *f, const char *uid);
/* The UIDs of all records, sorted; free_names(). */
int files_list(const ClaimFiles *f, char ***ret, size_t *ret_n);
