/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The kernel's list of modules, for the VFIO variant drivers in it. */

#include "model/inventory.h"
#include "util/sysfs.h"

/* Where it is, below the root. -ENOENT: the kernel does not say which it is. */
#define MODALIAS_PATH_MAX 320U
int modalias_path(const Sysfs *fs, char ret[static MODALIAS_PATH_MAX]);

/* Adds those whose driver is there. 0 also when there is no list; -ENOMEM. */
int modalias_scan(const Sysfs *fs, Inventory *inv);
