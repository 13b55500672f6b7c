/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Computes IOMMU groups from ACS, by the rules of the kernel's pci_device_group() in drivers/iommu/iommu.c, with two
 * differences. Both can make groups larger, never smaller.
 *
 * If one port of a switch does not isolate, all devices below the switch are one group, because a device below that
 * port can reach those below the other ports. The kernel looks only at the ports above a device.
 *
 * The ports that isolate without ACS, which pci_dev_specific_acs_enabled() in the kernel lists, count as ports that do
 * not isolate.
 */

#include <errno.h>
#include <stdlib.h>

#include "model/mdev-slots.h"

#define BRIDGES_MAX 256U
#define DOMAIN_MAX  0x7fffU

static bool isolates(const PciDevice *dev) {
        return dev->acs == PCI_ACS_CLEAN || dev->acs == PCI_ACS_ISOLATED;
}

/* Marks bridges below which all devices are one group: the parent of each port that does not isolate or, on a root bus,
 * the port itself. */
static void find_open(const Inventory *inv, bool *open) {
        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *port = &inv->devices[i];

                if (port->is_bridge && !isolates(port))
                        open[port->parent >= 0 ? (size_t) port->parent : i] = true;
        }
}

/* Returns the device that stands for the group of dev: the topmost marked bridge at or above it, or dev. NULL: the path
 * has too many bridges. */
static const PciDevice *find_top(const Inventory *inv, const bool *open, const PciDevice *dev) {
        int at = (int) inventory_device_index(inv, dev);
        const PciDevice *top = dev;

        for (unsigned i = 0; at >= 0; at = inv->devices[at].parent) {
                if (i++ == BRIDGES_MAX)
                        return NULL;
                if (open[at])
                        top = &inv->devices[at];
        }
        return top;
}

/* Returns the function that stands for dev in its slot: dev if it isolates, otherwise the first function of the slot
 * that does not isolate. */
static const PciDevice *find_first(const Inventory *inv, const PciDevice *dev) {
        const PciDevice *first = dev;

        for (size_t i = inventory_device_index(inv, dev); !isolates(dev) && i-- > 0;) {
                const PciDevice *other = &inv->devices[i];

                if (!pci_address_same_slot(other->address, dev->address))
                        break;
                if (!isolates(other))
                        first = other;
        }
        return first;
}

static int number_of(PciAddress a) {
        return a.domain > DOMAIN_MAX ? -1 : (int) (a.domain << 16 | a.bus << 8 | a.slot << 3 | a.function);
}

int inventory_derive_groups(Inventory *inv) {
        _cleanup_free_ bool *open = calloc(inv->n_devices + 1, sizeof(*open));

        if (!open)
                return -ENOMEM;
        find_open(inv, open);
        for (size_t i = 0; i < inv->n_devices; i++) {
                PciDevice *dev = &inv->devices[i];
                const PciDevice *top = dev->path && *dev->path ? find_top(inv, open, dev) : NULL;

                /* Skip slots for mediated devices, which are no functions. */
                if (pci_device_is_slot(dev))
                        continue;
                dev->iommu_group = top ? number_of(find_first(inv, top)->address) : -1;
        }
        return inventory_finish(inv);
}
