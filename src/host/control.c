/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Controls a device by its files in sysfs (power, driver, reset), and reads whether the device responds. */

#include "control.h"

#include <errno.h>
#include <fcntl.h>

#include "host/health.h"
#include "host/holders.h"
#include "host/pcipath.h"
#include "model/inventory.h"
#include "sriov.h"
#include "util/strings.h"

/* Sets the attribute at path to value as sysfs_set() does, but returns 0 if the file does not exist: kernels without
 * power management lack it. */
static int set_if_present(const Sysfs *fs, const char *path, const char *value) {
        int r = sysfs_set(fs, path, value);

        return r == -ENOENT ? 0 : r;
}

int power_set_control(const Sysfs *fs, PciAddress address, bool on) {
        return set_if_present(fs, PCI_PATH(address, "power/control"), on ? "on" : "auto");
}

int power_set_d3cold(const Sysfs *fs, PciAddress address, bool allowed) {
        return set_if_present(fs, PCI_PATH(address, "d3cold_allowed"), allowed ? "1" : "0");
}

/*
 * pciback is the driver of Xen's dom0 for the devices of guests. Only the kernel's drivers/xen/xen-pciback/pci_stub.c
 * documents its interface.
 *
 * pciback has a list of slots, the addresses that it binds without driver_override. When it binds a device by
 * driver_override, it adds a slot (pcistub_seize()), which stays when the device is unbound. With the slot left, the
 * next probe would bind the device to pciback again.
 *
 * When a device is unbound while a guest has it, the kernel takes the device from the guest and only logs a warning
 * (pcistub_remove()).
 */
#define PCIBACK "sys/bus/pci/drivers/" PCIBACK_DRIVER

/* Returns -EUSERS when a guest of Xen has the device, or may have it; 0 when none has it, or the device is not bound to
 * pciback; or another negative errno. */
static int pciback_check_unused(const Sysfs *fs, PciAddress address) {
        const HolderQuery query = { .address = address, .group = -1, .is_vf = true };
        char driver[SYSFS_ATTRIBUTE_MAX];
        Holder holder;
        int r = sysfs_link_name(fs, PCI_PATH(address, "driver"), driver, sizeof(driver));

        if (r < 0 || !streq(driver, PCIBACK_DRIVER))
                return r == -ENOENT ? 0 : MIN(r, 0);
        r = holders_find(fs, &query, 1, &holder);
        return r > 0 ? -EUSERS : r;
}

/* Returns 1 when pciback has the slot, 0 when not, or a negative errno. The kernel shows only one page of slots, about
 * 315 (slots_show()). When that page is full and does not show the slot, nothing tells whether pciback has it: returns
 * the value `if_full`. */
static int has_slot(const Sysfs *fs, PciAddress address, int if_full) {
        const char *wanted = PCI_ADDRESS_STR(address);
        char slots[SYSFS_ATTRIBUTE_MAX];
        int n = sysfs_read(fs, PCIBACK "/slots", slots, sizeof(slots));
        size_t length;

        for (const char *line = slots; n > 0 && *line; line += length + (line[length] == '\n')) {
                length = strcspn(line, "\n");
                if (length == strlen(wanted) && strncmp(line, wanted, length) == 0)
                        return 1;
        }
        return n < 0 ? n : n >= SYSFS_ATTRIBUTE_MAX - 2 ? if_full : 0;
}

/* Prepares to unbind a device from pciback: removes the slot, unless pciback_check_unused() fails. The slot is removed
 * before the unbind: after a crash in between, the device is still bound, so the unbind is repeated, and with it the
 * removal. */
static int pciback_release(const Sysfs *fs, PciAddress address) {
        int r = pciback_check_unused(fs, address);

        if (r == 0)
                r = sysfs_write(fs, PCIBACK "/remove_slot", PCI_ADDRESS_STR(address));
        if (r == -ENOENT)
                return 0; /* pciback has no such slot */
        if (r < 0)
                return r;
        r = has_slot(fs, address, 0);
        return r > 0 ? -EIO : r;
}

/* Adds the slot of a device that is bound to pciback, unless there is one. 0 or a negative errno. */
static int pciback_add_slot(const Sysfs *fs, PciAddress address) {
        int r = has_slot(fs, address, 0);

        if (r != 0)
                return MIN(r, 0);
        r = sysfs_write(fs, PCIBACK "/new_slot", PCI_ADDRESS_STR(address));
        if (r < 0)
                return r;
        r = has_slot(fs, address, 1);
        return r == 0 ? -EIO : MIN(r, 0);
}

#define DRIVER_NAME_MAX 256

/* Sets name to the driver of the device, or to "" if it has none. Returns 0, or a negative errno: -ENOENT when the
 * device is gone. */
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

/* Sets value to the driver_override, or to "" if there is none, for which the kernel shows "(null)". Returns 0 or a
 * negative errno. */
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
        if (r < 0)
                return r;
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
        /* Unbinding a PF removes its VFs, and blocks while a guest has one of them open. */
        if (sriov_has_vf(fs, address, 0))
                return -ENOTEMPTY;
        r = streq(now, PCIBACK_DRIVER) ? pciback_release(fs, address) : 0;
        if (r < 0)
                return r;
        r = sysfs_write(fs, PCI_PATH(address, "driver/unbind"), PCI_ADDRESS_STR(address));
        if (r < 0)
                return r;
        r = current_driver(fs, address, now);
        if (r < 0)
                return r;
        return now[0] == '\0' ? 1 : -EIO;
}

