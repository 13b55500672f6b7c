/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Binds devices to drivers by driver_override (kernel Documentation/ABI/testing/sysfs-bus-pci; domain.md B1 to B10).
 * Each write is verified by reading back. Any call can sleep in the kernel for ever, so only the child of a job may
 * call these functions. All return 1 when they changed something, 0 when nothing had to change, or a negative errno.
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/* Sets the override, or clears it when driver is NULL. -EIO: the kernel accepted the write but shows another value. */
int driver_set_override(const Sysfs *fs, PciAddress address, const char *driver);

/* Unbinds the device from driver. Returns 0 when the device has no driver or is bound to instead (may be NULL). Writes
 * nothing and returns -EBUSY when the device is bound to any other driver, -ENOTEMPTY when it is a PF with VFs. */
int driver_unbind(const Sysfs *fs, PciAddress address, const char *driver, const char *instead);

/*
 * Binds the device to exactly this driver, whatever IDs the driver lists, and restores the former override. Keeps a
 * physical function on a VFIO driver from suspending. -EBUSY: the
 * device is bound to another driver. -ENODEV: the kernel probed but the device is not bound to driver (the module is
 * not loaded, or the driver refused).
 */
int driver_bind(const Sysfs *fs, PciAddress address, const char *driver);
