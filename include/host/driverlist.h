/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Lists the PCI drivers that are loaded or built in, and which of them are VFIO variant drivers. */

#include "model/inventory.h"
#include "util/sysfs.h"

/* Fills drivers and variants of inv. drivers_known becomes false when the drivers cannot be listed, or when sysfs has
 * no drivers_probe: a recording without that file may lack drivers, too. Returns 0 or -ENOMEM. */
int driver_list_scan(const Sysfs *fs, Inventory *inv);

/* Reads the driver names again, and the variants only when the names changed. Returns 1 when the names changed, 0 when
 * they did not, or -ENOMEM, which leaves inv unchanged. */
int driver_list_refresh(const Sysfs *fs, Inventory *inv);

/* Formats the path of modules.alias of the running kernel, relative to the root. Returns 0, or -ENOENT if the kernel
 * release cannot be read. */
#define MODULES_ALIAS_MAX 320U
int driver_list_modules_alias(const Sysfs *fs, char ret[static MODULES_ALIAS_MAX]);
