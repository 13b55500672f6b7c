/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Reads single attributes of one PCI function. A damaged attribute goes to the fault of the device. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "devicedir.h"
#include "mdev.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "util/stringtable.h"

#define VIRTFN_PREFIX "virtfn"
#define LISTING_SIZE  8192U /* holds the entries of most functions, so that one getdents64() returns them all */
#define QUOTE_MAX     40U
#define VFIO_DEVS_MAX 16U
#define ENTRIES_MAX   4096U
#define MDEVS_MAX     256U

static const char *const attribute_table[_ATTRIBUTE_MAX] = {
        [ATTRIBUTE_ACCEL] = "accel",
        [ATTRIBUTE_BOOT_VGA] = "boot_vga",
        [ATTRIBUTE_CLASS] = "class",
        [ATTRIBUTE_CONFIG] = "config",
        [ATTRIBUTE_CURRENT_LINK_SPEED] = "current_link_speed",
        [ATTRIBUTE_CURRENT_LINK_WIDTH] = "current_link_width",
        [ATTRIBUTE_D3COLD_ALLOWED] = "d3cold_allowed",
        [ATTRIBUTE_DEVICE] = "device",
        [ATTRIBUTE_DRIVER] = "driver",
        [ATTRIBUTE_DRIVER_OVERRIDE] = "driver_override",
        [ATTRIBUTE_DRM] = "drm",
        [ATTRIBUTE_INFINIBAND] = "infiniband",
        [ATTRIBUTE_IOMMU_GROUP] = "iommu_group",
        [ATTRIBUTE_MAX_LINK_SPEED] = "max_link_speed",
        [ATTRIBUTE_MAX_LINK_WIDTH] = "max_link_width",
        [ATTRIBUTE_MDEV_SUPPORTED_TYPES] = "mdev_supported_types",
        [ATTRIBUTE_NET] = "net",
        [ATTRIBUTE_NUMA_NODE] = "numa_node",
        [ATTRIBUTE_NVIDIA] = "nvidia",
        [ATTRIBUTE_NVME] = "nvme",
        [ATTRIBUTE_PHYSFN] = "physfn",
        [ATTRIBUTE_POWER] = "power",
        [ATTRIBUTE_POWER_STATE] = "power_state",
        [ATTRIBUTE_RESET_METHOD] = "reset_method",
        [ATTRIBUTE_RESOURCE] = "resource",
        [ATTRIBUTE_SECONDARY_BUS_NUMBER] = "secondary_bus_number",
        [ATTRIBUTE_SRIOV] = "sriov",
        [ATTRIBUTE_SRIOV_OFFSET] = "sriov_offset",
        [ATTRIBUTE_SRIOV_STRIDE] = "sriov_stride",
        [ATTRIBUTE_SRIOV_TOTALVFS] = "sriov_totalvfs",
        [ATTRIBUTE_SRIOV_VF_DEVICE] = "sriov_vf_device",
        [ATTRIBUTE_SUBSYSTEM_DEVICE] = "subsystem_device",
        [ATTRIBUTE_SUBSYSTEM_VENDOR] = "subsystem_vendor",
        [ATTRIBUTE_VENDOR] = "vendor",
        [ATTRIBUTE_VFIO_DEV] = "vfio-dev",
};
DEFINE_STRING_TABLE_TO_STRING(attribute, Attribute, _ATTRIBUTE_MAX)

struct DeviceDir {
        const Sysfs *fs;
        int fd;
        uint64_t instance;
        uint64_t present; /* bit N: the directory has Attribute N */
        bool locked;
        const char *known_types; /* names of vGPU types of an earlier scan, from device_dir_set_known(); NULL: none */
        unsigned *virtfns;
        size_t n_virtfns;
        char (*mdevs)[UUID_STRING_MAX]; /* entries that are named by a UUID, ascending */
        size_t n_mdevs;
};

