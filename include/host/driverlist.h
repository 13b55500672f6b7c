/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The PCI drivers that the kernel has, and the VFIO variant drivers among them: a module that is not loaded has none.
 */

#include "model/inventory.h"
#include "util/sysfs.h"

/* Fills drivers and variants. A recording of sysfs without drivers_probe may lack drivers: there they stay unknown.
 * Fails only for want of memory. */
int driver_list_scan(const Sysfs *fs, Inventory *inv);

/* Reads the names again, and the variants only where the names changed: 1 if they did. On failure nothing changed. */
int driver_list_refresh(const Sysfs *fs, Inventory *inv);
