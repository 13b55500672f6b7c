/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* NUMA nodes with memory and hugepages, online CPUs with their cores. Not by libnuma, which asks this kernel. */

#include "model/inventory.h"
#include "util/sysfs.h"

/* Keys of the lines of meminfo that are read, each with its colon; NULL ends the list. */
extern const char *const numa_meminfo_keys[];

/*
 * The online CPUs, and the online NUMA nodes, by the kernel's list. Recordings of other tools may lack it (1): then
 * what is present counts, which are the directories of CPUs without those that say they are offline, or the CPUs of the
 * nodes; and the directories of nodes. Negative errno: the list cannot be used, or nothing is known (-ENOENT).
 */
int numa_online_cpus(const Sysfs *fs, CpuSet *ret);
int numa_online_nodes(const Sysfs *fs, CpuSet *ret);

/* Fills nodes and cpus of a fresh inventory. What cannot be read becomes a note. Fails only for want of memory. */
int numa_scan(const Sysfs *fs, Inventory *inv);

/*
 * Reads online CPUs, memory and hugepages of the nodes of an inventory again: a dozen small files on a machine with two
 * nodes; topology only when CPUs came or went. What cannot be read counts as not there. -ESTALE when there are other
 * nodes than before, -ENOMEM; then nothing changed.
 */
int numa_refresh(const Sysfs *fs, Inventory *inv);
