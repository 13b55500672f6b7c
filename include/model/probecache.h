/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What only a driver can tell of a device, one number each. That can take minutes, so it is asked by a child and kept
 * beside the inventory, whose facts are read at one moment.
 */

#include "model/inventory.h"

typedef struct ProbeAnswer {
        PciAddress address;
        uint64_t instance; /* PciDevice.instance: a card that was plugged in later is another one */
        uint32_t value;    /* what stands for "unknown" is for who asks to say */
        bool asked;        /* no more is to be asked */
} ProbeAnswer;

typedef struct ProbeCache {
        ProbeAnswer *answers;
        size_t n;
} ProbeCache;

void probe_cache_done(ProbeCache *l);
/* The one of this very card, or NULL. Good until the list grows. */
ProbeAnswer *probe_cache_find(const ProbeCache *l, const PciDevice *dev);
/* Takes it in when it is new: unknown, not asked. NULL: out of memory. */
ProbeAnswer *probe_cache_add(ProbeCache *l, const PciDevice *dev, uint32_t unknown);
/* Forgets what is known of whatever is at that address. */
void probe_cache_remove(ProbeCache *l, PciAddress address);
/* All are to be asked once more; what is known of them stands until then. */
void probe_cache_ask_again(ProbeCache *l);
