/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which guests of Xen have which PCI devices, seen from dom0.
 *
 * The toolstack (xl or libvirt, both with libxl) records each device of a guest in xenstore, below
 * /local/domain/0/backend/pci/DOMAIN/0 in dev-0, dev-1 and so on, as tools/libs/light/libxl_pci.c of Xen writes it, for
 * PV guests and HVM guests alike. It removes the entry when the guest has ended or has released the device. Neither
 * sysfs nor open files in dom0 show which guest has a device.
 *
 * libxl writes that entry only after it has given the device to the guest. Before, it writes
 * /libxl/pci/DDDD-BB-SS-F/domid, which also counts while that guest exists. An older libxl does not write this, so its
 * guests are not seen while they are created.
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

#define XEN_GUEST_DEVICES_MAX 4096U
#define XEN_NAME_MAX          64U
#define XEN_DOMAIN_UNKNOWN    UINT32_MAX

typedef struct XenGuestDevice {
        uint32_t domain; /* id of the guest, or XEN_DOMAIN_UNKNOWN */
        PciAddress address;
        char name[XEN_NAME_MAX]; /* name of the guest, safe to print; "" for XEN_DOMAIN_UNKNOWN */
} XenGuestDevice;

typedef struct XenGuests {
        XenGuestDevice *devices;
        size_t n;
} XenGuests;

void xen_guests_done(XenGuests *g);

/*
 * Returns true when Linux runs under Xen (Documentation/ABI/stable/sysfs-hypervisor-xen of the kernel) as dom0, not as
 * a guest. In a guest /proc/xen/capabilities is empty, in dom0 it has control_d (capabilities_read() of the kernel's
 * drivers/xen/xenfs/super.c). Where xenfs is not mounted, each domain counts as dom0.
 */
bool xen_is_dom0(const Sysfs *fs);

/*
 * Asks passthroughd-root for the devices of guests. While passthroughd-root or xenstore does not answer, the result
 * depends on sysfs: if a guest has PCI devices, the result is each device that is bound to pciback, with
 * XEN_DOMAIN_UNKNOWN; otherwise it is empty. Returns 0 or a negative errno.
 */
int xen_guests_read(const Sysfs *fs, XenGuests *ret);

/*
 * Makes xen_guests_read() wait longer, and ask even if the last question had no answer. For processes that may block.
 */
void xen_guests_may_block(void);
