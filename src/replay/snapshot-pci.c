/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Records the files of PCI functions that a scan reads. Never reads a file that can block (sriov_numvfs) or that wakes
 * a device. */

#include <errno.h>
#include <fcntl.h>
#include <pci/header.h>

#include "model/inventory.h"
#include "snapshot.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "util/tree.h"

#define DEVICES      "sys/bus/pci/devices"
#define ENTRIES_MAX  65536U
#define CONFIG_PCI   256U
#define EXTENDED_MAX 64U /* limit of the walk through the extended capabilities */
#define DSN_OFFSET   4U

/* The attributes that the daemon reads, and those that a simulation needs to create VFs of a recorded PF. Sorted. */
static const char *const attributes[] = {
        "boot_vga",
        "class",
        "device",
        "driver_override",
        "max_link_speed",
        "max_link_width",
        "numa_node",
        "power_state",
        "reset_method",
        "resource",
        "revision",
        "secondary_bus_number",
        "sriov_drivers_autoprobe",
        "sriov_offset",
        "sriov_stride",
        "sriov_totalvfs",
        "sriov_vf_device",
        "subsystem_device",
        "subsystem_vendor",
        "vendor",
};

/* The directories that a driver adds to a function, and the identifying files in their entries. */
static const struct {
        const char *directory;
        const char *identities[3];
} driver_dirs[] = {
        { "infiniband", { "node_guid", "sys_image_guid" } },
        { "net", { "address" } },
        { "vfio-dev", { NULL } },
};

static int name_compare(const void *key, const void *element) {
        return strcmp(key, *(const char *const *) element);
}

