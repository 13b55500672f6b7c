/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads the VFIO variant drivers (such as mlx5_vfio_pci) from the modules.alias file of the running kernel. */

#include "model/inventory.h"
#include "util/sysfs.h"

/* The path of modules.alias, relative to the root. -ENOENT: the kernel release cannot be read. */
#define MODALIAS_PATH_MAX 320U
int modalias_path(const Sysfs *fs, char ret[static MODALIAS_PATH_MAX]);

/* Adds the variant drivers that are registered with the PCI bus. Returns 0, also when modules.alias cannot be read, or
 * -ENOMEM. */
int modalias_scan(const Sysfs *fs, Inventory *inv);
