/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ways to the attributes of a VF, one file each. A read adds nothing to *ret when the PF has not that way, and that
 * is no error; a write gets only what its read offered, and only what is other now.
 */

#include "core/pciaddr.h"
#include "core/vfattr.h"
#include "util/sysfs.h"

struct nl_sock;

typedef struct VfTarget {
        const Sysfs *fs;
        PciAddress pf;
        unsigned vf;
} VfTarget;

/* MLNX_OFED's sriov/N directory (domain.md C30). */
int vf_ofed_read(const VfTarget *t, VfAttributes *ret);
int vf_ofed_write(const VfTarget *t, const VfAttributes *change);

/* The iov directory of mlx4's InfiniBand ports (domain.md C23). */
int vf_mlx4_read(const VfTarget *t, VfAttributes *ret);
int vf_mlx4_write(const VfTarget *t, const VfAttributes *change);

/* rtnetlink on the interfaces that the PF has now (domain.md C31, C37). */
int vf_netlink_read(const VfTarget *t, VfAttributes *ret);
int vf_netlink_write(const VfTarget *t, const VfAttributes *change);

/* An interface of the PF, and one request to the kernel about it over a socket that is open. */
typedef struct PfNetdev {
        PciAddress pf;
        int ifindex;
        unsigned port; /* of the PF, from 0 */
} PfNetdev;

/*
 * What this interface reports of the VF and can set; nothing when it knows no such VF. -ENODEV: there is no such
 * interface, or it is another device's by now. -EPROTO: no answer that could be understood. Else the kernel's errno.
 */
int vf_rtnl_read(struct nl_sock *sk, const PfNetdev *dev, unsigned vf, VfAttributes *ret);
/* now: what vf_rtnl_read() gave, for what is only set together. Not read back. -EPROTO or the kernel's errno. */
int vf_rtnl_write(struct nl_sock *sk, const PfNetdev *dev, unsigned vf, const VfAttributes *now,
                  const VfAttributes *change);