/* Sets power/control of a device on a VFIO driver to "on" again, because vfio_pci_core_register_device() sets it to
 * "auto". A VF, which has no D3cold of its own, is left out. */
static int keep_awake(const Sysfs *fs, PciAddress address) {
        _cleanup_close_ int vfio = sysfs_open(fs, PCI_PATH(address, "vfio-dev"), O_PATH | O_DIRECTORY);
        _cleanup_close_ int physfn = sysfs_open(fs, PCI_PATH(address, "physfn"), O_PATH);

        return vfio >= 0 && physfn == -ENOENT ? power_set_control(fs, address, true) : 0;
}

/* Makes the kernel probe the device. `driver` must be the device's override. Returns 1; -ENODEV if `driver` is not
 * bound afterwards; or another negative errno. */
static int probe_driver(const Sysfs *fs, PciAddress address, const char *driver) {
        char now[DRIVER_NAME_MAX];
        int r = sysfs_write(fs, "sys/bus/pci/drivers_probe", PCI_ADDRESS_STR(address));

        if (r < 0)
                return r;
        r = current_driver(fs, address, now);
        if (r < 0)
                return r;
        /* The write succeeds even if no driver was bound (drivers/base/bus.c). */
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
        if (r < 0)
                return r;
        if (streq(before, driver))
                return probe_driver(fs, address, driver);
        r = driver_set_override(fs, address, driver);
        if (r < 0)
                return r;
        r = probe_driver(fs, address, driver);
        restored = driver_set_override(fs, address, before[0] ? before : NULL);
        if (r >= 0 && restored < 0)
                return restored;
        return r;
}

/* Sets the reset methods of the device to `methods`, separated by spaces. Returns 0; -EINVAL if the device lacks one of
 * them; or another negative errno. */
static int set_methods(const Sysfs *fs, PciAddress address, const char *methods) {
        const char *path = PCI_PATH(address, "reset_method");
        char now[SYSFS_ATTRIBUTE_MAX];
        int r = sysfs_read(fs, path, now, sizeof(now));

        if (r < 0)
                return r == -ENOENT ? -EINVAL : r; /* before Linux 5.15 the file does not exist */
        if (streq(now, methods))
                return 0;
        r = sysfs_write(fs, path, methods);
        if (r < 0)
                return r;
        r = sysfs_read(fs, path, now, sizeof(now));
        return r < 0 ? r : streq(now, methods) ? 0 : -EIO;
}

int reset_device(const Sysfs *fs, PciAddress address, const char *method, const char *before) {
        int r = sriov_has_vf(fs, address, 0) ? -ENOTEMPTY : pciback_check_unused(fs, address), restored = 0;

        if (r == 0 && method)
                r = set_methods(fs, address, method);
        if (r == 0)
                r = sysfs_write(fs, PCI_PATH(address, "reset"), "1");
        if (method && before)
                restored = set_methods(fs, address, before);
        if (r >= 0 && restored < 0)
                return restored;
        return r < 0 ? r : 1;
}

/*
 * Size in bytes of the standard header of config space. If a device does not respond, all bits of the header read as
 * one (PCI 3.0, 6.1).
 */
#define HEADER_SIZE 64

static bool all_ones(const uint8_t *bytes, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (bytes[i] != 0xff)
                        return false;
        return true;
}

int reset_check(const Sysfs *fs, PciAddress address) {
        _cleanup_close_ int fd = sysfs_open(fs, PCI_PATH(address, "config"), O_RDONLY);
        uint8_t header[HEADER_SIZE];
        char text[SYSFS_ATTRIBUTE_MAX];
        uint64_t vendor;
        ssize_t n;
        int r;

        if (fd < 0)
                return fd;
        n = pread(fd, header, sizeof(header), 0);
        if (n < 0)
                return -errno;
        if (n < 2 || all_ones(header, (size_t) n))
                return -EIO;
        /* The vendor ID register of a VF is all ones (SR-IOV 9.3.4.1). */
        if (all_ones(header, 2))
                return 0;
        r = sysfs_read(fs, PCI_PATH(address, "vendor"), text, sizeof(text));
        if (r < 0)
                return r;
        r = parse_hex(text, UINT16_MAX, &vendor);
        if (r < 0)
                return r;
        return vendor == (unsigned) (header[0] | header[1] << 8) ? 0 : -ENXIO;
}

void health_read(const Sysfs *fs, const PciDevice *dev, HealthReading *ret) {
        char power[SYSFS_ATTRIBUTE_MAX] = "", errors[SYSFS_ATTRIBUTE_MAX];

        /* First reset_check(), which wakes a sleeping device. Power state "unknown" is no error: an unbound device has
         * it. */
        *ret = (HealthReading) { .error = reset_check(fs, dev->address) };
        (void) sysfs_read(fs, PCI_PATH(dev->address, "power_state"), power, sizeof(power));
        ret->cold = streq(power, "D3cold");
        ret->power_error = streq(power, "error");
        if (ret->error == 0 && dev->type != PCI_TYPE_VF)
                ret->counted = sysfs_read(fs, PCI_PATH(dev->address, "aer_dev_fatal"), errors, sizeof(errors)) >= 0 &&
                               health_parse_errors(errors, &ret->fatal) == 0;
}
