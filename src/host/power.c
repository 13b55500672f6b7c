/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps devices out of D3. */

#include "power.h"

#include <errno.h>

#include "host/pcipath.h"
#include "util/strings.h"

static int set_file(const Sysfs *fs, const char *path, const char *value) {
        char now[SYSFS_ATTRIBUTE_MAX];
        int r = sysfs_read(fs, path, now, sizeof(now));

        if (r == -ENOENT)
                return 0;
        if (r < 0 || streq(now, value))
                return MIN(r, 0);
        r = sysfs_write(fs, path, value);
        if (r >= 0)
                r = sysfs_read(fs, path, now, sizeof(now));
        if (r < 0)
                return r;
        return streq(now, value) ? 1 : -EIO;
}

int power_set_control(const Sysfs *fs, PciAddress address, const char *value) {
        return set_file(fs, PCI_PATH(address, "power/control"), value);
}

int power_set_d3cold(const Sysfs *fs, PciAddress address, const char *value) {
        return set_file(fs, PCI_PATH(address, "d3cold_allowed"), value);
}
