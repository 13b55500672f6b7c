/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A region: memory that guests of one owner share (libvirt's <shmem>, QEMU's ivshmem). Each allocation that uses a
 * region has a copy of its properties; the ledger knows all users of a region.
 */

#include "model/refusal.h"

#define REGION_NAME_MAX        63U
#define REGION_SIZE_MIN        (1ULL << 20) /* libvirt's minimum */
#define REGION_SIZE_MAX        (64ULL << 30)
#define ALLOCATION_REGIONS_MAX 4U

/* Prefix of the names of a region: of its file, or of the link to the file, in /dev/shm; and in libvirt's <shmem>. */
#define REGION_FILE_PREFIX "passthroughd-"
#define REGION_FILE_MAX    (sizeof(REGION_FILE_PREFIX) + REGION_NAME_MAX)

typedef struct Region {
        char name[REGION_NAME_MAX + 1];
        uint64_t size;      /* bytes */
        uint64_t page_size; /* bytes of a hugepage; 0: ordinary pages */
        int node;           /* host NUMA node of its memory; -1: not chosen yet */
} Region;

const char *region_file(const Region *r, char buf[static REGION_FILE_MAX]);

/*
 * Returns the socket path of the region's ivshmem server. pattern: the value of SharedMemoryServer=, which contains %n.
 * The caller frees; NULL when out of memory.
 */
char *region_server(const Region *r, const char *pattern);

/* Sets the region's name. VERDICT_INVALID_REQUEST unless allocation_name_is_valid() accepts it. */
Verdict region_name(Region *r, const char *name, Refusal *ret);
/* Checks the size and the page size of the region. VERDICT_NONE or VERDICT_INVALID_REQUEST. */
Verdict region_check(const Region *r, Refusal *ret);

/* Returns true when one of the n regions has the name. */
bool region_is_among(const Region *regions, size_t n, const char *name);
