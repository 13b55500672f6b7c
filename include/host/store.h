/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ledger on disk: STATE/allocations/NAME.json, one file per allocation, replaced by rename, so that one rename
 * commits a whole claim; STATE/quarantine/ADDRESS.json, the same for what is left of one; STATE/generation, a number no
 * generation handed out so far exceeds; and STATE/stopped-services, while there are any. Formats are private
 * (ledger/ledger-file.h).
 */

#include "ledger/ledger.h"

typedef struct Store Store;

/* Opens (and makes) the directories below path, locks them, and removes temporaries of interrupted writes. -EBUSY:
 * another process has the lock. */
int store_open(const char *path, Store **ret);
Store *store_close(Store *s);
DEFINE_CLEANUP(Store *, store_close)

/*
 * Enters every allocation file into l. *ret_services: the text that store_save_services() was given, NULL for none and
 * where other users can write to the directory; the caller frees it. The whole ledger becomes read-only when a file
 * cannot be read, is broken, newer than this program, misnamed or at odds with another, or when other users can write
 * to a directory: l->read_only says which and why. An unreadable file may promise a device that would be given away.
 * Nothing on disk is changed. From then on l->unwritable says why the last write failed, as long as it did; l has to
 * live as long as the store.
 */
int store_load(Store *s, Ledger *l, char **ret_services);

/* Durable when it returns 0. */
int store_save(Store *s, const Allocation *a);
int store_remove(Store *s, const char *name);

/* The same for a device in quarantine. */
int store_save_quarantined(Store *s, const Allocation *a);
int store_remove_quarantined(Store *s, PciAddress device);

/* Services that are to be started again, each a line; NULL none. */
int store_save_services(Store *s, const char *text);

/* A generation never handed out before. Writes once in GENERATION_BLOCK calls: a restart skips the rest of a block. */
#define GENERATION_BLOCK 1024U
int store_next_generation(Store *s, uint64_t *ret);
