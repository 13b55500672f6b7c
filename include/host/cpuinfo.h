/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Facts about the processors that are the same for all of them, physical address bits, vendor and architecture, and the
 * version of Linux. */

#include "model/inventory.h"
#include "util/sysfs.h"

#define CPUINFO_ARCHITECTURE "proc/sys/kernel/arch"
#define CPUINFO_KERNEL       "proc/sys/kernel/osrelease"
/* Prefixes of the lines of proc/cpuinfo that this module reads; NULL ends the list. */
extern const char *const cpuinfo_keys[];

/* Sets phys_bits, amd, architecture and kernel, to 0, false and "" when the kernel does not report them. */
void cpuinfo_scan(const Sysfs *fs, Inventory *inv);
