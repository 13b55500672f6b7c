/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* POOL=COUNT and SLOT:ATTRIBUTES arguments and the options of plan and allocate, as the a{sv} the daemon takes. The
 * daemon judges; here only types are. */

#include "client.h"

typedef struct PoolCount {
        char *pool;
        uint32_t count;
} PoolCount;

typedef struct SlotAttributes {
        char *slot;
        char *attributes; /* behind the colon, of the argument */
} SlotAttributes;

typedef struct SharedMemory {
        char *name;
        uint64_t size, page_size; /* 0: ordinary pages */
} SharedMemory;

typedef struct PoolCounts {
        PoolCount *items;
        size_t n;
        SlotAttributes *slots;
        size_t n_slots;
        SharedMemory *regions; /* of --shared-memory */
        size_t n_regions;
} PoolCounts;

/* Reads the operands from first on. 0, EXIT_USAGE (reported) or a negative errno (reported). */
int pool_counts_parse(const Args *args, size_t first, PoolCounts *ret);
void pool_counts_done(PoolCounts *p);
#define _cleanup_pool_counts_ _cleanup_(pool_counts_done)

/* Appends the name, where there is one, and the request to a call. Negative errno, reported. */
int request_append(const Args *args, const char *name, const PoolCounts *pools, sd_bus_message *call);
