/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The names of disks: block devices that are no partition, and namespaces of NVMe controllers. */

#include "model/inventory.h"
#include "util/sysfs.h"

/*
 * Appends the disks of each storage controller to its kernel_names, which may have them already. devices are ascending
 * by address. Reads nothing when no device is a storage controller. Returns 0 or -ENOMEM.
 */
int disks_append_names(const Sysfs *fs, PciDevice *devices, size_t n);
