/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads NUMA nodes with their memory and hugepages, and online CPUs with their cores. These functions do not use
 * libnuma: it always asks the running kernel, and the root may be a recording of another machine.
 */

#include "model/inventory.h"
#include "util/sysfs.h"

/* Keys of the meminfo lines that this module needs, each with its colon, for recordings. NULL ends the list. */
extern const char *const numa_meminfo_keys[];

/*
 * Read the online CPUs and the online NUMA nodes from the kernel's lists (the files "online"). Recordings made by other
 * tools may lack these files. The functions then return 1 instead of 0 and use the directories: each nodeN directory
 * is an online node, and each cpuN directory an online CPU unless sysfs says that the CPU is offline. Without cpuN
 * directories, the CPUs that the nodes list are online. Negative errno: the list cannot be read or parsed. -ENOENT: no
 * CPU was found, or the kernel has no directory of NUMA nodes.
 */
int numa_online_cpus(const Sysfs *fs, CpuSet *ret);
int numa_online_nodes(const Sysfs *fs, CpuSet *ret);

/* Adds the online nodes to a new inventory, with their ids only. The only error is -ENOMEM. */
int numa_list_nodes(const Sysfs *fs, Inventory *inv);

/* Fills nodes and cpus of a new inventory. An unreadable file becomes a note in the inventory. The only error is
 * -ENOMEM. */
int numa_scan(const Sysfs *fs, Inventory *inv);

/*
 * Updates the online CPUs, the memory and the hugepages of the inventory's nodes. Reads about a dozen small files on a
 * machine with two nodes; the CPU topology is read only when CPUs went online or offline, or when the kernel has no
 * NUMA. An amount that cannot be read is set to 0. Returns 0; -ESTALE when the set of online nodes changed; or -ENOMEM.
 * On failure the inventory is unchanged.
 */
int numa_refresh(const Sysfs *fs, Inventory *inv);
