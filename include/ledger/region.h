/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Memory that guests of one owner share (libvirt's <shmem>, QEMU's ivshmem). Every allocation that names it has a copy
 * of these facts; who they all are the ledger knows.
 */

#include "model/refusal.h"

#define REGION_NAME_MAX        63U
#define REGION_SIZE_MIN        (1ULL << 20) /* libvirt's */
#define REGION_SIZE_MAX        (64ULL << 30)
#define ALLOCATION_REGIONS_MAX 4U

/* Below /dev/shm it is called so, with its name behind it; also to libvirt. */
#define REGION_FILE_PREFIX "passthroughd-"
#define REGION_FILE_MAX    (sizeof(REGION_FILE_PREFIX) + REGION_NAME_MAX)

typedef struct Region {
        char name[REGION_NAME_MAX + 1];
        uint64_t size;      /* bytes */
        uint64_t page_size; /* of its hugepages; 0: ordinary pages */
        int node;           /* NUMA node its memory is on; -1: to be chosen */
} Region;

const char *region_file(const Region *r, char buf[static REGION_FILE_MAX]);

/* Where its server listens; pattern as SharedMemoryServer= has it. NULL when out of memory. */
char *region_server(const Region *r, const char *pattern);

/* With name, or refuses what cannot be one: it becomes the name of a file. */
Verdict region_name(Region *r, const char *name, Refusal *ret);
/* Whether a guest can have it: its size and its pages. */
Verdict region_check(const Region *r, Refusal *ret);

/* Another part of the same list has that name. */
bool region_is_among(const Region *regions, size_t n, const char *name);
