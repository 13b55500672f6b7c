/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Adds the directories and links of sysfs that a hand-written .tree file may omit. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "model/pciaddr.h"
#include "unpack.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "util/tree.h"

#define DEVICES "sys/bus/pci/devices"
#define GROUPS  "sys/kernel/iommu_groups"

/* Creates a file unless it exists. */
static int make_file(const Sysfs *fs, const char *path, const char *text) {
        _cleanup_free_ char *dir = strndup(path, (size_t) (strrchr(path, '/') - path));
        _cleanup_close_ int dir_fd = dir ? unpack_open_dir(fs, dir) : -ENOMEM, fd = -1;

        if (dir_fd < 0)
                return dir_fd;
        fd = openat(dir_fd, strrchr(path, '/') + 1, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return errno == EEXIST ? 0 : -errno;
        return write_all_fd(fd, text, strlen(text));
}

static int list_function(const Sysfs *fs, const char *path, const char *name) {
        _cleanup_close_ int fd = unpack_open_dir(fs, DEVICES);
        _cleanup_free_ char *devices = NULL, *target = NULL;
        int r = fd < 0 ? fd : sysfs_realpath(fs, DEVICES, &devices);

        if (r < 0)
                return r;
        target = relative_path(devices, path);
        if (!target)
                return -ENOMEM;
        return symlinkat(target, fd, name) < 0 && errno != EEXIST ? -errno : 0;
}

static int make_group(const Sysfs *fs, const char *name) {
        char type[64], regions[64];
        uint64_t number;
        int r;

        if (parse_unsigned(name, INT32_MAX, &number) < 0)
                return 0;
        (void) snprintf(type, sizeof(type), GROUPS "/%d/type", (int) number);
        (void) snprintf(regions, sizeof(regions), GROUPS "/%d/reserved_regions", (int) number);
        r = make_file(fs, type, "DMA\n");
        return r < 0 ? r : make_file(fs, regions, "0x00000000fee00000 0x00000000feefffff msi\n");
}

/* path: the directory of a function that is bound to the driver. */
static int make_driver(const Sysfs *fs, const char *path, const char *name) {
        int r;

        if (!*name || streq(name, ".") || streq(name, "..") || strlen(name) > TREE_NAME_MAX)
                return 0;
        r = unpack_make_dir(fs, DRIVERS, name);
        return r < 0 || !streq(name, "vfio-pci") ? r : unpack_make_dir(fs, path, "vfio-dev");
}

/* Returns the name of the PCI function whose directory is path, or NULL. Other directories may be named like addresses
 * too, such as those below iov/ of mlx4. */
static const char *function_name(const char *path) {
        const char *slash = strrchr(path, '/'), *above = slash ? memrchr(path, '/', (size_t) (slash - path)) : NULL;
        _cleanup_free_ char *parent = above ? strndup(above + 1, (size_t) (slash - above) - 1) : NULL;
        PciAddress address;

        if (!parent || strncmp(path, "sys/devices/", strlen("sys/devices/")) != 0 ||
            pci_address_parse(slash + 1, &address) < 0)
                return NULL;
        return strncmp(parent, "pci", 3) == 0 || pci_address_parse(parent, &address) >= 0 ? slash + 1 : NULL;
}

int complete_function(const Sysfs *fs, const char *path, const char *name, const char *target) {
        const char *function = function_name(path), *slash = strrchr(target, '/');

        target = slash ? slash + 1 : target;
        if (!function)
                return 0;
        if (streq(name, "driver"))
                return make_driver(fs, path, target);
        return streq(name, "iommu_group") ? make_group(fs, target) : list_function(fs, path, function);
}
