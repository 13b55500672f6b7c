/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Virtual functions of a PF (domain.md C). Like host/driver.h only for the child of a job: even reading sriov_numvfs
 * can hang. */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/* sriov_drivers_autoprobe: whether the kernel binds new VFs by itself. 0 unchanged, 1 changed, negative errno. */
int sriov_set_autoprobe(const Sysfs *fs, PciAddress pf, const char *value);

/*
 * From none to count. Reads back the number and counts the virtfn links, which it waits for a while: -EIO when the
 * kernel made fewer, and then there are none again. -EBUSY, with nothing written, when there are others already; else
 * the kernel's errno (C1). 0 unchanged, 1 changed.
 */
int sriov_set_numvfs(const Sysfs *fs, PciAddress pf, unsigned count);
/*
 * From count to none, the links too. -EBUSY, with nothing written, when there is another number of them or one has a
 * driver. 0 there were none, 1 changed.
 */
int sriov_remove_vfs(const Sysfs *fs, PciAddress pf, unsigned count);
/* Whether it has a VF with that index. */
bool sriov_has_vf(const Sysfs *fs, PciAddress pf, unsigned vf);
