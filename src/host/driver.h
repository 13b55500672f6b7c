/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Binding by driver_override (kernel Documentation/ABI/testing/sysfs-bus-pci; domain.md B1 to B10), each write read
 * back. Any of these can sleep for ever in the kernel, so only the child of a job calls them. All return 0 when the
 * fact already was so, 1 when they made it so, or negative errno.
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/* driver NULL clears it. -EIO when the kernel took the write but shows something else. */
int driver_set_override(const Sysfs *fs, PciAddress address, const char *driver);

/* Leaves driver. Being on no driver, or on instead (may be NULL), is as good. -EBUSY when bound to yet another one,
 * -ENOTEMPTY when it is a PF with VFs; then nothing is written. */
int driver_unbind(const Sysfs *fs, PciAddress address, const char *driver, const char *instead);

/*
 * Binds to exactly this driver, whatever ids would say; the override is afterwards what it was before. -EBUSY when
 * bound to another one, -ENODEV when the kernel probed and the device is still not on the driver (its module is not
 * loaded, or the driver refused).
 */
int driver_bind(const Sysfs *fs, PciAddress address, const char *driver);
