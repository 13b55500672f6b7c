/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Where the hardware of allocations is after a boot that gave buses other numbers. A card is known by its ids and its
 * serial number; where that is not known, by the slots on the way to it, which are the same whatever the buses are
 * called. A VF is known by its PF and its number. What could be two cards is none. Pure.
 */

#include "ledger/ledger.h"

typedef struct Rematch {
        Allocation *allocation;
        size_t index;         /* of its devices */
        const PciDevice *now; /* NULL: not found, and another one that was found is where it was */
} Rematch;

/* dev may be this one's card, as far as shows without a serial number: that of dev should be read. */
bool rematch_may_be(const AllocationDevice *d, const PciDevice *dev);
/* It is where it was, with nothing against it. */
bool rematch_is_home(const AllocationDevice *d, const Inventory *inv);
/*
 * What is not where the ledger has it, those of an allocation one after the other; caller frees. All of it is to be
 * taken at once, for cards may have changed places. 0 or -ENOMEM.
 */
int rematch_find(const Ledger *l, const Inventory *inv, Rematch **ret, size_t *ret_n);
/* The same place but for the numbers of buses: "pci0000:80/0000:81:02.0" and "pci0000:80/0000:90:02.0". */
bool rematch_same_slots(const char *a, const char *b);
