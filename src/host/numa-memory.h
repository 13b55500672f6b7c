/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads the memory and the hugepages of a NUMA node. All sizes are in bytes. */

#include "model/inventory.h"
#include "util/sysfs.h"

#define NUMA_NODES_DIR "sys/devices/system/node"

/*
 * Sets memory, available and available_known of node. dir is the directory that has the file meminfo, relative to the
 * root: the node's directory, or "proc" on a kernel without NUMA. An unreadable file becomes a note in inv. Returns 0
 * or -ENOMEM.
 */
int numa_read_memory(const Sysfs *fs, Inventory *inv, const char *dir, NumaNode *node);
/* Sets pages of node from dir, which has a directory such as hugepages-2048kB for each page size, or is missing. An
 * unreadable file becomes a note in inv. 0 or -ENOMEM. */
int numa_read_pools(const Sysfs *fs, Inventory *inv, const char *dir, NumaNode *node);
/* Sets memory, available, available_known and pages of node, which has no pages yet. `before`, the node as it was read
 * before, has the page sizes: only a reboot can change these. An amount that cannot be read is 0. */
void numa_refresh_memory(const Sysfs *fs, const NumaNode *before, NumaNode *node);