/* The first Attribute with each initial letter, so that an entry is compared only with the names that begin with its
 * letter. */
static const Attribute first_attribute[] = {
        ['a'] = ATTRIBUTE_ACCEL,        ['b'] = ATTRIBUTE_BOOT_VGA,
        ['c'] = ATTRIBUTE_CLASS,        ['d'] = ATTRIBUTE_D3COLD_ALLOWED,
        ['i'] = ATTRIBUTE_INFINIBAND,   ['m'] = ATTRIBUTE_MAX_LINK_SPEED,
        ['n'] = ATTRIBUTE_NET,          ['p'] = ATTRIBUTE_PHYSFN,
        ['r'] = ATTRIBUTE_RESET_METHOD, ['s'] = ATTRIBUTE_SECONDARY_BUS_NUMBER,
        ['v'] = ATTRIBUTE_VENDOR,
};

static uint64_t attribute_bit(const char *name) {
        uint8_t letter = (uint8_t) *name;

        if (letter >= ELEMENTSOF(first_attribute))
                return 0;
        for (Attribute a = first_attribute[letter]; a < _ATTRIBUTE_MAX && *attribute_table[a] == *name; a++)
                if (streq(name, attribute_table[a]))
                        return UINT64_C(1) << a;
        return 0;
}

static int unsigned_compare(const void *a, const void *b) {
        unsigned x = *(const unsigned *) a, y = *(const unsigned *) b;

        return (x > y) - (x < y);
}

static int uuid_compare(const void *a, const void *b) {
        return strcmp(a, b);
}

static int add_virtfn(DeviceDir *d, const char *number) {
        uint64_t n;
        int r;

        if (parse_unsigned(number, UINT16_MAX, &n) < 0)
                return 0;
        r = ARRAY_RESERVE(d->virtfns, d->n_virtfns);
        if (r < 0)
                return r;
        d->virtfns[d->n_virtfns++] = (unsigned) n;
        return 0;
}

static int add_mdev(DeviceDir *d, const char *uuid) {
        if (d->n_mdevs >= MDEVS_MAX)
                return 0;
        if (ARRAY_RESERVE(d->mdevs, d->n_mdevs) < 0)
                return -ENOMEM;
        (void) stpcpy(d->mdevs[d->n_mdevs++], uuid);
        return 0;
}

static int add_entry(DeviceDir *d, const struct dirent64 *entry) {
        const char *name = entry->d_name;

        if (streq(name, "."))
                d->instance = entry->d_ino;
        if (*name == *VIRTFN_PREFIX && strncmp(name, VIRTFN_PREFIX, strlen(VIRTFN_PREFIX)) == 0)
                return add_virtfn(d, name + strlen(VIRTFN_PREFIX));
        if (text_is_uuid(name))
                return add_mdev(d, name);
        d->present |= attribute_bit(name);
        return 0;
}

static int list_entries(DeviceDir *d) {
        char buf[LISTING_SIZE] __attribute__((aligned(8)));
        ssize_t n;

        while ((n = getdents64(d->fd, buf, sizeof(buf))) > 0)
                for (ssize_t at = 0; at < n;) {
                        const struct dirent64 *entry = (const void *) (buf + at);
                        int r = add_entry(d, entry);

                        if (r < 0)
                                return r;
                        at += entry->d_reclen;
                }
        if (n < 0)
                return -errno;
        if (d->n_virtfns > 0)
                qsort(d->virtfns, d->n_virtfns, sizeof(*d->virtfns), unsigned_compare);
        if (d->n_mdevs > 0)
                qsort(d->mdevs, d->n_mdevs, sizeof(*d->mdevs), uuid_compare);
        return 0;
}

int device_dir_new(const Sysfs *fs, int fd, DeviceDir **ret) {
        _cleanup_(cleanup_device_dir_free) DeviceDir *d = NULL;
        _cleanup_close_ int owned = fd;
        int r;

        d = calloc(1, sizeof(*d));
        if (!d)
                return -ENOMEM;
        d->fs = fs;
        d->fd = TAKE_FD(owned);
        r = list_entries(d);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(d);
        return 0;
}

