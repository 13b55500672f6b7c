/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The names of what is below a PCI function: block devices that are no partition, namespaces of NVMe controllers, and
 * network interfaces at any depth, as of scalable functions (auxiliary bus), of modems, and on USB, SDIO, FireWire or
 * Thunderbolt. */

#include "model/inventory.h"
#include "util/sysfs.h"

/*
 * Appends the disks of each storage controller, and the interfaces below all devices but VFs and GPUs, to
 * kernel_names, which may have them already. devices are ascending by address. Reads nothing when no device is of such
 * a kind. Returns 0 or -ENOMEM.
 */
int subdevices_append_names(const Sysfs *fs, PciDevice *devices, size_t n);
