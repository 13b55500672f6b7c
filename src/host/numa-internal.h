/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The memory side of host/numa.h. Sizes in bytes. */

#include "model/inventory.h"
#include "util/sysfs.h"

#define NUMA_NODES_DIR "sys/devices/system/node"

/*
 * Sets memory and available. dir: of the node, or that of the whole machine on a kernel without NUMA; relative to the
 * root. 0 also when it cannot be read: then there is a note.
 */
int numa_read_memory(const Sysfs *fs, Inventory *inv, const char *dir, NumaNode *node);
/* dir: with hugepages-2048kB and the like in it, or absent. */
int numa_read_pools(const Sysfs *fs, Inventory *inv, const char *dir, NumaNode *node);
/* The node's memory and the pages of its pools anew; page sizes are those of the boot. What cannot be read is 0. */
void numa_refresh_memory(const Sysfs *fs, const NumaNode *before, NumaNode *node);
