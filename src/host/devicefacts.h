/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* From the attributes of one PCI function to the members of a PciDevice. Path, ACS and name come from elsewhere. */

#include "devicedir.h"

/* numa_node is there but makes no sense. Only while scanning: becomes -1 where a plain -1 asks the bridges above. */
#define DEVICE_NODE_DAMAGED (-2)

/* All fail only for want of memory; what is damaged goes to dev->fault. */

/* vendor, device, subsystem_vendor, subsystem_device; class missing is noted, too. */
int device_facts_read_ids(const DeviceDir *d, PciDevice *dev);
int device_facts_read_class(const DeviceDir *d, PciDevice *dev);
/* driver, driver_override, has_override, vfio. */
int device_facts_read_driver(const DeviceDir *d, PciDevice *dev);
/* iommu_group. */
int device_facts_read_group(const DeviceDir *d, PciDevice *dev);
/* n_virtfns, linked, n_linked. */
int device_facts_read_vfs(const DeviceDir *d, PciDevice *dev);
/* Everything but the ids and the class. */
int device_facts_read(const DeviceDir *d, PciDevice *dev);
