/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads the serial number of a PCI Express card from config space. This takes several register reads per device, so
 * the daemon does not read the serial numbers of all devices of the machine.
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/* Sets *ret to 0 when the device has no serial number. Returns 0; -ENODEV when the device is gone; otherwise a negative
 * errno when config space cannot be read, for example without CAP_SYS_ADMIN. */
int serial_read(const Sysfs *fs, PciAddress address, uint64_t *ret);
