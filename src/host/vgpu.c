/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "vgpu.h"

#include <errno.h>

#include "host/pcipath.h"
#include "mdev.h"
#include "util/strings.h"

#define TYPE "nvidia/current_vgpu_type"

int vgpu_set_type(const Sysfs *fs, PciAddress vf, const char *from, const char *to) {
        char now[SYSFS_ATTRIBUTE_MAX];
        int r;

        if (strchr(to, '/'))
                return mdev_create(fs, vf, to);
        if (strchr(from, '/'))
                return mdev_remove(fs, vf, from);
        r = sysfs_read(fs, PCI_PATH(vf, TYPE), now, sizeof(now));
        if (r < 0)
                return r;
        if (streq(now, to))
                return 0;
        if (!streq(now, from))
                return -EBUSY;
        r = sysfs_write(fs, PCI_PATH(vf, TYPE), to);
        if (r >= 0)
                r = sysfs_read(fs, PCI_PATH(vf, TYPE), now, sizeof(now));
        if (r < 0)
                return r;
        return streq(now, to) ? 1 : -EIO;
}
