/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Controls a device by its files in sysfs. Each write except that of a reset is verified by reading back. Any call can
 * sleep in the kernel for ever, so only a child process may call these functions. Unless noted, the functions return 1
 * after a change, 0 when there was nothing to change, or a negative errno.
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/*
 * Sets whether the kernel suspends an unused device (kernel Documentation/ABI/testing/sysfs-devices-power, and
 * sysfs-bus-pci for d3cold_allowed). Also returns 0 when the kernel has no such file.
 */

/* Sets power/control: "on" (true) resumes the device and keeps it awake; "auto" lets the kernel suspend it. */
int power_set_control(const Sysfs *fs, PciAddress address, bool on);
int power_set_d3cold(const Sysfs *fs, PciAddress address, bool allowed);

/* Binds devices to drivers by driver_override (kernel Documentation/ABI/testing/sysfs-bus-pci). */

/* Sets driver_override to the driver; NULL clears it. -EIO: the kernel accepted the write, but shows another value. */
int driver_set_override(const Sysfs *fs, PciAddress address, const char *driver);

/* Unbinds the device from `driver`. Returns 0 when the device has no driver, or is bound to the driver `instead` (may
 * be NULL). Writes nothing and returns -EBUSY for any other driver, -ENOTEMPTY for a PF with VFs, -EUSERS when a guest
 * of Xen has the device or may have it. */
int driver_unbind(const Sysfs *fs, PciAddress address, const char *driver, const char *instead);

/*
 * Binds the device to exactly this driver, regardless of the IDs that the driver lists, and restores the former
 * override. Keeps a function on a VFIO driver from suspending, unless it is a VF. -EBUSY: the device is bound to
 * another driver. -ENODEV: the probe did not bind the device (the module is not loaded, or the driver refused).
 */
int driver_bind(const Sysfs *fs, PciAddress address, const char *driver);

/*
 * Resets the function. Without `method` (NULL), the kernel tries the methods in reset_method in order. With `method`,
 * reset_method is set to `method` before the reset, and to `before` (unless NULL) after the reset. A listed method may
 * be impossible now, so only the attempt shows whether the device can be reset. 1: reset. -ENOENT: the kernel has no
 * reset method for the function. -ENOTTY: no method worked, or the device did not come back in time (pci_dev_wait()).
 * -EINVAL: the function does not have the method. -ENOTEMPTY: the function is a PF with VFs. -EUSERS: a guest of Xen
 * has the function or may have it. Otherwise the kernel's errno, or that of holders_find().
 */
int reset_device(const Sysfs *fs, PciAddress address, const char *method, const char *before);
/* Checks that the device responds. 0: its vendor ID is that in sysfs, or the register of the vendor ID is all ones, as
 * in a VF. -EIO: config space reads as all ones, or its vendor ID cannot be read. -ENXIO: the device has another vendor
 * ID. Otherwise another negative errno. */
int reset_check(const Sysfs *fs, PciAddress address);
