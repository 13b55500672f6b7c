/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records which devices are withdrawn by a configuration with broken lines, or without a file. */

#include "config/withdrawn.h"

#include <errno.h>

#include "util/strings.h"

void withdrawn_done(WithdrawnList *l) {
        for (size_t i = 0; i < l->n; i++)
                free(l->devices[i].pool);
        free(l->devices);
        *l = (WithdrawnList) { 0 };
}

/* Returns the pool that offers the device in the policy `before`, or the pool that the list has for the device; NULL:
 * none. */
static const char *former_pool(const WithdrawnList *l, const Policy *before, const PciDevice *dev) {
        if (policy_offers(before, dev))
                return policy_pool(before, dev)->name;
        for (size_t i = 0; i < l->n; i++)
                if (pci_address_equal(l->devices[i].address, dev->address))
                        return l->devices[i].pool;
        return NULL;
}

static int add_withdrawn(WithdrawnList *l, const PciDevice *dev, const char *pool) {
        char *name = strdup(pool);

        if (!name || ARRAY_RESERVE(l->devices, l->n) < 0) {
                free(name);
                return -ENOMEM;
        }
        l->devices[l->n++] = (WithdrawnDevice) { dev->address, name };
        return 0;
}

int withdrawn_update(WithdrawnList *l, const Policy *before, const Policy *now) {
        WithdrawnList fresh = { 0 };
        bool is_broken = now->config->n_problems > 0 || now->config->n_files == 0;
        size_t n = is_broken ? now->inventory->n_devices : 0;

        for (size_t i = 0; i < n; i++) {
                const PciDevice *dev = &now->inventory->devices[i];
                const char *pool = policy_offers(now, dev) ? NULL : former_pool(l, before, dev);

                if (pool && add_withdrawn(&fresh, dev, pool) < 0) {
                        withdrawn_done(&fresh);
                        return -ENOMEM;
                }
        }
        withdrawn_done(l);
        *l = fresh;
        return 0;
}
