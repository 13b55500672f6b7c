/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps devices out of D3. */

#include "power.h"

#include <errno.h>

#include "host/pcipath.h"

/* A kernel without power management lacks these files. */
static int set_if_present(const Sysfs *fs, const char *path, const char *value) {
        int r = sysfs_set(fs, path, value);

        return r == -ENOENT ? 0 : r;
}

int power_set_control(const Sysfs *fs, PciAddress address, const char *value) {
        return set_if_present(fs, PCI_PATH(address, "power/control"), value);
}

int power_set_d3cold(const Sysfs *fs, PciAddress address, const char *value) {
        return set_if_present(fs, PCI_PATH(address, "d3cold_allowed"), value);
}
