/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The three kernel interfaces for VF attributes: MLNX_OFED and mlx4 in vfattr-sysfs.c, rtnetlink in vfattr-netlink.c. A
 * read function adds nothing to *ret and returns 0 when the PF does not have the interface. A write function is called
 * only with attributes that the interface's read function reported with another value.
 */

#include "model/pciaddr.h"
#include "model/vfattr.h"
#include "util/sysfs.h"

struct nl_sock;

#define PF_PORTS_MAX 8U

/* A network interface of a PF. */
typedef struct PfNetdev {
        PciAddress pf;
        int ifindex;
        unsigned port; /* the port of the PF, counted from 0 */
} PfNetdev;

/*
 * A cache of the facts of a PF, filled when its first VF is read and used for its other VFs. Initialized with zeros.
 * vfs has the attributes of all VFs, because the kernel reports all VFs of a network interface together. Writes do not
 * update the cache.
 */
typedef struct PfView {
        bool ofed_known, has_ofed; /* whether the PF has a sriov directory; valid when ofed_known */
        bool iov_known;
        char iov_device[160]; /* path of the mlx4 InfiniBand device that has a directory iov; "": none */
        bool netdevs_asked;   /* devs, vfs and n_vfs are valid */
        unsigned n_devs;
        PfNetdev devs[PF_PORTS_MAX];     /* the interface of each port, ascending by port */
        VfAttributes *vfs[PF_PORTS_MAX]; /* by index in devs, then by VF; owned */
        size_t n_vfs[PF_PORTS_MAX];
} PfView;

/* Empties the cache and frees its memory. */
void pf_view_forget(PfView *v);

typedef struct VfTarget {
        const Sysfs *fs;
        PciAddress pf;
        unsigned vf;
        PfView *view;
} VfTarget;

/* By the directory sriov/N of MLNX_OFED. */
int vf_ofed_read(const VfTarget *t, VfAttributes *ret);
int vf_ofed_write(const VfTarget *t, const VfAttributes *change);

/* By the directory iov of mlx4's InfiniBand devices (stable/sysfs-class-infiniband of the kernel's ABI). */
int vf_mlx4_read(const VfTarget *t, VfAttributes *ret);
int vf_mlx4_write(const VfTarget *t, const VfAttributes *change);

/* By rtnetlink, on the network interfaces of the PF. */
int vf_netlink_read(const VfTarget *t, VfAttributes *ret);
int vf_netlink_write(const VfTarget *t, const VfAttributes *change);

/*
 * Reads the attributes of all VFs of a network interface in one request. (*ret)[i] has the attributes of VF i that the
 * interface supports; the caller frees *ret. -ENODEV: the interface does not exist or belongs to another device.
 * -EPROTO: the reply cannot be parsed. Otherwise 0, -ENOMEM or the kernel's errno.
 */
int vf_rtnl_read(struct nl_sock *sk, const PfNetdev *dev, VfAttributes **ret, size_t *ret_n);
/*
 * Writes the attributes of a VF in one request and does not read them back. `now` has the VF's attributes from
 * vf_rtnl_read(): the kernel sets some attributes only together, such as VLAN and priority. Returns 0, -ENOMEM, -EPROTO
 * or the kernel's errno.
 */
int vf_rtnl_write(struct nl_sock *sk, const PfNetdev *dev, unsigned vf, const VfAttributes *now,
                  const VfAttributes *change);
