/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Whether the kernel suspends a device that is not used (kernel Documentation/ABI/testing/sysfs-devices-power, and
 * sysfs-bus-pci for d3cold_allowed). All return 1 when they changed something, 0 when nothing had to change or the
 * kernel has no such file, or a negative errno.
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/* value: "on" or "auto". A write of "on" resumes the device. */
int power_set_control(const Sysfs *fs, PciAddress address, const char *value);
/* value: "0" or "1". */
int power_set_d3cold(const Sysfs *fs, PciAddress address, const char *value);
