/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the config space, power state, error counters and link of a device. */

#include "host/health.h"

#include "host/pcipath.h"
#include "model/pcilink.h"
#include "reset.h"

/* Format: kernel Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats. */
static int read_errors(const Sysfs *fs, PciAddress address, const char *name, uint64_t *ret) {
        char text[SYSFS_ATTRIBUTE_MAX];
        int r = sysfs_read(fs, PCI_PATH(address, name), text, sizeof(text));

        return r < 0 ? r : health_parse_errors(text, ret);
}

static void read_counters(const Sysfs *fs, PciAddress address, HealthErrors *ret) {
        HealthErrors e = { .known = true };

        if (read_errors(fs, address, "aer_dev_fatal", &e.fatal) == 0 &&
            read_errors(fs, address, "aer_dev_nonfatal", &e.nonfatal) == 0 &&
            read_errors(fs, address, "aer_dev_correctable", &e.correctable) == 0)
                *ret = e;
}

/* Returns MT/s (model/pcilink.h), or 0 when unknown. */
static unsigned read_speed(const Sysfs *fs, PciAddress address, const char *name) {
        char text[SYSFS_ATTRIBUTE_MAX];

        return sysfs_read(fs, PCI_PATH(address, name), text, sizeof(text)) > 0 ? pci_link_parse_speed(text) : 0;
}

static unsigned read_width(const Sysfs *fs, PciAddress address, const char *name) {
        char text[SYSFS_ATTRIBUTE_MAX];

        return sysfs_read(fs, PCI_PATH(address, name), text, sizeof(text)) > 0 ? pci_link_parse_width(text) : 0;
}

static unsigned min_known(unsigned a, unsigned b) {
        return b > 0 ? MIN(a, b) : a;
}

static void read_link(const Sysfs *fs, PciAddress address, const PciDevice *port, HealthLink *ret) {
        HealthLink l = {
                .speed = read_speed(fs, address, "current_link_speed"),
                .max_speed = read_speed(fs, address, "max_link_speed"),
                .width = read_width(fs, address, "current_link_width"),
                .max_width = read_width(fs, address, "max_link_width"),
        };

        if (port) {
                l.max_speed = min_known(l.max_speed, read_speed(fs, port->address, "max_link_speed"));
                l.max_width = min_known(l.max_width, read_width(fs, port->address, "max_link_width"));
        }
        if (l.speed > 0 && l.max_speed > 0 && l.width > 0 && l.max_width > 0)
                *ret = l;
}

void health_read(const Sysfs *fs, const PciDevice *dev, const PciDevice *port, HealthReading *ret) {
        char power[SYSFS_ATTRIBUTE_MAX] = "";

        /* This check comes first because it wakes a sleeping device. The power state "unknown" is no error: every
         * device that was unbound from its driver has it. */
        *ret = (HealthReading){ .error = reset_check(fs, dev->address) };
        (void) sysfs_read(fs, PCI_PATH(dev->address, "power_state"), power, sizeof(power));
        ret->cold = streq(power, "D3cold");
        ret->power_error = streq(power, "error");
        if (ret->error != 0 || dev->type == PCI_TYPE_VF)
                return;
        read_counters(fs, dev->address, &ret->errors);
        read_link(fs, dev->address, port, &ret->link);
}
