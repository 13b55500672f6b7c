/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/probecache.h"

#include "util/strings.h"

void probe_cache_done(ProbeCache *l) {
        free(l->answers);
        *l = (ProbeCache){ 0 };
}

ProbeAnswer *probe_cache_find(const ProbeCache *l, const PciDevice *dev) {
        for (size_t i = 0; i < l->n; i++)
                if (pci_address_equal(l->answers[i].address, dev->address) && l->answers[i].instance == dev->instance)
                        return &l->answers[i];
        return NULL;
}

ProbeAnswer *probe_cache_add(ProbeCache *l, const PciDevice *dev, uint32_t unknown) {
        ProbeAnswer *known = probe_cache_find(l, dev);

        if (known)
                return known;
        probe_cache_remove(l, dev->address);
        if (ARRAY_RESERVE(l->answers, l->n) < 0)
                return NULL;
        l->answers[l->n] = (ProbeAnswer){ .address = dev->address, .instance = dev->instance, .value = unknown };
        return &l->answers[l->n++];
}

void probe_cache_remove(ProbeCache *l, PciAddress address) {
        for (size_t i = 0; i < l->n; i++)
                if (pci_address_equal(l->answers[i].address, address)) {
                        l->answers[i] = l->answers[--l->n];
                        return;
                }
}

void probe_cache_ask_again(ProbeCache *l) {
        for (size_t i = 0; i < l->n; i++)
                l->answers[i].asked = false;
}
