/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Turns the POOL=COUNT and SLOT:ATTRIBUTES operands and the options of a request into the a{sv} of Plan and Allocate.
 * Only types are checked here; the daemon checks the values. */

#include "client.h"

typedef struct PoolCount {
        char *pool;
        uint32_t count;
} PoolCount;

typedef struct SlotAttributes {
        char *slot;
        char *attributes; /* the argument after its colon */
} SlotAttributes;

typedef struct SharedMemory {
        char *name;
        uint64_t size, page_size; /* bytes; page_size 0: ordinary pages */
} SharedMemory;

typedef struct ChosenDevice {
        char *pool, *address;
} ChosenDevice;

typedef struct PoolCounts {
        PoolCount *items;
        size_t n;
        SlotAttributes *slots;
        size_t n_slots;
        SharedMemory *regions; /* from --shared-memory */
        size_t n_regions;
        ChosenDevice *at; /* from --at */
        size_t n_at;
        uint32_t *host_nodes; /* from --host-nodes */
        size_t n_host_nodes;
} PoolCounts;

/* Parses --shared-memory, --at, --host-nodes and the operands, starting with operand number first. 0, EXIT_USAGE or a
 * negative errno; both errors are reported. The caller frees *ret with pool_counts_done(). */
int pool_counts_parse(const Args *args, size_t first, PoolCounts *ret);
void pool_counts_done(PoolCounts *p);
#define _cleanup_pool_counts_ _cleanup_(pool_counts_done)

/* Appends the name, unless it is NULL, and the request to a call. 0 or a negative errno, reported. */
int request_append(const Args *args, const char *name, const PoolCounts *pools, sd_bus_message *call);
