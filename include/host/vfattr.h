/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reads and writes the attributes of a VF through its PF. There are three interfaces: rtnetlink on the PF's network
 * interface (Ethernet, and InfiniBand with IPoIB), the sriov directory of MLNX_OFED, and the iov directory of mlx4
 * (kernel ABI/stable/sysfs-class-infiniband). The contents of the PF's sysfs directory decide which of them are used;
 * driver names do not matter. Every call can block for ever in the PF's driver, so it must run in the child process of
 * a job.
 */

#include "model/pciaddr.h"
#include "model/vfattr.h"
#include "util/sysfs.h"

/*
 * Reads the attributes of the VF with index vf. ret->set has the attributes that the PF supports; no others can be
 * written. -ENODEV: the PF has no VF with that index. -EOPNOTSUPP: the PF supports no attribute. Otherwise a negative
 * errno.
 */
int vf_attributes_read(const Sysfs *fs, PciAddress pf, unsigned vf, VfAttributes *ret);

/*
 * Reads the attributes of n VFs. VFs of one PF must be adjacent in vfs, so that each PF is queried once. tell() is
 * called for each VF as soon as its result is known; attributes are valid when result is 0.
 */
typedef struct VfPlace {
        PciAddress pf;
        unsigned vf;
} VfPlace;
void vf_attributes_read_all(const Sysfs *fs, const VfPlace *vfs, size_t n,
                            void (*tell)(size_t i, int result, const VfAttributes *attributes, void *userdata),
                            void *userdata);

typedef struct VfChange {
        unsigned vf;
        VfAttributes wanted; /* the attributes to write; with a VLAN, a missing priority is written as 0 and a missing
                                protocol as 802.1Q, if the PF supports these */
        bool only_offered;   /* remove the attributes from wanted that the PF does not support, instead of failing */
        VfAttributes had;    /* attributes before the write; empty if the read failed or the PF supports none */
        /*
         * 0 unchanged, 1 changed. -ENODEV: the PF has no VF with that index. -EOPNOTSUPP: the PF does not support an
         * attribute of wanted, and nothing was written; or after the write the PF offers no attribute any more. -EIO:
         * the kernel accepted the write, but reads back another value. Otherwise the kernel's errno.
         */
        int result;
} VfChange;

typedef enum VfMoment {
        VF_LOOKING, /* about to read the attributes, before or after the write */
        VF_WRITING, /* about to write the attributes that differ, if any do */
        VF_DONE,    /* VfChange.result is final */
} VfMoment;

typedef void (*VfTell)(const VfChange *c, VfMoment moment, void *userdata);

/*
 * Writes the attributes of n VFs of one PF and reads them back. changes must not name a VF twice. Only attributes that
 * differ are written, in one request per VF where the interface allows it. Reading costs the same for one VF as for
 * all, because the kernel reports all VFs of a network interface together. tell(), which may be NULL, is called before
 * every operation that can block for ever, and once with each final result.
 */
void vf_attributes_write(const Sysfs *fs, PciAddress pf, VfChange *changes, size_t n, VfTell tell, void *userdata);
