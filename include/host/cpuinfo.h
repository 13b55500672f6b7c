/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads facts that hold for all processors (physical address bits, vendor, architecture), the version of Linux, and
 * whether the host can run confidential guests. */

#include "model/inventory.h"
#include "util/sysfs.h"

#define CPUINFO_ARCHITECTURE "proc/sys/kernel/arch"
#define CPUINFO_KERNEL       "proc/sys/kernel/osrelease"
/* Prefixes of the lines of proc/cpuinfo that this module needs, for recordings. NULL ends the list. */
extern const char *const cpuinfo_keys[];

/* Sets phys_bits, amd, architecture, kernel and confidential of inv, except confidential.passthrough. A fact that the
 * kernel does not report is 0, false or "". */
void cpuinfo_scan(const Sysfs *fs, Inventory *inv);
