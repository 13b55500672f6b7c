/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Whether a guest gets its devices by iommufd or by a VFIO container (<driver iommufd=>), which is the same for all
 * devices of a guest. A container lets each device reach the BARs of the others. iommufd does so only since Linux 6.19
 * and QEMU 11.0; with older versions, GPUDirect between GPU and NIC fails in the guest without a message. Pure.
 */

#include "config/config.h"
#include "ledger/allocation.h"

typedef struct IommufdFacts {
        IommufdMode mode;        /* Iommufd= */
        LibvirtFeatures libvirt; /* features of libvirt and QEMU */
        unsigned kernel;         /* as Inventory.kernel */
        unsigned n_devices;      /* devices of the guest: the functions of a card count as one, each VF counts as one */
        bool xen;                /* a guest of Xen */
        bool mediated;           /* the guest has a mediated device, which can have no iommufd */
        bool has_cdev;           /* a device of the node has a VFIO character device, which iommufd needs */
        bool lacks_cdev; /* a device of the node is bound to a VFIO driver and has no character device, so no device has
                            one */
        bool confidential; /* AMD SEV-SNP or Intel TDX, which need iommufd and have no peer-to-peer DMA */
} IommufdFacts;

typedef enum IommufdReason {
        IOMMUFD_NO_DEVICE,   /* the guest has no device to choose it for, or is a guest of Xen */
        IOMMUFD_OFF,         /* Iommufd=no */
        IOMMUFD_UNKNOWN,     /* the features of libvirt are unknown */
        IOMMUFD_MEDIATED,    /* a device of the guest is a mediated one */
        IOMMUFD_OLD_LIBVIRT, /* libvirt before 12.1 */
        IOMMUFD_OLD_QEMU,    /* QEMU before 9.0 */
        IOMMUFD_NOT_OFFERED, /* libvirt reports that the kernel or QEMU has no iommufd */
        IOMMUFD_NO_CDEV,     /* VFIO without character devices */
        IOMMUFD_NO_PEERS,    /* peer-to-peer DMA between its devices would not work */
        IOMMUFD_ON,          /* Iommufd=yes; with this and the following reasons iommufd is used */
        IOMMUFD_ONE_DEVICE,  /* no peer-to-peer DMA in the guest */
        IOMMUFD_PEERS,       /* peer-to-peer DMA works */
        IOMMUFD_CONFIDENTIAL,
        _IOMMUFD_REASON_MAX,
} IommufdReason;
const char *iommufd_reason_to_string(IommufdReason r);

/* Sets the members has_cdev and lacks_cdev of *f. */
void iommufd_find_cdevs(const Inventory *inv, IommufdFacts *f);
/* The facts of an allocation. The caller sets confidential if the template does. */
IommufdFacts iommufd_facts(const Inventory *inv, const Config *config, const Allocation *a);
IommufdReason iommufd_choose(const IommufdFacts *f);
static inline bool iommufd_is_used(IommufdReason r) {
        return r >= IOMMUFD_ON;
}
/* Returns true when users should be told the reason. */
static inline bool iommufd_is_told(IommufdReason r) {
        return r != IOMMUFD_NO_DEVICE && r != IOMMUFD_UNKNOWN;
}
/* Returns true when Linux and QEMU let the devices of a guest with iommufd reach each other. */
bool iommufd_has_peers(const IommufdFacts *f);
/* Returns the reason as one or two sentences. The caller frees; NULL when out of memory. */
char *iommufd_explain(const IommufdFacts *f, IommufdReason r);
/* Returns a sentence for a running guest with iommufd that got a further device, and now has no peer-to-peer DMA. The
 * caller frees; NULL when out of memory. */
char *iommufd_explain_lost_peers(const IommufdFacts *f);
/* Refuses when Iommufd=yes is set and, for this reason, iommufd cannot be used. */
Verdict iommufd_check(const IommufdFacts *f, IommufdReason r, Refusal *ret);
