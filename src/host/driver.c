/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Binding by driver_override. */

#include "host/driver.h"

#include <errno.h>
#include <stdio.h>

#define DRIVER_NAME_MAX 256
#define PATH_SIZE       128

static void device_path(PciAddress address, const char *attribute, char path[static PATH_SIZE]) {
        (void) snprintf(path, PATH_SIZE, "sys/bus/pci/devices/%s/%s", PCI_ADDRESS_STR(address), attribute);
}

/* The driver it is bound to; empty when none. */
static int current_driver(const Sysfs *fs, PciAddress address, char name[static DRIVER_NAME_MAX]) {
        char path[PATH_SIZE];
        int r;

        device_path(address, "driver", path);
        r = sysfs_link_name(fs, path, name, DRIVER_NAME_MAX);
        if (r == -ENOENT) {
                name[0] = '\0';
                /* The link is also absent when the whole device is. */
                device_path(address, "vendor", path);
                r = sysfs_read(fs, path, (char[16]){ 0 }, 16);
        }
        return r < 0 ? r : 0;
}

/* The override; empty when not set, which the kernel shows as "(null)" (domain.md B7). */
static int current_override(const Sysfs *fs, PciAddress address, char value[static DRIVER_NAME_MAX]) {
        char path[PATH_SIZE];
        int r;

        device_path(address, "driver_override", path);
        r = sysfs_read(fs, path, value, DRIVER_NAME_MAX);
        if (r >= 0 && streq(value, "(null)"))
                value[0] = '\0';
        return r < 0 ? r : 0;
}

int driver_set_override(const Sysfs *fs, PciAddress address, const char *driver) {
        char path[PATH_SIZE], now[DRIVER_NAME_MAX];
        int r = current_override(fs, address, now);

        if (r < 0)
                return r;
        if (streq(now, driver ?: ""))
                return 0;
        device_path(address, "driver_override", path);
        /* An empty write does nothing; a newline clears it. */
        r = sysfs_write(fs, path, driver ?: "\n");
        if (r >= 0)
                r = current_override(fs, address, now);
        if (r < 0)
                return r;
        return streq(now, driver ?: "") ? 1 : -EIO;
}

int driver_unbind(const Sysfs *fs, PciAddress address, const char *driver, const char *instead) {
        char path[PATH_SIZE], now[DRIVER_NAME_MAX];
        int r = current_driver(fs, address, now);

        if (r < 0)
                return r;
        if (now[0] == '\0' || (instead && streq(now, instead)))
                return 0;
        if (!streq(now, driver))
                return -EBUSY;
        device_path(address, "driver/unbind", path);
        r = sysfs_write(fs, path, PCI_ADDRESS_STR(address));
        if (r >= 0)
                r = current_driver(fs, address, now);
        if (r < 0)
                return r;
        return now[0] == '\0' ? 1 : -EIO;
}

/* The override allows exactly driver already. */
static int probe(const Sysfs *fs, PciAddress address, const char *driver) {
        char now[DRIVER_NAME_MAX];
        int r = sysfs_write(fs, "sys/bus/pci/drivers_probe", PCI_ADDRESS_STR(address));

        if (r >= 0)
                r = current_driver(fs, address, now);
        if (r < 0)
                return r;
        /* The write succeeds also when nothing was bound (B2). */
        return streq(now, driver) ? 1 : -ENODEV;
}

int driver_bind(const Sysfs *fs, PciAddress address, const char *driver) {
        char now[DRIVER_NAME_MAX], before[DRIVER_NAME_MAX];
        int r = current_driver(fs, address, now), restored;

        if (r < 0)
                return r;
        if (streq(now, driver))
                return 0;
        if (now[0] != '\0')
                return -EBUSY;
        r = current_override(fs, address, before);
        if (r >= 0)
                r = driver_set_override(fs, address, driver);
        if (r < 0)
                return r;
        r = probe(fs, address, driver);
        restored = driver_set_override(fs, address, before[0] ? before : NULL);
        if (r >= 0 && restored < 0)
                return restored;
        return r;
}
