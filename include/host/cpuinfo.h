/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the kernel tells of the processors as such, all alike. */

#include "model/inventory.h"
#include "util/sysfs.h"

#define CPUINFO_ARCHITECTURE "proc/sys/kernel/arch"
/* What the lines of proc/cpuinfo begin with that are read; NULL ends the list. */
extern const char *const cpuinfo_keys[];

/* Sets phys_bits and architecture: 0 and "" where the kernel does not say. */
void cpuinfo_scan(const Sysfs *fs, Inventory *inv);
