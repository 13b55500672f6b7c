/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* NUMA nodes with memory and hugepages, online CPUs with their cores. Not by libnuma, which asks this kernel. */

#include "core/inventory.h"
#include "util/sysfs.h"

/* Fills nodes and cpus of a fresh inventory. What cannot be read becomes a note. Fails only for want of memory. */
int numa_scan(const Sysfs *fs, Inventory *inv);
