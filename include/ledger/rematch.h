/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the devices of allocations after a boot that renumbered PCI buses. A card is identified by its ids and serial
 * number. If its serial number is unknown or other cards have the same one, the slots on the path to the card decide,
 * because slots do not depend on bus numbers. A VF is identified by its PF and VF index. A device that matches two
 * cards matches none. Pure.
 */

#include "ledger/ledger.h"

typedef struct Rematch {
        Allocation *allocation;
        size_t index;         /* index in allocation->devices */
        const PciDevice *now; /* the card of the device. NULL: the card was not found, and the card of another entry now
                                 has the address of the device or of its PF, or is a VF whose PF has the address of the
                                 device */
} Rematch;

/* Returns true when dev has the ids, the slot number and the function number of `d`; for a VF, the slot and function
 * number of its PF, and the VF index. Only then is the serial number of dev worth reading. */
bool rematch_may_be(const AllocationDevice *d, const PciDevice *dev);
/* Returns true when the device at the address of `d` is the allocated card, at the same path as before. */
bool rematch_is_home(const AllocationDevice *d, const Inventory *inv);
/* Finds the devices whose address or path changed, and the devices that must give up their address to the card of
 * another entry, in the order of the allocations. Apply all entries together, because cards may have swapped addresses.
 * 0 or -ENOMEM. The caller frees *ret. */
int rematch_find(Allocation *const *allocations, size_t n_allocations, const Inventory *inv, Rematch **ret,
                 size_t *ret_n);
/* Returns true when both paths go through the same slots. The bus numbers of bridges and devices are ignored, but not
 * that of the root: "pci0000:80/0000:81:02.0" and "pci0000:80/0000:90:02.0" are equal. */
bool rematch_same_slots(const char *a, const char *b);
