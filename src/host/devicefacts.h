/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Fills the members of a PciDevice from the sysfs attributes of its PCI function. Other files set the other members,
 * such as path, ACS and name.
 */

#include "devicedir.h"

/* Value of numa_node during a scan if the attribute is unreadable or invalid. Later in the scan this value becomes -1,
 * whereas a valid -1 becomes the node of the PF or of a bridge above, if that is known. On a host with one node, any -1
 * that remains becomes that node. */
#define DEVICE_NODE_DAMAGED (-2)

/* All functions fail only with -ENOMEM. A damaged attribute is noted in dev->fault and is no failure. */

/* Reads type and physfn of a VF. */
int device_facts_read_physfn(const DeviceDir *d, PciDevice *dev);
/*
 * Reads the identity, which does not change with the driver: vendor, device, subsystem_vendor, subsystem_device, class,
 * bar_size.
 *
 * sibling: another VF of the same PF that was read completely, or NULL. When its device ID is equal, the other facts
 * are copied from sibling: the kernel gives all VFs of a PF the vendor of the PF, the class and subsystem of the first
 * VF, and BARs of one size (drivers/pci/iov.c). The device ID is always read: this read fails when the VF was removed.
 */
int device_facts_read_identity(const DeviceDir *d, const PciDevice *sibling, PciDevice *dev);
/* Returns true when device_facts_read_identity() has read all facts, so that dev may be the sibling of another VF. */
bool device_facts_are_whole(const DeviceDir *d, const PciDevice *dev);
/* Reads what changes with the driver: driver, driver_override, has_override, vfio, vfio_cdev, bond, sets_guids, the
 * vGPU, runtime_pm, d3cold, reset_methods, and kernel_names without those of subdevices_append_names(). */
int device_facts_read_driver(const DeviceDir *d, PciDevice *dev);
/* Reads bar_size. */
int device_facts_read_bars(const DeviceDir *d, PciDevice *dev);
/* Reads iommu_group. */
int device_facts_read_group(const DeviceDir *d, PciDevice *dev);
/* Reads n_virtfns, linked and n_linked. */
int device_facts_read_vfs(const DeviceDir *d, PciDevice *dev);
/* Reads all facts except physfn and the identity, which the functions above read. */
int device_facts_read(const DeviceDir *d, PciDevice *dev);
