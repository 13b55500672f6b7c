/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds PCI functions in sysfs paths and marks them as used by the host. */

#include <errno.h>

#include "critical-internal.h"
#include "util/strings.h"

static PciDevice *find_unmarked(Inventory *inv, PciAddress address) {
        const PciDevice *found = inventory_find(inv, address);
        PciDevice *dev = found ? inv->devices + inventory_device_index(inv, found) : NULL;

        return dev && !dev->critical ? dev : NULL;
}

static int mark_address(const Critical *c, PciAddress address, const char *chain) {
        PciDevice *dev = find_unmarked(c->inv, address);

        if (dev)
                dev->critical_remedy = c->remedy;
        return dev ? string_replace(&dev->critical, "%s <- %s", PCI_ADDRESS_STR(address), chain) : 0;
}

/* Finds the next component of *path that is the address of a PCI function, and moves *path behind it. */
static bool next_function(const char **path, PciAddress *ret) {
        while (**path) {
                char name[PCI_ADDRESS_STRING_MAX];
                const char *component = *path;
                size_t n = strcspn(component, "/");

                *path += n + (component[n] == '/');
                if (n >= sizeof(name))
                        continue;
                memcpy(name, component, n);
                name[n] = '\0';
                if (pci_address_parse(name, ret) >= 0)
                        return true;
        }
        return false;
}

/* Marks the functions in path above address. One of them can be a VMD controller: the disks below it are in a PCI
 * domain of their own and not in the inventory. */
static int mark_upstream(const Critical *c, const char *path, PciAddress address, const char *chain) {
        _cleanup_free_ char *longer = NULL;
        PciAddress above;
        int r = string_replace(&longer, "%s <- %s", PCI_ADDRESS_STR(address), chain);

        while (r >= 0 && next_function(&path, &above))
                if (!pci_address_equal(above, address))
                        r = mark_address(c, above, longer);
        return r;
}

int critical_mark_function(const Critical *c, const char *path, PciAddress address, const char *chain) {
        const PciDevice *dev = inventory_find(c->inv, address);
        int r;

        if (dev && dev->critical)
                return 0;
        r = mark_address(c, address, chain);
        if (r >= 0)
                r = mark_upstream(c, path, address, chain);
        return r >= 0 && dev && dev->type == PCI_TYPE_VF ? mark_address(c, dev->physfn, dev->critical) : MIN(r, 0);
}

bool critical_last_function(const char *path, PciAddress *ret) {
        bool found = false;

        while (next_function(&path, ret))
                found = true;
        return found;
}
