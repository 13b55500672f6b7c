/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Creates and removes the virtual functions of a PF. Like the functions of host/control.h, these must run in the child
 * process of a job: even a read of sriov_numvfs can hang. */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/* Writes sriov_drivers_autoprobe, which decides whether the kernel binds drivers to new VFs. 1: changed. 0: unchanged,
 * or the kernel lacks the attribute. Otherwise a negative errno. */
int sriov_set_autoprobe(const Sysfs *fs, PciAddress pf, bool on);

/*
 * Creates `count` VFs. Reads sriov_numvfs back and waits up to two seconds for the virtfn links. 0: the PF had `count`
 * VFs already. 1: created. -EIO: the kernel created fewer VFs, or the links did not appear in time; the new VFs were
 * removed again. -EBUSY: the PF has another number of VFs; nothing was written. Otherwise the kernel's errno.
 */
int sriov_set_numvfs(const Sysfs *fs, PciAddress pf, unsigned count);
/*
 * Removes all `count` VFs and waits until their virtfn links are gone. 0: the PF had no VFs. 1: removed. -EBUSY: the PF
 * has another number of VFs, or a VF has a driver; nothing was written. Otherwise a negative errno.
 */
int sriov_remove_vfs(const Sysfs *fs, PciAddress pf, unsigned count);
/* Returns whether the PF has a VF with index `vf`. */
bool sriov_has_vf(const Sysfs *fs, PciAddress pf, unsigned vf);
