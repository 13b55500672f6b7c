/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* From the attributes of one PCI function to the members of a PciDevice. Path, ACS and name come from elsewhere. */

#include "devicedir.h"

/* numa_node is there but makes no sense. Only while scanning: becomes -1 where a plain -1 asks the bridges above. */
#define DEVICE_NODE_DAMAGED (-2)

/* All fail only for want of memory; what is damaged goes to dev->fault. */

/* type and physfn of a VF. */
int device_facts_read_physfn(const DeviceDir *d, PciDevice *dev);
/*
 * What a device keeps as long as it is there: vendor, device, subsystem_vendor, subsystem_device, class, bar_size.
 * sibling: another VF of the same PF that was read whole, or NULL. With the same device ID the rest is the sibling's:
 * the kernel gives all VFs of a PF the vendor of the PF, class and subsystem of the first VF, and BARs of one size
 * (drivers/pci/iov.c). The device ID is read in any case, which fails when the VF is gone.
 */
int device_facts_read_identity(const DeviceDir *d, const PciDevice *sibling, PciDevice *dev);
/* All of that exists and was read: dev may be the sibling of another VF. */
bool device_facts_are_whole(const DeviceDir *d, const PciDevice *dev);
/* driver, driver_override, has_override, vfio. */
int device_facts_read_driver(const DeviceDir *d, PciDevice *dev);
/* iommu_group. */
int device_facts_read_group(const DeviceDir *d, PciDevice *dev);
/* n_virtfns, linked, n_linked. */
int device_facts_read_vfs(const DeviceDir *d, PciDevice *dev);
/* Everything but physfn and the identity, which were read before. */
int device_facts_read(const DeviceDir *d, PciDevice *dev);
