/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Each block device has a link in /sys/class/block whose target leads through the directory of its controller, and each
 * network interface one in /sys/class/net. To read these links takes fewer system calls than to walk through the
 * directories of all devices.
 */

#include "subdevices.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "util/fileio.h"
#include "util/strings.h"

#define SUBDEVICES_MAX 65536U

typedef struct Subdevices {
        PciDevice *devices;
        size_t n_devices;
        char **names; /* of all entries of the class, sorted */
        size_t n;
        bool nested; /* an entry may be below another one, as a partition is */
        bool (*has)(const PciDevice *dev);
} Subdevices;

static bool has_disks(const PciDevice *dev) {
        return dev->class >> 16 == 0x01;
}

/* VFs and GPUs have no interfaces below them, and each allocation reads them again. */
static bool has_interfaces(const PciDevice *dev) {
        return dev->type != PCI_TYPE_VF && !pci_device_is_gpu(dev);
}

static int name_compare(const void *key, const void *element) {
        return strcmp(key, *(char *const *) element);
}

static int device_compare(const void *key, const void *element) {
        return pci_address_compare(*(const PciAddress *) key, ((const PciDevice *) element)->address);
}

/* Cuts the last component of the path and returns it; NULL when there is none left. */
static const char *cut_last(char *path) {
        char *slash = strrchr(path, '/');

        if (!slash)
                return NULL;
        *slash = '\0';
        return slash + 1;
}

/* target: "../../devices/pci0000:00/0000:00:1d.0/0000:3c:00.0/nvme/nvme0/nvme0n1". NULL for a partition, which is below
 * another block device, and for an entry below no PCI function. Cuts target. */
static PciDevice *find_controller(const Subdevices *d, char *target) {
        const char *name;

        (void) cut_last(target);
        name = cut_last(target);
        if (!name || (d->nested && bsearch(name, d->names, d->n, sizeof(*d->names), name_compare)))
                return NULL;
        while ((name = cut_last(target))) {
                PciAddress address;

                if (pci_address_parse(name, &address) >= 0)
                        return bsearch(&address, d->devices, d->n_devices, sizeof(*d->devices), device_compare);
        }
        return NULL;
}

static bool has_word(const char *words, const char *word) {
        size_t n = strlen(word);

        for (const char *at = words; at; at = strchr(at, ' ')) {
                at += *at == ' ';
                if (strncmp(at, word, n) == 0 && (at[n] == ' ' || at[n] == '\0'))
                        return true;
        }
        return false;
}

/* sysfs names the path of controller 1 to namespace nvme0n1 "nvme0c1n1". The block device in /dev is nvme0n1. */
static int append_name(PciDevice *dev, const char *name) {
        unsigned subsystem, controller, namespace;
        char head[32];

        if (sscanf(name, "nvme%uc%un%u", &subsystem, &controller, &namespace) == 3) {
                (void) snprintf(head, sizeof(head), "nvme%un%u", subsystem, namespace);
                name = head;
        }
        if (!text_is_clean(name) || strchr(name, ' ') || has_word(dev->kernel_names, name))
                return 0;
        return string_append(&dev->kernel_names, " ", "%s", name);
}

static int append_names(const Subdevices *d, int fd) {
        int r = 0;

        for (size_t i = 0; i < d->n; i++) {
                char target[PATH_MAX];
                ssize_t length = readlinkat(fd, d->names[i], target, sizeof(target) - 1);
                PciDevice *dev = NULL;

                if (length > 0) {
                        target[length] = '\0';
                        dev = find_controller(d, target);
                }
                if (dev && d->has(dev))
                        r = append_name(dev, d->names[i]);
                if (r < 0)
                        return r;
        }
        return r;
}

/* other: a class that some recordings have instead, or NULL. */
static int append_class(const Sysfs *fs, const char *class, const char *other, Subdevices *d) {
        _cleanup_close_ int fd = -1;
        bool wanted = false;
        int r;

        for (size_t i = 0; i < d->n_devices && !wanted; i++)
                wanted = d->has(&d->devices[i]);
        if (wanted)
                fd = sysfs_open(fs, class, O_RDONLY | O_DIRECTORY);
        if (fd == -ENOENT && other)
                fd = sysfs_open(fs, other, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return 0;
        r = list_dir_at(fd, ".", SUBDEVICES_MAX, &d->names, &d->n);
        if (r >= 0)
                r = append_names(d, fd);
        (void) free_names(d->names, d->n);
        return r == -ENOMEM ? r : 0;
}

int subdevices_append_names(const Sysfs *fs, PciDevice *devices, size_t n) {
        Subdevices disks = { .devices = devices, .n_devices = n, .nested = true, .has = has_disks };
        Subdevices interfaces = { .devices = devices, .n_devices = n, .has = has_interfaces };
        int r = append_class(fs, "sys/class/block", "sys/block", &disks);

        return r < 0 ? r : append_class(fs, "sys/class/net", NULL, &interfaces);
}
