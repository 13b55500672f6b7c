/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Adds the sysfs links and files that a .tree file may omit. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "complete.h"
#include "model/pciaddr.h"
#include "remove.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "util/tree.h"

#define DEVICES "sys/bus/pci/devices"
#define DRIVERS "sys/bus/pci/drivers"
#define GROUPS  "sys/kernel/iommu_groups"

DEFINE_CLEANUP(DIR *, closedir)

char *relative_path(const char *from, const char *to) {
        size_t up = 0;
        char *path, *at;

        for (;;) { /* skip the common leading components */
                size_t n = strcspn(from, "/"), m = strcspn(to, "/");

                if (n == 0 || n != m || strncmp(from, to, n) != 0)
                        break;
                from += n + (from[n] == '/');
                to += m + (to[m] == '/');
        }
        while (*from) {
                up++;
                from += strcspn(from, "/");
                from += *from == '/';
        }
        path = at = malloc(up * strlen("../") + strlen(to) + 2);
        if (!path)
                return NULL;
        for (size_t i = 0; i < up; i++)
                at = stpcpy(at, "../");
        at = stpcpy(at, to);
        if (at == path)
                at = stpcpy(at, ".");
        if (at[-1] == '/')
                at[-1] = '\0';
        return path;
}

/* Creates a directory and its parents. Returns a descriptor, or negative errno: -ENOTDIR if a component is a link or a
 * file. */
