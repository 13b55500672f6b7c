/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ledger on disk. The file formats are private (ledger/ledger-file.h). The files:
 * - STATE/allocations/NAME.json: one file per allocation, which rename() or linkat() commits as a whole
 * - STATE/quarantine/ADDRESS.json: one file per quarantined device
 * - STATE/generation: a number that is at least the highest generation ever assigned
 * - STATE/released: name and generation of the last RELEASED_MAX allocations that were released
 * - STATE/nvlink-modules: serial numbers of GPUs and their NVLink module ids
 * - STATE/stopped-services: the services that are to be started again; missing when there are none
 */

#include "ledger/ledger.h"

typedef struct Store Store;

/* Opens the state directory and its subdirectories, creates those that are missing, locks the state directory, and
 * removes temporary files of interrupted writes. Waits up to two seconds for the lock. -EBUSY: another process holds
 * it. A subdirectory that cannot be opened is no error here, but makes store_load() set the ledger to read-only. */
int store_open(const char *path, Store **ret);
Store *store_close(Store *s);
DEFINE_CLEANUP(Store *, store_close)

/*
 * Loads every allocation and quarantine file into l and changes nothing on disk. *ret_services is the last text of
 * store_save_services(). It is NULL when there is no such text, when its file cannot be read, or when another user owns
 * the state directory or can write to it. The caller frees it. Returns 0 or a negative errno; a read-only ledger is no
 * error.
 *
 * The whole ledger becomes read-only when a file except STATE/released and STATE/nvlink-modules cannot be read, is
 * damaged, is newer than this program, has the wrong name or contradicts another file, or when another user owns a
 * directory or can write to it. l->read_only names the file or the directory, and the reason. This is strict because a
 * file that cannot be read may have the allocation of a device, which would then be allocated twice.
 *
 * The store keeps a pointer to l, which must outlive the store. After a failed write l->unwritable holds the reason;
 * the next successful write clears it.
 */
int store_load(Store *s, Ledger *l, char **ret_services);

/* Creates the file for the next store_add() ahead of time, so that the caller of store_add() waits less. A failure only
 * costs that time. */
void store_prepare(Store *s);

/*
 * Write an allocation. Return 0 when the change is on disk (synced), or a negative errno; after a failure the disk has
 * the old or the new content. store_add() is for an allocation without a file.
 */
int store_add(Store *s, const Allocation *a);
int store_save(Store *s, const Allocation *a);
/* For an allocation `a` whose store_add() or store_save() failed: returns true when the file may have the new content
 * all the same: it was read and has this content, or it exists and a read failed with an error such as EIO. A file that
 * is missing, too large or no regular file cannot have the new content. */
bool store_may_have(const Store *s, const Allocation *a);
int store_remove(Store *s, const char *name);

/* As store_save(), for a quarantined device: `a` has only that device. */
int store_save_quarantined(Store *s, const Allocation *a);
int store_remove_quarantined(Store *s, PciAddress device);

/* Records that the allocation was released; call it before the allocation is removed. Returns as store_save(). */
int store_note_released(Store *s, const Allocation *a);
/* Returns true when one of the last RELEASED_MAX released allocations had this name and generation. */
bool store_was_released(const Store *s, const char *name, uint64_t generation);
#define RELEASED_MAX 512U

/* Saves the names of services that must be started again, one per line; NULL: none must. */
int store_save_services(Store *s, const char *text);

/* Returns the text of store_save_modules(), about the NVLink module ids of GPUs. NULL: there is none, or it cannot be
 * read. The caller frees the text. */
char *store_load_modules(const Store *s);
int store_save_modules(Store *s, const char *text);

/* Assigns a generation that was never assigned before. STATE/generation is written once per GENERATION_BLOCK calls; a
 * restart of the daemon skips the rest of the block. */
#define GENERATION_BLOCK 1024U
int store_next_generation(Store *s, uint64_t *ret);
