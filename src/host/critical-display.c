/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Sets PciDevice.console of the device that has the framebuffer of the console. Marks the BMC and the display
 * controller of its remote console as critical. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "critical-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

#define GRAPHICS "sys/class/graphics"
#define CONSOLES "sys/class/vtconsole"

#define CLASS_IPMI    0x0c07U
#define CLASS_DISPLAY 0x03U

/* Display controllers of BMCs. */
static const struct {
        uint16_t vendor;
        uint16_t devices[8]; /* 0 ends the list; an empty list stands for all devices of the vendor */
} bmc_displays[] = {
        { 0x1a03, { 0 } },                                                         /* ASPEED */
        { 0x102b, { 0x0522, 0x0530, 0x0532, 0x0533, 0x0534, 0x0536, 0x0538, 0 } }, /* Matrox G200e family */
        { 0x19e5, { 0x1711, 0 } },                                                 /* Huawei iBMC */
};

static bool is_bmc_display(const PciDevice *dev) {
        for (size_t i = 0; dev->class >> 16 == CLASS_DISPLAY && i < ELEMENTSOF(bmc_displays); i++) {
                const uint16_t *device = bmc_displays[i].devices;

                if (dev->vendor != bmc_displays[i].vendor)
                        continue;
                while (*device && *device != dev->device)
                        device++;
                return *device || device == bmc_displays[i].devices;
        }
        return false;
}

static int mark_bmc(const Critical *c) {
        int r = 0;

        for (size_t i = 0; i < c->inv->n_devices; i++) {
                const PciDevice *dev = &c->inv->devices[i];

                if (dev->class >> 8 == CLASS_IPMI)
                        r = critical_mark_function(c, dev->path ?: "", dev->address, "BMC (IPMI)");
                else if (is_bmc_display(dev))
                        r = critical_mark_function(c, dev->path ?: "", dev->address, "BMC (remote console)");
                if (r < 0)
                        return r;
        }
        return r;
}

/* Finds whether the kernel has a console driver for framebuffers. Does not read "bind", which tells whether the console
 * driver is in use: the read waits for the console lock, which a failing display driver may hold. */
static int has_framebuffer_console(const Critical *c, bool *ret) {
        _cleanup_names_ char **names = NULL;
        size_t n;
        int r = critical_list(c, CONSOLES, &names, &n);

        *ret = false;
        if (r < 0)
                return r;
        for (size_t i = 0; i < n && !*ret; i++) {
                _cleanup_free_ char *path = string_format(CONSOLES "/%s/name", names[i]);
                char name[SYSFS_ATTRIBUTE_MAX];

                if (!path)
                        return -ENOMEM;
                r = sysfs_read(c->fs, path, name, sizeof(name));
                if (r < 0)
                        r = critical_unreadable(c, path, r);
                else
                        *ret = strstr(name, "frame buffer");
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Sets *ret to the number of the first framebuffer, or to -1. The console uses the first one, unless the kernel option
 * fbcon=map: names another. */
static int first_framebuffer(const Critical *c, int *ret) {
        _cleanup_names_ char **names = NULL;
        size_t n;
        int r = critical_list(c, GRAPHICS, &names, &n);

        *ret = -1;
        for (size_t i = 0; i < n; i++) {
                uint64_t number;

                if (strncmp(names[i], "fb", 2) != 0 || parse_unsigned(names[i] + 2, INT16_MAX, &number) < 0)
                        continue;
                if (*ret < 0 || (int) number < *ret)
                        *ret = (int) number;
        }
        return r;
}

static int mark_framebuffer(const Critical *c, int number) {
        _cleanup_free_ char *real = NULL;
        char link[sizeof(GRAPHICS) + 16];
        const PciDevice *found;
        PciAddress address;
        int r;

        (void) snprintf(link, sizeof(link), GRAPHICS "/fb%d", number);
        r = critical_realpath(c, link, &real);
        if (!real)
                return r;
        /* A firmware framebuffer may belong to no PCI function. PciDevice.boot_vga marks its device. */
        found = critical_last_function(real, &address) ? inventory_find(c->inv, address) : NULL;
        if (!found)
                return 0;
        return string_replace(&c->inv->devices[inventory_device_index(c->inv, found)].console, "%s <- fb%d <- console",
                              PCI_ADDRESS_STR(address), number);
}

int critical_mark_display(const Critical *c) {
        bool drawn = false;
        int number, r = mark_bmc(c);

        if (r < 0)
                return r;
        r = has_framebuffer_console(c, &drawn);
        if (r < 0 || !drawn)
                return r;
        r = first_framebuffer(c, &number);
        return r < 0 || number < 0 ? r : mark_framebuffer(c, number);
}
