/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the devices of allocations after a boot that renumbered PCI buses. A card is identified by its ids and serial
 * number. If the serial number is unknown, the slots on the path to it identify the card, because slots do not depend
 * on bus numbers. A VF is identified by its PF and VF index. A device that matches two cards matches none. Pure.
 */

#include "ledger/ledger.h"

typedef struct Rematch {
        Allocation *allocation;
        size_t index;         /* index in allocation->devices */
        const PciDevice *now; /* the device's card in the inventory; NULL: the card was not found, and a device of
                                 another allocation was found at its address */
} Rematch;

/* Returns true when dev may be the card of d as far as all but the serial number tell, so that reading the serial
 * number of dev is worthwhile. */
bool rematch_may_be(const AllocationDevice *d, const PciDevice *dev);
/* Returns true when the card of d is at its address and path. */
bool rematch_is_home(const AllocationDevice *d, const Inventory *inv);
/*
 * Finds the devices that are no longer at the address in their allocation, in the order of the allocations. The caller
 * frees *ret. Apply all entries together, because cards may have swapped addresses. 0 or -ENOMEM.
 */
int rematch_find(Allocation *const *allocations, size_t n_allocations, const Inventory *inv, Rematch **ret,
                 size_t *ret_n);
/* Returns true when the paths are equal except for bus numbers: "pci0000:80/0000:81:02.0" and
 * "pci0000:80/0000:90:02.0". */
bool rematch_same_slots(const char *a, const char *b);
