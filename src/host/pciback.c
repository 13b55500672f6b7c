/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handles the slots of pciback. */

#include "pciback.h"

#include <errno.h>

#include "host/holders.h"
#include "host/pcipath.h"
#include "model/inventory.h"

#define DIRECTORY "sys/bus/pci/drivers/" PCIBACK_DRIVER

int pciback_check_unused(const Sysfs *fs, PciAddress address) {
        const HolderQuery query = { .address = address, .group = -1, .is_vf = true };
        char driver[SYSFS_ATTRIBUTE_MAX];
        Holder holder;
        int r = sysfs_link_name(fs, PCI_PATH(address, "driver"), driver, sizeof(driver));

        if (r < 0 || !streq(driver, PCIBACK_DRIVER))
                return r == -ENOENT ? 0 : MIN(r, 0);
        r = holders_find(fs, &query, 1, &holder);
        return r > 0 ? -EUSERS : r;
}

/* Returns 1, 0 or a negative errno. The kernel's slots_show() shows one page, 315 slots: the result is if_full when the
 * list has this length and lacks the address, which may follow. */
static int has_slot(const Sysfs *fs, PciAddress address, int if_full) {
        const char *wanted = PCI_ADDRESS_STR(address);
        char slots[SYSFS_ATTRIBUTE_MAX];
        int n = sysfs_read(fs, DIRECTORY "/slots", slots, sizeof(slots));
        size_t length;

        for (const char *line = slots; n > 0 && *line; line += length + (line[length] == '\n')) {
                length = strcspn(line, "\n");
                if (length == strlen(wanted) && strncmp(line, wanted, length) == 0)
                        return 1;
        }
        return n < 0 ? n : n >= SYSFS_ATTRIBUTE_MAX - 2 ? if_full : 0;
}

int pciback_release(const Sysfs *fs, PciAddress address) {
        int r = pciback_check_unused(fs, address);

        if (r == 0)
                r = sysfs_write(fs, DIRECTORY "/remove_slot", PCI_ADDRESS_STR(address));
        if (r == -ENOENT)
                return 0; /* it has none */
        if (r >= 0)
                r = has_slot(fs, address, 0);
        return r > 0 ? -EIO : r;
}

int pciback_add_slot(const Sysfs *fs, PciAddress address) {
        int r = has_slot(fs, address, 0);

        if (r != 0)
                return MIN(r, 0);
        r = sysfs_write(fs, DIRECTORY "/new_slot", PCI_ADDRESS_STR(address));
        if (r >= 0)
                r = has_slot(fs, address, 1);
        return r == 0 ? -EIO : MIN(r, 0);
}