static int record_driver_dir(Recorder *r, int fd, const char *path, size_t which) {
        _cleanup_free_ char *dir = NULL;
        char **names = NULL;
        size_t n = 0;
        int e = list_dir_at(fd, driver_dirs[which].directory, ENTRIES_MAX, &names, &n);

        if (e < 0)
                return e == -ENOMEM ? e : 0;
        if (asprintf(&dir, "%s/%s", path, driver_dirs[which].directory) < 0) {
                dir = NULL;
                e = -ENOMEM;
        } else
                e = record_directory(r, dir);
        for (size_t i = 0; i < n && e >= 0; i++) {
                _cleanup_free_ char *below = NULL;
                _cleanup_close_ int below_fd = -1;

                if (asprintf(&below, "%s/%s", dir, names[i]) < 0) {
                        below = NULL;
                        e = -ENOMEM;
                        break;
                }
                e = record_directory(r, below);
                below_fd = openat(fd, below + strlen(path) + 1, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                for (const char *const *name = driver_dirs[which].identities; *name && below_fd >= 0 && e >= 0; name++)
                        e = record_file_at(r, below_fd, below, *name, filter_digits);
        }
        (void) free_names(names, n);
        return MIN(e, 0);
}

/* Replaces the serial number in the Device Serial Number capability. */
static void replace_serial(const Recorder *r, unsigned char *config, size_t size) {
        size_t at = CONFIG_PCI;

        for (unsigned i = 0; i < EXTENDED_MAX && at >= CONFIG_PCI && at + 12 <= size; i++) {
                unsigned id = config[at] | (unsigned) config[at + 1] << 8;

                if (id == PCI_EXT_CAP_ID_DSN)
                        identities_replace_bytes(&r->identities, config + at + DSN_OFFSET, 8);
                at = (config[at + 2] >> 4 | (size_t) config[at + 3] << 4) & ~(size_t) 3;
        }
}

static int record_config(Recorder *r, int fd, const char *path) {
        _cleanup_close_ int config_fd = openat(fd, "config", O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        _cleanup_free_ char *full = NULL;
        unsigned char config[TREE_CONFIG_MAX];
        ssize_t n = config_fd < 0 ? -1 : pread(config_fd, config, sizeof(config), 0);
        int error = -errno;

        if (asprintf(&full, "%s/config", path) < 0) {
                full = NULL;
                return -ENOMEM;
        }
        if (n < 0)
                return error == -ENOENT ? 0 : record_unreadable(r, full, error);
        replace_serial(r, config, (size_t) n);
        return record_bytes(r, full, (const char *) config, (size_t) n);
}

/* True if a scan reads the config space of the function: bridges and possible bridges (by class), functions that share
 * a slot, GPUs and NICs. Never VFs, and never functions in D3cold, which the read would wake. */
static bool wants_config(int fd, bool bridge, bool shares_slot) {
        char buf[SYSFS_ATTRIBUTE_MAX];
        uint64_t class = 0;

        if (faccessat(fd, "physfn", F_OK, AT_SYMLINK_NOFOLLOW) >= 0)
                return false;
        if (sysfs_read_at(fd, "power_state", buf, sizeof(buf)) > 0 && streq(buf, "D3cold"))
                return false;
        if (sysfs_read_at(fd, "class", buf, sizeof(buf)) > 0)
                (void) parse_hex(buf, 0xffffff, &class);
        return bridge || shares_slot || (class >> 16 == 0x06 && (class >> 8 & 0xff) >= 0x04) ||
               pci_device_is_gpu(&(PciDevice){ .class = (uint32_t) class }) ||
               pci_device_is_nic(&(PciDevice){ .class = (uint32_t) class });
}

/* If the entry is not a link, the tree is damaged; the entry is then recorded as a file. */
static int record_link(Recorder *r, int fd, const char *path, const char *name) {
        char target[1];

        if (readlinkat(fd, name, target, sizeof(target)) >= 0 || errno != EINVAL)
                return record_link_at(r, fd, path, name);
        return record_file_at(r, fd, path, name, NULL);
}

static int record_entry(Recorder *r, int fd, const char *path, const char *name) {
        if (streq(name, "driver") || streq(name, "iommu_group") || streq(name, "physfn") ||
            strncmp(name, "virtfn", strlen("virtfn")) == 0)
                return record_link(r, fd, path, name);
        for (size_t i = 0; i < ELEMENTSOF(driver_dirs); i++)
                if (streq(name, driver_dirs[i].directory))
                        return record_driver_dir(r, fd, path, i);
        if (bsearch(name, attributes, ELEMENTSOF(attributes), sizeof(*attributes), name_compare))
                return record_file_at(r, fd, path, name, NULL);
        return 0;
}

static int record_function(Recorder *r, int fd, const char *path, bool shares_slot) {
        bool bridge = false, config = false;
        char **names;
        size_t n;
        int e = list_dir_at(fd, ".", ENTRIES_MAX, &names, &n);

        if (e < 0)
                return e == -ENOMEM ? e : record_directory(r, path);
        e = record_directory(r, path);
        for (size_t i = 0; i < n && e >= 0; i++) {
                bridge = bridge || streq(names[i], "secondary_bus_number");
                config = config || streq(names[i], "config");
                e = record_entry(r, fd, path, names[i]);
        }
        (void) free_names(names, n);
        if (e < 0 || !config || !wants_config(fd, bridge, shares_slot))
                return MIN(e, 0);
        return record_config(r, fd, path);
}

static int record_device(Recorder *r, int devices_fd, const char *name, bool shares_slot) {
        _cleanup_free_ char *link = NULL, *path = NULL;
        _cleanup_close_ int fd = -1;
        int e;

        if (asprintf(&link, DEVICES "/%s", name) < 0) {
                link = NULL;
                return -ENOMEM;
        }
        e = sysfs_realpath(r->fs, link, &path);
        if (e < 0)
                return e == -ENOMEM ? e : 0; /* the device was removed meanwhile */
        fd = sysfs_open(r->fs, path, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return fd == -ENOENT || fd == -ENODEV ? 0 : record_unreadable(r, path, fd);
        e = record_link_at(r, devices_fd, DEVICES, name);
        return e < 0 ? e : record_function(r, fd, path, shares_slot);
}

static bool same_slot(const char *a, const char *b) {
        size_t n = strcspn(a, ".");

        return a[n] == '.' && strncmp(a, b, n + 1) == 0;
}

static int record_devices(Recorder *r) {
        _cleanup_close_ int fd = -1;
        char **names;
        size_t n;
        int e = record_list(r, DEVICES, &fd, &names, &n);

        if (e >= 0 && fd >= 0)
                e = record_directory(r, DEVICES);
        for (size_t i = 0; i < n && e >= 0; i++) {
                bool shares_slot = (i > 0 && same_slot(names[i], names[i - 1])) ||
                                   (i + 1 < n && same_slot(names[i], names[i + 1]));

                e = record_device(r, fd, names[i], shares_slot);
        }
        (void) free_names(names, n);
        return e;
}

static int record_group(Recorder *r, const Entry *entry) {
        static const char *const files[] = { "name", "reserved_regions", "type" };
        _cleanup_close_ int fd = openat(entry->dir_fd, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int e = 0;

        for (size_t i = 0; i < ELEMENTSOF(files) && fd >= 0 && e >= 0; i++)
                e = record_file_at(r, fd, entry->path, files[i], NULL);
        return e;
}

static int record_driver(Recorder *r, const Entry *entry) {
        return record_directory(r, entry->path);
}

int record_pci(Recorder *r) {
        _cleanup_close_ int probe_fd = sysfs_open(r->fs, "sys/bus/pci/drivers_probe", O_PATH);
        int e = record_entries(r, "sys/bus/pci/drivers", "", record_driver);

        /* The file is write-only. Its presence means that the list of drivers is complete. */
        if (e >= 0 && probe_fd >= 0)
                e = record_bytes(r, "sys/bus/pci/drivers_probe", "", 0);
        if (e >= 0)
                e = record_entries(r, "sys/kernel/iommu_groups", "", record_group);
        return e < 0 ? e : record_devices(r);
}
