/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The PCI drivers that are registered with the kernel, and the VFIO variant driver for a device (from
 * modules.alias). */

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>

#include "config/config.h"
#include "model/inventory.h"
#include "util/strings.h"

int inventory_add_variant(Inventory *inv, const char *pattern, const char *driver, bool loaded) {
        VfioVariant v = { 0 };

        if (inv->n_variants >= INVENTORY_VARIANTS_MAX)
                return -E2BIG;
        if (ARRAY_RESERVE(inv->variants, inv->n_variants) < 0)
                return -ENOMEM;
        v = (VfioVariant) { .pattern = strdup(pattern), .driver = strdup(driver), .loaded = loaded };
        if (!v.pattern || !v.driver) {
                free(v.pattern);
                free(v.driver);
                return -ENOMEM;
        }
        inv->variants[inv->n_variants++] = v;
        return 0;
}

int inventory_copy_drivers(Inventory *to, const Inventory *from) {
        int r = 0;

        to->drivers_known = from->drivers_known;
        to->drivers = calloc(from->n_drivers + 1, sizeof(*to->drivers));
        if (!to->drivers)
                return -ENOMEM;
        for (; to->n_drivers < from->n_drivers; to->n_drivers++)
                if (string_copy(&to->drivers[to->n_drivers], from->drivers[to->n_drivers]) < 0)
                        return -ENOMEM;
        for (size_t i = 0; r == 0 && i < from->n_variants; i++)
                r = inventory_add_variant(to, from->variants[i].pattern, from->variants[i].driver,
                                          from->variants[i].loaded);
        return r;
}

void inventory_swap_drivers(Inventory *a, Inventory *b) {
        Inventory before = *a;

        a->drivers = b->drivers;
        a->n_drivers = b->n_drivers;
        a->drivers_known = b->drivers_known;
        a->variants = b->variants;
        a->n_variants = b->n_variants;
        b->drivers = before.drivers;
        b->n_drivers = before.n_drivers;
        b->drivers_known = before.drivers_known;
        b->variants = before.variants;
        b->n_variants = before.n_variants;
}

bool inventory_may_have_driver(const Inventory *inv, const char *name) {
        for (size_t i = 0; i < inv->n_drivers; i++)
                if (streq(inv->drivers[i], name))
                        return true;
        return !inv->drivers_known;
}

static unsigned open_parts(const char *pattern) {
        unsigned n = 0;

        for (; *pattern; pattern++)
                n += *pattern == '*';
        return n;
}

/* Returns the VFIO variant whose alias matches the device most specifically; NULL: none. `loaded`: consider only
 * drivers that are loaded. */
static const VfioVariant *find_variant(const Inventory *inv, const PciDevice *dev, bool loaded) {
        const VfioVariant *best = NULL;
        char name[64];

        /* Format the device's modalias as the kernel does, but without "pci:". The last part, i%02X, is the lowest byte
         * of the class. */
        (void) snprintf(name, sizeof(name), "v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X", dev->vendor, dev->device,
                        dev->subsystem_vendor, dev->subsystem_device, dev->class >> 16 & 0xff, dev->class >> 8 & 0xff,
                        dev->class & 0xff);
        for (size_t i = 0; i < inv->n_variants; i++) {
                const VfioVariant *v = &inv->variants[i];

                if ((v->loaded || !loaded) && fnmatch(v->pattern, name, 0) == 0 &&
                    (!best || open_parts(v->pattern) < open_parts(best->pattern)))
                        best = v;
        }
        return best;
}

const char *inventory_variant_driver(const Inventory *inv, const PciDevice *dev) {
        const VfioVariant *v = find_variant(inv, dev, true);

        return v ? v->driver : NULL;
}

/* The name of a driver may have '-' where the name of its module has '_'. */
bool driver_is_coherent(const char *driver) {
        const char *at = COHERENT_DRIVER;

        for (; driver && *driver && (*driver == *at || (*driver == '-' && *at == '_')); driver++)
                at++;
        return driver && !*driver && !*at;
}

bool inventory_is_coherent(const Inventory *inv, const PciDevice *dev) {
        const VfioVariant *v = find_variant(inv, dev, false);

        return (v && driver_is_coherent(v->driver)) || inventory_gpu_has_memory_node(inv, dev);
}

int inventory_explain_lost_memory(const Inventory *inv, const PciDevice *dev, const char *driver, char **ret,
                                  const char **ret_remedy) {
        const VfioVariant *named = find_variant(inv, dev, false);
        const char *address = PCI_ADDRESS_STR(dev->address);

        *ret = NULL;
        *ret_remedy = NULL;
        if (driver_is_coherent(driver) || !inventory_is_coherent(inv, dev))
                return 0;
        if (!named || !driver_is_coherent(named->driver)) {
                *ret_remedy = "Use a kernel with CONFIG_NVGRACE_GPU_VFIO_PCI, Linux 6.8 or later.";
                return string_replace(ret,
                                      "A guest gets %s without its memory: modules.alias of this kernel does not "
                                      "name " COHERENT_DRIVER " for it.",
                                      address);
        }
        if (!named->loaded) {
                *ret_remedy = "Load it: systemctl start modprobe@" COHERENT_DRIVER ".service.";
                return string_replace(ret,
                                      "A guest gets %s without its memory: modules.alias names " COHERENT_DRIVER
                                      " for it, which is not loaded.",
                                      address);
        }
        *ret_remedy = "Set VfioDriver=auto in the configuration, and allocate anew.";
        return string_replace(ret,
                              "A guest gets %s without its memory: its driver is %s instead of " COHERENT_DRIVER ".",
                              address, driver ?: "none");
}

const char *config_driver(const Config *config, const Inventory *inv, const PciDevice *dev) {
        const char *own = config->variants ? inventory_variant_driver(inv, dev) : NULL;

        return own ?: config->vfio_driver;
}
