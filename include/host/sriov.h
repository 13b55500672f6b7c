/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Virtual functions of a PF (domain.md C). Like host/driver.h only for the child of a job: even reading sriov_numvfs
 * can hang. */

#include "core/pciaddr.h"
#include "util/sysfs.h"

/* sriov_drivers_autoprobe: whether the kernel binds new VFs by itself. 0 unchanged, 1 changed, negative errno. */
int sriov_set_autoprobe(const Sysfs *fs, PciAddress pf, const char *value);

/*
 * From none to count, or from any to 0. Reads back the number and counts the virtfn links: -EIO when the kernel made
 * fewer, and then there are none again. -EBUSY, with nothing written, when there are others already; else the kernel's
 * errno (C1).
 */
int sriov_set_numvfs(const Sysfs *fs, PciAddress pf, unsigned count);
