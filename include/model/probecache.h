/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Facts that only a device's driver can report, one number for each device. Asking can take minutes, so a child process
 * asks and the answers are kept beside the inventory, whose facts are all read at one moment.
 */

#include "model/inventory.h"

typedef struct ProbeAnswer {
        PciAddress address;
        uint64_t instance; /* PciDevice.instance, which changes when a card is replugged */
        uint32_t value;    /* the caller of probe_cache_add() chooses the number for "unknown" */
        bool asked;        /* asked already: not to be asked again */
} ProbeAnswer;

typedef struct ProbeCache {
        ProbeAnswer *answers;
        size_t n;
} ProbeCache;

void probe_cache_done(ProbeCache *l);
/* Returns the answer about this device with the same instance, or NULL. Valid until the cache grows. */
ProbeAnswer *probe_cache_find(const ProbeCache *l, const PciDevice *dev);
/*
 * Returns the answer about the device; adds one with value unknown, not asked, if there is none. NULL: out of memory.
 */
ProbeAnswer *probe_cache_add(ProbeCache *l, const PciDevice *dev, uint32_t unknown);
/* Removes the answer about the device at the address. */
void probe_cache_remove(ProbeCache *l, PciAddress address);
/* Marks all devices as not asked. Their values stay until the new answers arrive. */
void probe_cache_ask_again(ProbeCache *l);
