/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Whether a guest gets its devices by iommufd or by a VFIO container (<driver iommufd=>). The choice is the same for
 * all devices of a guest. A container lets each device reach the BARs of the others. iommufd does so only since Linux
 * 6.19 and QEMU 11.0; with older versions, GPUDirect between GPU and NIC fails in the guest without a message. Pure.
 */

#include "config/config.h"
#include "ledger/allocation.h"

typedef struct IommufdFacts {
        IommufdMode mode;        /* Iommufd=, or what the template asks for */
        LibvirtFeatures libvirt; /* what libvirt and QEMU can do */
        unsigned kernel;         /* version of Linux, as Inventory.kernel */
        unsigned n_devices; /* number of the guest's devices: the functions of a card count as one; each VF counts */
        bool xen;           /* it is a guest of Xen */
        bool mediated;      /* a device of the guest is a mediated device, which iommufd cannot give it */
        bool has_cdev;      /* a device of the node has the VFIO character device that iommufd needs */
        bool lacks_cdev;    /* a device of the node has a VFIO driver but no such character device, so the kernel makes
                               none */
        bool confidential;  /* the guest is AMD SEV-SNP or Intel TDX, which need iommufd and have no peer-to-peer DMA */
} IommufdFacts;

typedef enum IommufdReason {
        IOMMUFD_NO_DEVICE,   /* the guest has no device, or is one of Xen */
        IOMMUFD_OFF,         /* Iommufd=no, or the template turns it off */
        IOMMUFD_UNKNOWN,     /* the features of libvirt are unknown */
        IOMMUFD_MEDIATED,    /* a device of the guest is a mediated device */
        IOMMUFD_OLD_LIBVIRT, /* libvirt lacks iommufd, and is older than 12.1 */
        IOMMUFD_OLD_QEMU,    /* libvirt reports no iommufd, and QEMU is older than 9.0 */
        IOMMUFD_NOT_OFFERED, /* libvirt is new enough, and reports no iommufd: the kernel or QEMU lacks it */
        IOMMUFD_NO_CDEV,     /* the kernel has no VFIO character devices */
        IOMMUFD_NO_PEERS,    /* devices of the guest would have no peer-to-peer DMA */
        IOMMUFD_ON,          /* Iommufd=yes, or the template asks for it. From here on, iommufd is used */
        IOMMUFD_ONE_DEVICE,  /* the guest has one device, so no peer-to-peer DMA is lost */
        IOMMUFD_PEERS,       /* devices of the guest have peer-to-peer DMA */
        IOMMUFD_CONFIDENTIAL,
        _IOMMUFD_REASON_MAX,
} IommufdReason;
const char *iommufd_reason_to_string(IommufdReason r);

/* Sets has_cdev and lacks_cdev of *f from the devices of the node. */
void iommufd_find_cdevs(const Inventory *inv, IommufdFacts *f);
/* Returns the facts about an allocation without a template. The caller changes mode and confidential to what a template
 * asks for. */
IommufdFacts iommufd_facts(const Inventory *inv, const Config *config, const Allocation *a);
IommufdReason iommufd_choose(const IommufdFacts *f);
static inline bool iommufd_is_used(IommufdReason r) {
        return r >= IOMMUFD_ON;
}
/* Returns true for a reason that users should know. */
static inline bool iommufd_is_told(IommufdReason r) {
        return r != IOMMUFD_NO_DEVICE && r != IOMMUFD_UNKNOWN;
}
/* Returns true when Linux and QEMU let the devices of a guest with iommufd reach each other. */
bool iommufd_has_peers(const IommufdFacts *f);
/* Formats the reason as one or two sentences. The caller frees; NULL when out of memory. */
char *iommufd_explain(const IommufdFacts *f, IommufdReason r);
/* Formats a sentence: a running guest with iommufd got a further device, and has no peer-to-peer DMA now. The caller
 * frees; NULL when out of memory. */
char *iommufd_explain_lost_peers(const IommufdFacts *f);
/* Refuses if the mode is yes and `r` is a reason not to use iommufd, other than IOMMUFD_NO_DEVICE. */
Verdict iommufd_check(const IommufdFacts *f, IommufdReason r, Refusal *ret);