int device_dir_open(const Sysfs *fs, const char *name, DeviceDir **ret) {
        static const char devices[] = "sys/bus/pci/devices/";
        char path[sizeof(devices) + PCI_ADDRESS_STRING_MAX];
        int fd;

        if (strlen(name) >= PCI_ADDRESS_STRING_MAX)
                return -EINVAL;
        (void) stpcpy(stpcpy(path, devices), name);
        fd = sysfs_open(fs, path, O_RDONLY | O_DIRECTORY);
        return fd < 0 ? fd : device_dir_new(fs, fd, ret);
}

DeviceDir *device_dir_free(DeviceDir *d) {
        if (!d)
                return NULL;
        cleanup_close(&d->fd);
        free(d->virtfns);
        free(d->mdevs);
        free(d);
        return NULL;
}

void device_dir_set_known(DeviceDir *d, const PciDevice *dev) {
        d->known_types = dev->vgpu_types ?: dev->mdev_types;
}

void device_dir_set_locked(DeviceDir *d) {
        d->locked = true;
}

uint64_t device_dir_instance(const DeviceDir *d) {
        return d->instance;
}

bool device_dir_has(const DeviceDir *d, Attribute a) {
        return d->present & (UINT64_C(1) << a);
}

bool device_dir_is_gone(const DeviceDir *d) {
        static const Attribute ids[] = { ATTRIBUTE_VENDOR, ATTRIBUTE_DEVICE, ATTRIBUTE_CLASS };
        char buf[SYSFS_ATTRIBUTE_MAX];

        for (size_t i = 0; i < ELEMENTSOF(ids); i++) {
                int r;

                if (!device_dir_has(d, ids[i]))
                        continue;
                r = sysfs_read_at(d->fs, d->fd, attribute_table[ids[i]], buf, sizeof(buf));
                return r == -ENOENT || r == -ENODEV;
        }
        return false;
}

const unsigned *device_dir_virtfns(const DeviceDir *d, size_t *ret_n) {
        *ret_n = d->n_virtfns;
        return d->virtfns;
}

static int fault_errno(PciDevice *dev, const char *name, int error) {
        return pci_device_add_fault(dev, "%s cannot be read (%s)", name, strerror(-error));
}

int device_fault_value(PciDevice *dev, const char *name, const char *value) {
        if (strlen(value) > QUOTE_MAX || !text_is_clean(value))
                return pci_device_add_fault(dev, "%s makes no sense", name);
        return pci_device_add_fault(dev, "%s makes no sense: '%s'", name, value);
}

int device_dir_read_text(const DeviceDir *d, Attribute a, PciDevice *dev, char *ret) {
        int r;

        if (!device_dir_has(d, a) || (d->locked && a == ATTRIBUTE_DRIVER_OVERRIDE))
                return 0;
        r = sysfs_read_at(d->fs, d->fd, attribute_table[a], ret, SYSFS_ATTRIBUTE_MAX);
        if (r < 0)
                return fault_errno(dev, attribute_table[a], r);
        return 1;
}

int device_dir_read_hex(const DeviceDir *d, Attribute a, PciDevice *dev, uint64_t max, uint64_t *ret) {
        char buf[SYSFS_ATTRIBUTE_MAX];
        int r;

        r = device_dir_read_text(d, a, dev, buf);
        if (r <= 0)
                return r;
        if (parse_hex(buf, max, ret) < 0)
                return device_fault_value(dev, attribute_table[a], buf);
        return 1;
}

