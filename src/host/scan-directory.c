/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Opens the directories of devices, and tells where in sys/devices they are. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "scan-internal.h"
#include "util/strings.h"

/* Reads the device's path below sys/devices from its link in SCAN_DEVICES, such as
 * "../../../devices/pci0000:80/0000:80:02.0". *ret is NULL when the link does not lead below sys/devices. */
static int device_path(const Scan *s, const char *name, char **ret) {
        static const char devices[] = "devices/", below[] = "sys/devices/";
        _cleanup_free_ char *real = NULL;
        char target[PATH_MAX];
        const char *at = target;
        ssize_t n;
        char path[sizeof(SCAN_DEVICES "/") + PCI_ADDRESS_STRING_MAX];

        *ret = NULL;
        n = readlinkat(s->devices_fd, name, target, sizeof(target) - 1);
        if (n > 0) {
                target[n] = '\0';
                while (strncmp(at, "../", 3) == 0)
                        at += 3;
                if (strncmp(at, devices, strlen(devices)) == 0)
                        return string_copy(ret, at + strlen(devices));
        }
        (void) snprintf(path, sizeof(path), SCAN_DEVICES "/%s", name);
        if (sysfs_realpath(s->fs, path, &real) < 0 || strncmp(real, below, strlen(below)) != 0)
                return 0;
        return string_copy(ret, real + strlen(below));
}

void scan_forget_directory(Scan *s) {
        free(s->directory);
        s->directory = NULL;
        cleanup_close(&s->directory_fd);
        s->directory_fd = -1;
}

int scan_remember_directory(Scan *s, const char *path) {
        const char *slash = strrchr(path, '/');
        _cleanup_free_ char *full = NULL;

        scan_forget_directory(s);
        if (!slash)
                return 0;
        s->directory = strndup(path, (size_t) (slash + 1 - path));
        if (!s->directory || string_replace(&full, "sys/devices/%s", s->directory) < 0)
                return -ENOMEM;
        s->directory_fd = sysfs_open(s->fs, full, O_PATH | O_DIRECTORY);
        return 0;
}

int scan_open_device(Scan *s, const char *name, bool *ret_beside, DeviceDir **ret) {
        int fd = s->directory_fd < 0 ? -1
                                     : openat(s->directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        *ret_beside = fd >= 0;
        if (fd >= 0)
                return device_dir_new(s->fs, fd, ret);
        scan_forget_directory(s);
        return device_dir_open(s->fs, name, ret);
}

static int path_beside(const char *directory, const char *name, char **ret) {
        *ret = malloc(strlen(directory) + strlen(name) + 1);
        if (!*ret)
                return -ENOMEM;
        (void) stpcpy(stpcpy(*ret, directory), name);
        return 0;
}

int scan_read_path(const Scan *s, const char *name, bool beside, PciDevice *dev) {
        int r = beside ? path_beside(s->directory, name, &dev->path) : device_path(s, name, &dev->path);

        if (r < 0 || dev->path)
                return r;
        r = string_copy(&dev->path, "");
        if (r < 0)
                return r;
        return pci_device_add_fault(dev, "the path below sys/devices is unknown");
}