static int make_dirs(const Completion *c, const char *path) {
        int fd = dup(c->root_fd);

        for (const char *at = path; *at && fd >= 0; at += strcspn(at, "/"), at += *at == '/') {
                _cleanup_close_ int dir = fd;
                char name[TREE_NAME_MAX + 1];

                if ((size_t) snprintf(name, sizeof(name), "%.*s", (int) strcspn(at, "/"), at) >= sizeof(name))
                        return -ENAMETOOLONG;
                if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
                        return -errno;
                fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        return fd < 0 ? -errno : fd;
}

static int make_file(int dir_fd, const char *name, const char *text) {
        _cleanup_close_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (fd < 0)
                return errno == EEXIST ? 0 : -errno;
        return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* Creates a link to target or corrects an existing link. An existing file or directory stays. */
static int make_link(int dir_fd, const char *dir, const char *name, const char *target) {
        _cleanup_free_ char *text = relative_path(dir, target);
        char now[TREE_TARGET_MAX + 1];
        ssize_t n;

        if (!text)
                return -ENOMEM;
        if (symlinkat(text, dir_fd, name) >= 0)
                return 0;
        if (errno != EEXIST)
                return -errno;
        n = readlinkat(dir_fd, name, now, sizeof(now));
        if (n < 0 || ((size_t) n == strlen(text) && memcmp(now, text, (size_t) n) == 0))
                return 0;
        if (unlinkat(dir_fd, name, 0) < 0 || symlinkat(text, dir_fd, name) < 0)
                return -errno;
        return 0;
}

static int join_group(const Completion *c, const char *device, const char *path, int number) {
        _cleanup_close_ int group_fd = -1, devices_fd = -1;
        char group[64], devices[80];
        int r;

        (void) snprintf(group, sizeof(group), GROUPS "/%d", number);
        (void) snprintf(devices, sizeof(devices), "%s/devices", group);
        group_fd = make_dirs(c, group);
        devices_fd = group_fd < 0 ? group_fd : make_dirs(c, devices);
        if (devices_fd < 0)
                return devices_fd;
        r = make_file(group_fd, "type", "DMA\n");
        if (r >= 0)
                r = make_file(group_fd, "reserved_regions", "0x00000000fee00000 0x00000000feefffff msi\n");
        return r < 0 ? r : make_link(devices_fd, devices, device, path);
}

static int complete_group(const Completion *c, int fd, const char *device, const char *path) {
        char name[TREE_NAME_MAX + 1], group[64];
        uint64_t number;
        int r;

        if (c->no_iommu)
                return remove_at(fd, "iommu_group");
        if (sysfs_link_name_at(fd, "iommu_group", name, sizeof(name)) < 0 ||
            parse_unsigned(name, INT32_MAX, &number) < 0)
                return 0;
        r = join_group(c, device, path, (int) number);
        if (r < 0)
                return r;
        (void) snprintf(group, sizeof(group), GROUPS "/%d", (int) number);
        return make_link(fd, path, "iommu_group", group);
}

static bool is_vfio(const Completion *c, const char *driver) {
        for (size_t i = 0; i < c->n_vfio; i++)
                if (streq(c->vfio[i], driver))
                        return true;
        return streq(driver, "vfio-pci");
}

static int complete_driver(const Completion *c, int fd, const char *path) {
        _cleanup_close_ int driver_fd = -1;
        char name[TREE_NAME_MAX + 1], driver[TREE_NAME_MAX + 64];
        int r;

        if (sysfs_link_name_at(fd, "driver", name, sizeof(name)) < 0 || !*name || streq(name, "..") || streq(name, "."))
                return 0;
        (void) snprintf(driver, sizeof(driver), DRIVERS "/%s", name);
        driver_fd = make_dirs(c, driver);
        if (driver_fd < 0)
                return driver_fd;
        r = make_link(fd, path, "driver", driver);
        if (r >= 0 && is_vfio(c, name) && mkdirat(fd, "vfio-dev", 0700) < 0 && errno != EEXIST)
                r = -errno;
        return r;
}

static int complete_device(Completion *c, int fd, const char *device, const char *path) {
        int r;

        if (c->devices_fd < 0)
                c->devices_fd = make_dirs(c, DEVICES);
        r = c->devices_fd < 0 ? c->devices_fd : make_link(c->devices_fd, DEVICES, device, path);
        if (r >= 0)
                r = complete_group(c, fd, device, path);
        return r < 0 ? r : complete_driver(c, fd, path);
}

/* True if path can contain PCI functions: it is a host bridge or a PCI function. Other directories may list addresses
 * too, such as iov/ of mlx4. */
static bool has_devices(const char *path) {
        const char *name = strrchr(path, '/');
        PciAddress address;

        name = name ? name + 1 : path;
        return strncmp(name, "pci", 3) == 0 || pci_address_parse(name, &address) >= 0;
}

/* False if the directory has neither a vendor file nor an entry in sys/bus/pci/devices. A recording contains such a
 * directory if it contains files below a function, but none of the function itself. */
static bool is_function(const Completion *c, int fd, const char *name) {
        char link[TREE_NAME_MAX + sizeof(DEVICES) + 1];
        _cleanup_close_ int listed = -1;

        if (faccessat(fd, "vendor", F_OK, AT_SYMLINK_NOFOLLOW) >= 0)
                return true;
        (void) snprintf(link, sizeof(link), DEVICES "/%s", name);
        listed = sysfs_open(c->fs, link, O_PATH);
        return listed >= 0;
}

/* Completes every PCI function below path. Takes ownership of fd, the directory path. Does not follow links. The
 * recursion is bounded because the unpacked tree has at most TREE_DEPTH_MAX levels. */
static int complete_below(Completion *c, int fd, const char *path) {
        _cleanup_(cleanup_closedir) DIR *d = fdopendir(fd);
        const struct dirent *entry;

        if (!d) {
                int r = -errno;

                (void) close(fd);
                return r;
        }
        while ((entry = readdir(d))) {
                _cleanup_free_ char *below = NULL;
                PciAddress address;
                int r = 0, below_fd;

                if ((entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) || streq(entry->d_name, ".") ||
                    streq(entry->d_name, ".."))
                        continue;
                if (asprintf(&below, "%s/%s", path, entry->d_name) < 0) {
                        below = NULL;
                        return -ENOMEM;
                }
                below_fd = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (below_fd < 0 && (errno == ENOTDIR || errno == ELOOP))
                        continue;
                if (below_fd < 0)
                        return -errno;
                if (pci_address_parse(entry->d_name, &address) >= 0 && has_devices(path) &&
                    is_function(c, below_fd, entry->d_name))
                        r = complete_device(c, below_fd, entry->d_name, below);
                if (r < 0) {
                        (void) close(below_fd);
                        return r;
                }
                r = complete_below(c, below_fd, below);
                if (r < 0)
                        return r;
        }
        return 0;
}

int complete_node(Completion *c) {
        int fd = sysfs_open(c->fs, "sys/devices", O_RDONLY | O_DIRECTORY), r;
        _cleanup_free_ char *real = NULL;

        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        r = sysfs_realpath(c->fs, "sys/devices", &real);
        if (r >= 0 && !streq(real, "sys/devices"))
                r = -ENOTDIR; /* the links are relative to sys/devices, so sys/devices must not be a link */
        if (r < 0) {
                (void) close(fd);
                return r;
        }
        r = complete_below(c, fd, "sys/devices");
        if (c->devices_fd >= 0)
                (void) close(c->devices_fd);
        c->devices_fd = -1;
        return r;
}
