/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Resets a device between two owners. As those of host/driver.h, these functions must run in the child process of a
 * job. */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/*
 * Resets the function. Without method the kernel tries those in reset_method in order; with it, reset_method is set to
 * method before, and to before (unless NULL) after it. A listed method may have become impossible, so only the attempt
 * shows whether the device can be reset (domain.md D1, D2). 1: reset. -ENOENT: the kernel has no reset method for it.
 * -ENOTTY: no method worked, which is also how the kernel reports a device that did not come back in time
 * (pci_dev_wait()). -EINVAL: it does not offer the method. -ENOTEMPTY: the function is a PF with VFs. Otherwise the
 * kernel's errno.
 */
int reset_device(const Sysfs *fs, PciAddress address, const char *method, const char *before);
/* Checks that the device responds. 0: it responds with the vendor ID that sysfs has. -EIO: config space is all ones.
 * -ENXIO: it responds with another vendor ID. Otherwise a negative errno of a failed read. */
int reset_check(const Sysfs *fs, PciAddress address);
