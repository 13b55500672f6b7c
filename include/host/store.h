/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ledger on disk: STATE/allocations/NAME.json, one file per allocation, replaced by rename, so that one rename
 * commits a whole claim; STATE/quarantine/ADDRESS.json, the same for what is left of one; STATE/generation, a number no
 * generation handed out so far exceeds; and STATE/stopped-services, while there are any. Formats are private
 * (core/ledger-file.h).
 */

#include "core/ledger.h"

typedef struct Store Store;

/* Opens (and makes) the directories below path, and locks them: -EBUSY when another process has them. */
int store_open(const char *path, Store **ret);
Store *store_close(Store *s);
DEFINE_CLEANUP(Store *, store_close)

/*
 * Enters every allocation file into l. A file that is broken, newer than this program, misnamed or at odds with
 * another, or a broken generation, makes the whole ledger read-only (l->read_only says which file and why), for it may
 * promise what we would give away; nothing on disk is changed.
 */
int store_load(Store *s, Ledger *l);

/* Durable when it returns 0. */
int store_save(Store *s, const Allocation *a);
int store_remove(Store *s, const char *name);

/* The same for a device in quarantine. */
int store_save_quarantined(Store *s, const Allocation *a);
int store_remove_quarantined(Store *s, PciAddress device);

/* Services that are to be started again, each a line; NULL none. */
int store_load_services(Store *s, char **ret);
int store_save_services(Store *s, const char *text);

/* A generation never handed out before. Writes once in GENERATION_BLOCK calls: a restart skips the rest of a block. */
#define GENERATION_BLOCK 1024U
int store_next_generation(Store *s, uint64_t *ret);
