/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Binds and unbinds devices by driver_override. */

#include "driver.h"

#include <errno.h>
#include <fcntl.h>

#include "host/pcipath.h"
#include "model/inventory.h"
#include "pciback.h"
#include "power.h"
#include "sriov.h"

#define DRIVER_NAME_MAX 256

/* Sets name to the driver of the device, "" for none. -ENOENT: the device itself was removed, not only the link. */
static int current_driver(const Sysfs *fs, PciAddress address, char name[static DRIVER_NAME_MAX]) {
        _cleanup_close_ int dir = sysfs_open(fs, PCI_PATH(address, ""), O_PATH | O_DIRECTORY);
        int r;

        if (dir < 0)
                return dir;
        r = sysfs_link_name_at(dir, "driver", name, DRIVER_NAME_MAX);
        if (r == -ENOENT)
                name[0] = '\0';
        return r == -ENOENT ? 0 : MIN(r, 0);
}

/* Sets value to the override, "" when it is not set, which the kernel shows as "(null)" (domain.md B7). */
static int current_override(const Sysfs *fs, PciAddress address, char value[static DRIVER_NAME_MAX]) {
        int r;

        r = sysfs_read(fs, PCI_PATH(address, "driver_override"), value, DRIVER_NAME_MAX);
        if (r >= 0 && streq(value, "(null)"))
                value[0] = '\0';
        return r < 0 ? r : 0;
}

int driver_set_override(const Sysfs *fs, PciAddress address, const char *driver) {
        char now[DRIVER_NAME_MAX];
        int r = current_override(fs, address, now);

        if (r < 0)
                return r;
        if (streq(now, driver ?: ""))
                return 0;
        /* The kernel ignores an empty write; a newline clears the override. */
        r = sysfs_write(fs, PCI_PATH(address, "driver_override"), driver ?: "\n");
        if (r >= 0)
                r = current_override(fs, address, now);
        if (r < 0)
                return r;
        return streq(now, driver ?: "") ? 1 : -EIO;
}

int driver_unbind(const Sysfs *fs, PciAddress address, const char *driver, const char *instead) {
        char now[DRIVER_NAME_MAX];
        int r = current_driver(fs, address, now);

        if (r < 0)
                return r;
        if (now[0] == '\0' || (instead && streq(now, instead)))
                return 0;
        if (!streq(now, driver))
                return -EBUSY;
        /* Unbinding the PF would remove its VFs, and the write would block while a guest has a VF open (domain.md C9,
         * C10). */
        if (sriov_has_vf(fs, address, 0))
                return -ENOTEMPTY;
        r = streq(now, PCIBACK_DRIVER) ? pciback_release(fs, address) : 0;
        if (r >= 0)
                r = sysfs_write(fs, PCI_PATH(address, "driver/unbind"), PCI_ADDRESS_STR(address));
        if (r >= 0)
                r = current_driver(fs, address, now);
        if (r < 0)
                return r;
        return now[0] == '\0' ? 1 : -EIO;
}

/* vfio_pci_core_register_device() sets power/control to "auto". A VF has no D3cold of its own. */
static int keep_awake(const Sysfs *fs, PciAddress address) {
        _cleanup_close_ int vfio = sysfs_open(fs, PCI_PATH(address, "vfio-dev"), O_PATH | O_DIRECTORY);
        _cleanup_close_ int physfn = sysfs_open(fs, PCI_PATH(address, "physfn"), O_PATH);

        return vfio >= 0 && physfn == -ENOENT ? power_set_control(fs, address, "on") : 0;
}

/* Probes the device. Its override must already be driver. */
static int probe(const Sysfs *fs, PciAddress address, const char *driver) {
        char now[DRIVER_NAME_MAX];
        int r = sysfs_write(fs, "sys/bus/pci/drivers_probe", PCI_ADDRESS_STR(address));

        if (r >= 0)
                r = current_driver(fs, address, now);
        if (r < 0)
                return r;
        /* The write succeeds even if no driver was bound (domain.md B2). */
        if (!streq(now, driver))
                return -ENODEV;
        r = keep_awake(fs, address);
        return r < 0 ? r : 1;
}

int driver_bind(const Sysfs *fs, PciAddress address, const char *driver) {
        char now[DRIVER_NAME_MAX], before[DRIVER_NAME_MAX];
        int r = current_driver(fs, address, now), restored;

        if (r < 0)
                return r;
        if (streq(now, driver))
                return streq(driver, PCIBACK_DRIVER) ? pciback_add_slot(fs, address) : 0;
        if (now[0] != '\0')
                return -EBUSY;
        r = current_override(fs, address, before);
        if (r >= 0 && streq(before, driver))
                return probe(fs, address, driver);
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