int device_dir_read_unsigned(const DeviceDir *d, Attribute a, PciDevice *dev, uint64_t max, uint64_t *ret) {
        char buf[SYSFS_ATTRIBUTE_MAX];
        int r;

        r = device_dir_read_text(d, a, dev, buf);
        if (r <= 0)
                return r;
        if (parse_unsigned(buf, max, ret) < 0)
                return device_fault_value(dev, attribute_table[a], buf);
        return 1;
}

static int read_link(const DeviceDir *d, const char *name, PciDevice *dev, char *ret) {
        int r = sysfs_link_name_at(d->fd, name, ret, SYSFS_ATTRIBUTE_MAX);

        if (r == -ENOENT)
                return 0; /* removed after the listing, for example by an unbind */
        if (r == -EINVAL)
                return pci_device_add_fault(dev, "%s is not a link", name);
        if (r < 0)
                return fault_errno(dev, name, r);
        return 1;
}

int device_dir_read_link(const DeviceDir *d, Attribute a, PciDevice *dev, char *ret) {
        return device_dir_has(d, a) ? read_link(d, attribute_table[a], dev, ret) : 0;
}

int device_dir_read_address(const DeviceDir *d, const char *link, PciDevice *dev, PciAddress *ret) {
        char buf[SYSFS_ATTRIBUTE_MAX];
        int r;

        r = read_link(d, link, dev, buf);
        if (r <= 0)
                return r;
        if (pci_address_parse(buf, ret) < 0)
                return device_fault_value(dev, link, buf);
        return 1;
}

