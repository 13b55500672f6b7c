/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Virtual functions of a PF. */

#include "host/sriov.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "host/pcipath.h"
#include "util/fileio.h"
#include "util/strings.h"

/* Entries of a PF's directory: attributes, and a virtfn link for each of at most 65535 VFs. */
#define ENTRIES_MAX 70000U

static int set_attribute(const Sysfs *fs, PciAddress pf, const char *attribute, const char *value) {
        const char *path = PCI_PATH(pf, attribute);
        char now[SYSFS_ATTRIBUTE_MAX];
        int r;

        r = sysfs_read(fs, path, now, sizeof(now));
        if (r < 0)
                return r;
        if (streq(now, value))
                return 0;
        r = sysfs_write(fs, path, value);
        if (r >= 0)
                r = sysfs_read(fs, path, now, sizeof(now));
        if (r < 0)
                return r;
        return streq(now, value) ? 1 : -EIO;
}

int sriov_set_autoprobe(const Sysfs *fs, PciAddress pf, const char *value) {
        int r = set_attribute(fs, pf, "sriov_drivers_autoprobe", value);

        /* Before Linux 4.12 there is none, and VFs are always probed: they are unbound when they are needed. */
        return r == -ENOENT ? 0 : r;
}

static int count_links(const Sysfs *fs, PciAddress pf, unsigned *ret) {
        _cleanup_close_ int fd = -1;
        char **names = NULL;
        size_t n = 0;
        int r;

        fd = sysfs_open(fs, PCI_PATH(pf, ""), O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return fd;
        r = list_dir_at(fd, ".", ENTRIES_MAX, &names, &n);
        if (r < 0)
                return r;
        *ret = 0;
        for (size_t i = 0; i < n; i++)
                *ret += strncmp(names[i], "virtfn", 6) == 0;
        (void) free_names(names, n);
        return 0;
}

int sriov_set_numvfs(const Sysfs *fs, PciAddress pf, unsigned count) {
        unsigned links;
        char value[16];
        int r = count_links(fs, pf, &links), changed;

        if (r < 0)
                return r;
        if (links != 0 && count != 0 && links != count)
                return -EBUSY;
        (void) snprintf(value, sizeof(value), "%u", count);
        changed = set_attribute(fs, pf, "sriov_numvfs", value);
        r = count_links(fs, pf, &links);
        if (changed >= 0 && r == 0 && links == count)
                return changed;
        /*
         * The kernel only warns when the driver enabled fewer; then none is better than some. Only after our own write
         * was taken: another errno may mean that somebody else made VFs meanwhile.
         */
        if (count > 0 && (changed > 0 || changed == -EIO))
                (void) set_attribute(fs, pf, "sriov_numvfs", "0");
        return changed < 0 ? changed : r < 0 ? r : -EIO;
}
