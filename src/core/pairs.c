/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which GPU goes with which NIC in a set of devices. */

#include "core/search.h"

static int pair_compare(const void *a, const void *b) {
        const PlanPair *x = a, *y = b;
        int c = pci_address_compare(x->gpu, y->gpu);

        return c != 0 ? c : pci_address_compare(x->nic, y->nic);
}

size_t search_pairs(const PlanContext *c, const uint32_t *devices, size_t n, PlanPair *pairs) {
        uint32_t gpus[REQUEST_DEVICES_MAX], nics[REQUEST_DEVICES_MAX];
        unsigned used[REQUEST_DEVICES_MAX] = { 0 };
        bool paired[REQUEST_DEVICES_MAX] = { false };
        size_t n_gpus = 0, n_nics = 0, n_larger, n_smaller, n_pairs = 0;
        const uint32_t *larger, *smaller;

        for (size_t i = 0; i < n; i++) {
                const PciDevice *dev = &c->inventory->devices[devices[i]];

                if (pci_device_is_gpu(dev))
                        gpus[n_gpus++] = devices[i];
                else if (pci_device_is_nic(dev))
                        nics[n_nics++] = devices[i];
        }
        if (n_gpus == 0 || n_nics == 0)
                return 0;
        larger = n_gpus >= n_nics ? gpus : nics;
        smaller = n_gpus >= n_nics ? nics : gpus;
        n_larger = MAX(n_gpus, n_nics);
        n_smaller = MIN(n_gpus, n_nics);
        for (Distance d = DISTANCE_PIX; d <= DISTANCE_SYS; d++)
                for (size_t i = 0; i < n_larger; i++) {
                        size_t best = n_smaller;

                        for (size_t j = 0; j < n_smaller && !paired[i]; j++)
                                if (used[j] < (n_larger + n_smaller - 1) / n_smaller &&
                                    (best == n_smaller || used[j] < used[best]) &&
                                    place_distance(&c->locality->places[larger[i]], &c->locality->places[smaller[j]]) <=
                                            d)
                                        best = j;
                        if (best == n_smaller)
                                continue;
                        paired[i] = true;
                        used[best]++;
                        pairs[n_pairs++] = (PlanPair){
                                .gpu = c->inventory->devices[n_gpus >= n_nics ? larger[i] : smaller[best]].address,
                                .nic = c->inventory->devices[n_gpus >= n_nics ? smaller[best] : larger[i]].address,
                                .distance = d,
                        };
                }
        qsort(pairs, n_pairs, sizeof(*pairs), pair_compare);
        return n_pairs;
}
