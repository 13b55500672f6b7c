/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ways to the attributes of a VF, one file each. A read adds nothing to *ret when the PF has not that way, and that
 * is no error; a write gets only what its read offered, and only what is other now.
 */

#include "model/pciaddr.h"
#include "model/vfattr.h"
#include "util/sysfs.h"

struct nl_sock;

#define PF_PORTS_MAX 8U

/* An interface of the PF. */
typedef struct PfNetdev {
        PciAddress pf;
        int ifindex;
        unsigned port; /* of the PF, from 0 */
} PfNetdev;

/*
 * What was found out of a PF with the first of its VFs and counts for the others; all zeros is nothing yet. What its
 * interfaces told is of all VFs, since the kernel tells of all of an interface or of none, and after a write it is
 * what was so before.
 */
typedef struct PfView {
        bool ofed_known, has_ofed; /* it has a sriov directory */
        bool iov_known;
        char iov_device[160]; /* the mlx4 device with an iov directory, below the root; "" when there is none */
        bool netdevs_asked;
        unsigned n_devs;
        PfNetdev devs[PF_PORTS_MAX];     /* one for each port, in their order */
        VfAttributes *vfs[PF_PORTS_MAX]; /* by the index of the VF; owned */
        size_t n_vfs[PF_PORTS_MAX];
} PfView;

void pf_view_forget(PfView *v);

typedef struct VfTarget {
        const Sysfs *fs;
        PciAddress pf;
        unsigned vf;
        PfView *view;
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

/*
 * One request to the kernel each, over a socket that is open: what this interface reports of its VFs and can set, by
 * their index, to be freed. -ENODEV: there is no such interface, or it is another device's by now. -EPROTO: no answer
 * that could be understood. Else the kernel's errno.
 */
int vf_rtnl_read(struct nl_sock *sk, const PfNetdev *dev, VfAttributes **ret, size_t *ret_n);
/* now: what vf_rtnl_read() gave of the VF, for what is only set together. Not read back. -EPROTO or the kernel's errno.
 */
int vf_rtnl_write(struct nl_sock *sk, const PfNetdev *dev, unsigned vf, const VfAttributes *now,
                  const VfAttributes *change);
