/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Attributes of a VF through its PF: rtnetlink on the PF's interface (Ethernet, and InfiniBand with IPoIB), the sriov
 * directory of MLNX_OFED, the iov directory of mlx4 (domain.md C23, C30 to C37). Which of them a PF has is found by
 * what is below its device, never by a name. For the child of a job only: each may wait for the driver for ever.
 */

#include "model/pciaddr.h"
#include "model/vfattr.h"
#include "util/sysfs.h"

/*
 * What the VF with that index has now; set are those that the PF offers, and only these can be written. -ENODEV: there
 * is no such VF. -EOPNOTSUPP: the PF offers none of them.
 */
int vf_attributes_read(const Sysfs *fs, PciAddress pf, unsigned vf, VfAttributes *ret);

/*
 * The same of VFs of any PF, those of one PF side by side, which costs one look at each PF. tell is called with each
 * result as soon as it is known; attributes are valid when it is 0.
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
        VfAttributes wanted; /* as written: a VLAN without priority and protocol gets none and the usual */
        bool only_offered;   /* what the PF does not offer is left out of wanted, and is no error */
        VfAttributes had;    /* what the VF had before; empty when the PF offers nothing, or it could not be read */
        /*
         * 0 unchanged, 1 changed. -ENODEV: there is no such VF. -EOPNOTSUPP: one of them is not offered, nothing was
         * written. -EIO: the kernel said yes, and it is not so. Else the kernel's errno.
         */
        int result;
} VfChange;

typedef enum VfMoment {
        VF_LOOKING, /* what it has, before and after it is written */
        VF_WRITING,
        VF_DONE, /* the result will not change */
} VfMoment;

typedef void (*VfTell)(const VfChange *c, VfMoment moment, void *userdata);

/*
 * Gives VFs of a PF, each named once, what is wanted and other now, in one go for each where that is possible, and
 * reads it back. Many together cost as many looks as one, for the kernel tells of all VFs of an interface at once.
 * tell, unless NULL, is called before all that may take for ever, and once with each result.
 */
void vf_attributes_write(const Sysfs *fs, PciAddress pf, VfChange *changes, size_t n, VfTell tell, void *userdata);
