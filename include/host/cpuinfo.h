/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the kernel tells of the processors as such, all alike. */

#include "core/inventory.h"
#include "util/sysfs.h"

/* Sets phys_bits; leaves it alone where the kernel does not say. */
void cpuinfo_scan(const Sysfs *fs, Inventory *inv);
