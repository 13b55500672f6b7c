/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Slots for the mediated devices of a GPU without VFs. Such a GPU is the parent of many mediated devices, and each of
 * them is a device of a pool. So the inventory has MDEV_SLOTS devices for the GPU, the slots, which sysfs does not
 * have. A slot is like a VF of the GPU: its type is PCI_TYPE_VF, its physfn is the GPU, and address.instance is the
 * number of the slot. The number of vGPUs of a type is limited by the driver's available_instances, not by the number
 * of slots.
 */

#include "model/inventory.h"

/* The most mediated devices of one GPU: 32 on a V100 or RTX 8000 of NVIDIA, 8 with Intel's GVT-g. */
#define MDEV_SLOTS         32U
/* How many slots of a GPU a pool offers if the type's name does not tell the size of a vGPU: GVT-g has up to 8 of a
 * type, NVIDIA's M60-0B 16. */
#define MDEV_SLOTS_UNKNOWN 16U

/* Returns true when the GPU has slots: its driver makes mediated devices on it, it is no VF, and it can have no VFs. */
bool pci_device_has_slots(const PciDevice *dev);
static inline bool pci_device_is_slot(const PciDevice *dev) {
        return dev->address.instance > 0;
}
/* Returns true when the PF has VFs in sysfs, not only slots; vfio-pci then refuses it. A PF may have types of mediated
 * devices too. */
static inline bool pci_device_has_vfs(const PciDevice *dev) {
        return dev->n_vfs > 0 && !pci_device_has_slots(dev);
}

/* Adds the slots of all GPUs that have none yet. The inventory may be unsorted. 0 or -ENOMEM. */
int inventory_add_slots(Inventory *inv);
/*
 * Copies the driver, the types and the mediated devices of the GPU to its slots. A mediated device goes to the slot
 * that its UUID names (mdev_uuid_format()). A mediated device of another program goes to the last free slot, because
 * the first free slots are the next to be allocated. 0 or -ENOMEM.
 */
int inventory_fill_slots(Inventory *inv, const PciDevice *gpu);

/*
 * Formats the UUID of the mediated device at the address, for an allocation with this id, which is random. The UUID is
 * the id with the address of the function in the last eight digits and, for a slot, its number in the two digits before
 * these.
 */
void mdev_uuid_format(const char *id, PciAddress address, char ret[static UUID_STRING_MAX]);
