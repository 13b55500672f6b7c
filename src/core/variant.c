/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Which VFIO driver is made for a device, as the kernel's modules say. */

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>

#include "core/inventory.h"
#include "util/strings.h"

int inventory_add_variant(Inventory *inv, const char *pattern, const char *driver) {
        VfioVariant v = { 0 };

        if (inv->n_variants >= INVENTORY_VARIANTS_MAX)
                return -E2BIG;
        if (ARRAY_RESERVE(inv->variants, inv->n_variants) < 0)
                return -ENOMEM;
        v = (VfioVariant){ .pattern = strdup(pattern), .driver = strdup(driver) };
        if (!v.pattern || !v.driver) {
                free(v.pattern);
                free(v.driver);
                return -ENOMEM;
        }
        inv->variants[inv->n_variants++] = v;
        return 0;
}

int inventory_copy_variants(Inventory *to, const Inventory *from) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < from->n_variants; i++)
                r = inventory_add_variant(to, from->variants[i].pattern, from->variants[i].driver);
        return r;
}

static unsigned open_parts(const char *pattern) {
        unsigned n = 0;

        for (; *pattern; pattern++)
                n += *pattern == '*';
        return n;
}

const char *inventory_variant_driver(const Inventory *inv, const PciDevice *dev) {
        const VfioVariant *best = NULL;
        char name[64];

        /* As the kernel names it in modalias; the interface byte of the class comes last. */
        (void) snprintf(name, sizeof(name), "v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X", dev->vendor, dev->device,
                        dev->subsystem_vendor, dev->subsystem_device, dev->class >> 16 & 0xff, dev->class >> 8 & 0xff,
                        dev->class & 0xff);
        for (size_t i = 0; i < inv->n_variants; i++) {
                const VfioVariant *v = &inv->variants[i];

                if (fnmatch(v->pattern, name, 0) == 0 && (!best || open_parts(v->pattern) < open_parts(best->pattern)))
                        best = v;
        }
        return best ? best->driver : NULL;
}
