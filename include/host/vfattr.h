/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Attributes of a VF through its PF: rtnetlink on the PF's interface (Ethernet, and InfiniBand with IPoIB), the sriov
 * directory of MLNX_OFED, the iov directory of mlx4 (domain.md C23, C30 to C37). Which of them a PF has is found by
 * what is below its device, never by a name. For the child of a job only: each may wait for the driver for ever.
 */

#include "core/pciaddr.h"
#include "core/vfattr.h"
#include "util/sysfs.h"

/*
 * What the VF with that index has now; set are those that the PF offers, and only these can be written. -ENODEV: there
 * is no such VF. -EOPNOTSUPP: the PF offers none of them.
 */
int vf_attributes_read(const Sysfs *fs, PciAddress pf, unsigned vf, VfAttributes *ret);
/*
 * Those of wanted that are other now, a VLAN without priority and protocol with none and the usual, in one go where
 * that is possible, read back afterwards. 0 unchanged, 1 changed. -EOPNOTSUPP: one of them is not offered, nothing was
 * written. -EIO: the kernel said yes, and it is not so. Else the kernel's errno.
 */
int vf_attributes_write(const Sysfs *fs, PciAddress pf, unsigned vf, const VfAttributes *wanted);
