/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What is done to a device between two owners. Like host/driver.h for the child of a job only. */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/*
 * Resets the function by the first of its reset_method that works; what that lists may not be possible any more, so it
 * is tried (domain.md D1, D2). 0: the kernel has no way to reset it, 1 done, else the kernel's errno.
 */
int reset_device(const Sysfs *fs, PciAddress address);
/* Whether config space answers, as the device that sysfs says it is: 0, -EIO all ones, -ENXIO another one. */
int reset_check(const Sysfs *fs, PciAddress address);