void device_dir_read_vfio_cdev(const DeviceDir *d, char ret[static VFIO_CDEV_MAX]) {
        _cleanup_close_ int dir = openat(d->fd, "vfio-dev", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        _cleanup_names_ char **names = NULL;
        size_t n = 0;

        if (dir < 0 || list_dir_at(dir, ".", VFIO_DEVS_MAX, &names, &n) < 0)
                return;
        for (size_t i = 0; i < n && !*ret; i++) {
                char path[SYSFS_ATTRIBUTE_MAX];

                (void) snprintf(path, sizeof(path), "%s/dev", names[i]);
                if (strlen(names[i]) < VFIO_CDEV_MAX && faccessat(dir, path, F_OK, 0) == 0)
                        (void) strcpy(ret, names[i]);
        }
}

/* Reads the types and the mediated devices: a VF has at most one device, a GPU that is no VF may have many. Of a locked
 * GPU reads only the mediated devices, because this read does not call the GPU's driver: so the existing mediated
 * devices stay known while a job creates another one. */
static int read_mdevs(const DeviceDir *d, PciDevice *dev) {
        bool is_vf = device_dir_has(d, ATTRIBUTE_PHYSFN);
        char **types = is_vf ? &dev->vgpu_types : &dev->mdev_types;
        int r = d->locked ? string_copy(types, "") : mdev_read_types(d->fs, d->fd, d->known_types, types);

        dev->mdev_parent = true;
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return fault_errno(dev, attribute_to_string(ATTRIBUTE_MDEV_SUPPORTED_TYPES), r);
        for (size_t i = 0; i < d->n_mdevs; i++) {
                unsigned type;

                if (mdev_read_type(d->fd, d->mdevs[i], &type) < 0)
                        continue;
                if (!is_vf && string_append(&dev->mdevs, "", "%s %u\n", d->mdevs[i], type) < 0)
                        return -ENOMEM;
                if (is_vf) {
                        dev->vgpu_type = type;
                        (void) stpcpy(dev->mdev, d->mdevs[i]);
                }
        }
        return 0;
}

int device_dir_read_vgpu(const DeviceDir *d, PciDevice *dev) {
        static const char types_name[] = "nvidia/creatable_vgpu_types", type_name[] = "nvidia/current_vgpu_type";
        char types[SYSFS_ATTRIBUTE_MAX], type[SYSFS_ATTRIBUTE_MAX];
        uint64_t id;
        int r;

        if (device_dir_has(d, ATTRIBUTE_MDEV_SUPPORTED_TYPES) && (!d->locked || !device_dir_has(d, ATTRIBUTE_PHYSFN)))
                return read_mdevs(d, dev);
        if (d->locked || !device_dir_has(d, ATTRIBUTE_NVIDIA))
                return 0;
        r = sysfs_read_at(d->fs, d->fd, types_name, types, sizeof(types));
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return fault_errno(dev, types_name, r);
        r = sysfs_read_at(d->fs, d->fd, type_name, type, sizeof(type));
        if (r < 0)
                return fault_errno(dev, type_name, r);
        if (parse_unsigned(type, UINT32_MAX, &id) < 0)
                return device_fault_value(dev, type_name, type);
        dev->vgpu_type = (unsigned) id;
        return string_copy(&dev->vgpu_types, types);
}

void device_dir_read_power(const DeviceDir *d, PciDevice *dev) {
        char text[SYSFS_ATTRIBUTE_MAX];

        if (device_dir_has(d, ATTRIBUTE_PHYSFN) || device_dir_has(d, ATTRIBUTE_SECONDARY_BUS_NUMBER))
                return;
        dev->runtime_pm = device_dir_has(d, ATTRIBUTE_POWER) &&
                          sysfs_read_at(d->fs, d->fd, "power/control", text, sizeof(text)) >= 0 && streq(text, "auto");
        dev->d3cold = device_dir_has(d, ATTRIBUTE_D3COLD_ALLOWED) &&
                      sysfs_read_at(d->fs, d->fd, attribute_table[ATTRIBUTE_D3COLD_ALLOWED], text, sizeof(text)) >= 0 &&
                      streq(text, "1");
}

int device_dir_append_entries(const DeviceDir *d, Attribute a, char **names) {
        char **entries = NULL;
        size_t n = 0;
        int r;

        if (!device_dir_has(d, a))
                return 0;
        r = list_dir_at(d->fd, attribute_table[a], ENTRIES_MAX, &entries, &n);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        for (size_t i = 0; r >= 0 && i < n; i++)
                if (text_is_clean(entries[i]) && !strchr(entries[i], ' '))
                        r = string_append(names, " ", "%s", entries[i]);
        (void) free_names(entries, n);
        return r;
}

/* Returns whether the master of an interface may be a bond or a team. A bridge or VRF is excluded by its DEVTYPE=.
 * Neither a team nor the datapath of Open vSwitch has DEVTYPE=; the datapath is excluded by its name. */
static bool is_bond(const DeviceDir *d, const char *master, const char *name) {
        static const char key[] = "DEVTYPE=";
        char path[2 * SYSFS_ATTRIBUTE_MAX], text[SYSFS_ATTRIBUTE_MAX];
        const char *type;

        (void) snprintf(path, sizeof(path), "%s/uevent", master);
        type = sysfs_read_at(d->fs, d->fd, path, text, sizeof(text)) < 0 ? NULL : strstr(text, key);
        return type ? strncmp(type + strlen(key), "bond", strlen("bond")) == 0 : !streq(name, "ovs-system");
}

int device_dir_read_bond(const DeviceDir *d, PciDevice *dev) {
        _cleanup_names_ char **interfaces = NULL;
        size_t n = 0;
        int r;

        if (!device_dir_has(d, ATTRIBUTE_NET))
                return 0;
        r = list_dir_at(d->fd, attribute_table[ATTRIBUTE_NET], ENTRIES_MAX, &interfaces, &n);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        for (size_t i = 0; i < n; i++) {
                char path[SYSFS_ATTRIBUTE_MAX], master[SYSFS_ATTRIBUTE_MAX];

                (void) snprintf(path, sizeof(path), "%s/%s/master", attribute_table[ATTRIBUTE_NET], interfaces[i]);
                if (sysfs_link_name_at(d->fd, path, master, sizeof(master)) >= 0 && is_bond(d, path, master))
                        return string_copy(&dev->bond, master);
        }
        return 0;
}
