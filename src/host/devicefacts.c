/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Interprets the attributes of one PCI function. */

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "devicefacts.h"
#include "model/pcilink.h"
#include "util/strings.h"

#define CLASS_PCI_BRIDGE 0x0604U
#define ABSENT_BAR       "0x0000000000000000 0x0000000000000000 0x0000000000000000"

int device_facts_read_physfn(const DeviceDir *d, PciDevice *dev) {
        int r = 0;

        if (device_dir_has(d, ATTRIBUTE_PHYSFN))
                r = device_dir_read_address(d, attribute_to_string(ATTRIBUTE_PHYSFN), dev, &dev->physfn);
        if (r > 0)
                dev->type = PCI_TYPE_VF;
        return r;
}

static int add_missing_faults(const DeviceDir *d, PciDevice *dev) {
        static const Attribute needed[] = { ATTRIBUTE_VENDOR, ATTRIBUTE_DEVICE, ATTRIBUTE_CLASS };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(needed); i++)
                if (!device_dir_has(d, needed[i]))
                        r = pci_device_add_fault(dev, "%s is missing", attribute_to_string(needed[i]));
        return r;
}

static int read_id(const DeviceDir *d, Attribute a, PciDevice *dev, uint16_t *ret) {
        uint64_t value;
        int r = device_dir_read_hex(d, a, dev, UINT16_MAX, &value);

        if (r > 0)
                *ret = (uint16_t) value;
        return r;
}

/* Reads the sizes of the next n BARs from lines of the file "resource", "start end flags". A missing BAR has zeros. */
static int parse_bars(PciDevice *dev, char **rest, uint64_t *sizes, size_t n) {
        char *line;

        for (size_t i = 0; i < n && (line = strsep(rest, "\n")); i++) {
                char *start_end, *end_end;
                unsigned long long start, end;

                if (streq(line, ABSENT_BAR))
                        continue;
                start = strtoull(line, &start_end, 16);
                end = strtoull(start_end, &end_end, 16);
                if (start_end == line || end_end == start_end || *end_end != ' ' || end < start)
                        return device_fault_value(dev, attribute_to_string(ATTRIBUTE_RESOURCE), line);
                sizes[i] = start == 0 && end == 0 ? 0 : end - start + 1;
        }
        return 0;
}

int device_facts_read_bars(const DeviceDir *d, PciDevice *dev) {
        char buf[SYSFS_ATTRIBUTE_MAX], *rest = buf;
        int r = device_dir_read_text(d, ATTRIBUTE_RESOURCE, dev, buf);

        return r <= 0 ? r : parse_bars(dev, &rest, dev->bar_size, PCI_BARS_MAX);
}

/* Reads the size of each BAR of one VF. The file resource of a PF lists its own BARs first, then the BARs of its VFs:
 * each is one range for all total_vfs VFs together. */
static int read_vf_bars(const DeviceDir *d, PciDevice *dev) {
        char buf[SYSFS_ATTRIBUTE_MAX], *rest = buf;
        int r = device_dir_read_text(d, ATTRIBUTE_RESOURCE, dev, buf);

        if (r <= 0)
                return r;
        for (size_t i = 0; i < PCI_BARS_MAX && rest; i++)
                (void) strsep(&rest, "\n");
        if (rest)
                r = parse_bars(dev, &rest, dev->vf_bar_size, PCI_VF_BARS_MAX);
        for (size_t i = 0; i < PCI_VF_BARS_MAX; i++)
                dev->vf_bar_size[i] /= dev->total_vfs;
        return MIN(r, 0);
}

static const Attribute identity[] = {
        ATTRIBUTE_VENDOR,           ATTRIBUTE_DEVICE, ATTRIBUTE_SUBSYSTEM_VENDOR,
        ATTRIBUTE_SUBSYSTEM_DEVICE, ATTRIBUTE_CLASS,  ATTRIBUTE_RESOURCE,
};

static bool has_identity(const DeviceDir *d) {
        for (size_t i = 0; i < ELEMENTSOF(identity); i++)
                if (!device_dir_has(d, identity[i]))
                        return false;
        return true;
}

static void copy_identity(const PciDevice *sibling, PciDevice *dev) {
        dev->vendor = sibling->vendor;
        dev->subsystem_vendor = sibling->subsystem_vendor;
        dev->subsystem_device = sibling->subsystem_device;
        dev->class = sibling->class;
        memcpy(dev->bar_size, sibling->bar_size, sizeof(dev->bar_size));
}

int device_facts_read_identity(const DeviceDir *d, const PciDevice *sibling, PciDevice *dev) {
        uint64_t class;
        int r = add_missing_faults(d, dev);

        if (r < 0)
                return r;
        r = read_id(d, ATTRIBUTE_DEVICE, dev, &dev->device);
        if (r > 0 && sibling && sibling->device == dev->device && has_identity(d)) {
                copy_identity(sibling, dev);
                return 0;
        }
        if (r < 0)
                return r;
        r = read_id(d, ATTRIBUTE_VENDOR, dev, &dev->vendor);
        if (r < 0)
                return r;
        r = read_id(d, ATTRIBUTE_SUBSYSTEM_VENDOR, dev, &dev->subsystem_vendor);
        if (r < 0)
                return r;
        r = read_id(d, ATTRIBUTE_SUBSYSTEM_DEVICE, dev, &dev->subsystem_device);
        if (r < 0)
                return r;
        r = device_dir_read_hex(d, ATTRIBUTE_CLASS, dev, 0xffffff, &class);
        if (r > 0)
                dev->class = (uint32_t) class;
        return r < 0 ? r : device_facts_read_bars(d, dev);
}

bool device_facts_are_whole(const DeviceDir *d, const PciDevice *dev) {
        return !dev->fault && has_identity(d);
}

static int read_numa_node(const DeviceDir *d, PciDevice *dev) {
        char buf[SYSFS_ATTRIBUTE_MAX];
        uint64_t node;
        int r;

        if (!device_dir_has(d, ATTRIBUTE_NUMA_NODE))
                return 0;
        dev->numa_node = DEVICE_NODE_DAMAGED;
        r = device_dir_read_text(d, ATTRIBUTE_NUMA_NODE, dev, buf);
        if (r <= 0)
                return r;
        if (streq(buf, "-1"))
                dev->numa_node = -1;
        else if (parse_unsigned(buf, CPUSET_MAX - 1, &node) >= 0)
                dev->numa_node = (int) node;
        else
                return device_fault_value(dev, attribute_to_string(ATTRIBUTE_NUMA_NODE), buf);
        return 0;
}

int device_facts_read_group(const DeviceDir *d, PciDevice *dev) {
        char buf[SYSFS_ATTRIBUTE_MAX];
        uint64_t number;
        int r;

        r = device_dir_read_link(d, ATTRIBUTE_IOMMU_GROUP, dev, buf);
        if (r <= 0)
                return r;
        if (parse_unsigned(buf, INT_MAX, &number) < 0)
                return device_fault_value(dev, attribute_to_string(ATTRIBUTE_IOMMU_GROUP), buf);
        dev->iommu_group = (int) number;
        return 0;
}

/* Sets kernel_names, in the order of the table, and sets_guids. */
static int read_kernel_names(const DeviceDir *d, PciDevice *dev) {
        static const Attribute directories[] = { ATTRIBUTE_INFINIBAND, ATTRIBUTE_NET, ATTRIBUTE_NVME, ATTRIBUTE_DRM,
                                                 ATTRIBUTE_ACCEL };
        int r = 0;

        dev->sets_guids = device_dir_has(d, ATTRIBUTE_SRIOV);
        for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
                size_t length = strlen(dev->kernel_names ?: "");

                r = device_dir_append_entries(d, directories[i], &dev->kernel_names);
                if (directories[i] == ATTRIBUTE_NET && strlen(dev->kernel_names ?: "") > length)
                        dev->sets_guids = true;
                if (r < 0)
                        return r;
        }
        return r;
}

int device_facts_read_driver(const DeviceDir *d, PciDevice *dev) {
        char buf[SYSFS_ATTRIBUTE_MAX];
        int r;

        dev->vfio = device_dir_has(d, ATTRIBUTE_VFIO_DEV);
        *dev->vfio_cdev = '\0';
        if (dev->vfio)
                device_dir_read_vfio_cdev(d, dev->vfio_cdev);
        r = device_dir_read_link(d, ATTRIBUTE_DRIVER, dev, buf);
        if (r < 0)
                return r;
        r = string_copy(&dev->driver, r > 0 ? buf : NULL);
        if (r < 0)
                return r;
        r = read_kernel_names(d, dev);
        if (r < 0)
                return r;
        r = device_dir_read_bond(d, dev);
        if (r < 0)
                return r;
        r = device_dir_read_vgpu(d, dev);
        if (r < 0)
                return r;

        device_dir_read_power(d, dev);
        r = device_dir_read_text(d, ATTRIBUTE_RESET_METHOD, dev, buf);
        if (r < 0)
                return r;
        r = string_copy(&dev->reset_methods, r > 0 && *buf ? buf : NULL);
        if (r < 0)
                return r;
        dev->has_override = device_dir_has(d, ATTRIBUTE_DRIVER_OVERRIDE);
        r = device_dir_read_text(d, ATTRIBUTE_DRIVER_OVERRIDE, dev, buf);
        if (r < 0)
                return r;
        /* The kernel shows no override as "" or "(null)". */
        return string_copy(&dev->driver_override, r > 0 && *buf && !streq(buf, "(null)") ? buf : NULL);
}

/* Counts and reads the links virtfnN: a read of sriov_numvfs can block. */
int device_facts_read_vfs(const DeviceDir *d, PciDevice *dev) {
        size_t n;
        const unsigned *indices = device_dir_virtfns(d, &n);

        dev->n_virtfns = n;
        if (n == 0)
                return 0;
        dev->linked = calloc(n, sizeof(*dev->linked));
        if (!dev->linked)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                char name[32] = "virtfn";
                int r;

                *format_unsigned(name + strlen(name), indices[i]) = '\0';
                r = device_dir_read_address(d, name, dev, dev->linked + dev->n_linked);
                if (r < 0)
                        return r;
                if (r > 0)
                        dev->n_linked++;
        }
        return 0;
}

/* For a PF without VFs, reads vf_offset and vf_stride, from which the addresses of its VFs follow, and how large their
 * BARs would be. */
static int read_missing_vfs(const DeviceDir *d, PciDevice *dev) {
        uint64_t offset = 0, stride = 0;
        int r = device_dir_read_unsigned(d, ATTRIBUTE_SRIOV_OFFSET, dev, UINT16_MAX, &offset);

        if (r < 0)
                return r;
        r = device_dir_read_unsigned(d, ATTRIBUTE_SRIOV_STRIDE, dev, UINT16_MAX, &stride);
        if (r < 0)
                return r;
        dev->vf_offset = (uint16_t) offset;
        dev->vf_stride = (uint16_t) stride;
        return read_vf_bars(d, dev);
}

static int read_sriov(const DeviceDir *d, PciDevice *dev) {
        uint64_t value;
        int r;

        if (device_dir_has(d, ATTRIBUTE_PHYSFN))
                return 0;
        r = device_dir_read_unsigned(d, ATTRIBUTE_SRIOV_TOTALVFS, dev, UINT16_MAX, &value);
        if (r < 0)
                return r;
        if (r > 0)
                dev->total_vfs = (unsigned) value;
        r = device_dir_read_hex(d, ATTRIBUTE_SRIOV_VF_DEVICE, dev, UINT16_MAX, &value);
        if (r < 0)
                return r;
        if (r > 0)
                dev->vf_device = (uint16_t) value;
        r = device_facts_read_vfs(d, dev);
        return r >= 0 && dev->total_vfs > 0 && dev->n_virtfns == 0 ? read_missing_vfs(d, dev) : r;
}

static int read_power_state(const DeviceDir *d, PciDevice *dev) {
        char buf[SYSFS_ATTRIBUTE_MAX];
        int r;

        r = device_dir_read_text(d, ATTRIBUTE_POWER_STATE, dev, buf);
        if (r > 0)
                r = string_copy(&dev->power_state, buf);
        if (r < 0)
                return r;
        r = device_dir_read_text(d, ATTRIBUTE_BOOT_VGA, dev, buf);
        if (r > 0)
                dev->boot_vga = streq(buf, "1");
        return MIN(r, 0);
}

static int read_link_values(const DeviceDir *d, Attribute speed, Attribute width, PciDevice *dev, unsigned *ret_speed,
                            unsigned *ret_width) {
        char buf[SYSFS_ATTRIBUTE_MAX];
        int r = device_dir_read_text(d, speed, dev, buf);

        if (r > 0)
                *ret_speed = pci_link_parse_speed(buf);
        if (r < 0)
                return r;
        r = device_dir_read_text(d, width, dev, buf);
        if (r > 0)
                *ret_width = pci_link_parse_width(buf);
        return MIN(r, 0);
}

/* Reads the link of bridges, accelerators and NICs, except VFs: only these matter for paths between GPUs and NICs. */
static int read_link(const DeviceDir *d, PciDevice *dev) {
        bool bridge = dev->class >> 8 == CLASS_PCI_BRIDGE,
             endpoint = pci_device_is_accelerator(dev) || pci_device_is_nic(dev);
        int r;

        if (dev->type == PCI_TYPE_VF || (!bridge && !endpoint))
                return 0;
        r = read_link_values(d, ATTRIBUTE_MAX_LINK_SPEED, ATTRIBUTE_MAX_LINK_WIDTH, dev, &dev->link_speed,
                             &dev->link_width);
        /* A read of the current link would resume a device in D3cold. */
        if (r < 0 || bridge || streq_ptr(dev->power_state, "D3cold"))
                return r;
        return read_link_values(d, ATTRIBUTE_CURRENT_LINK_SPEED, ATTRIBUTE_CURRENT_LINK_WIDTH, dev, &dev->current_speed,
                                &dev->current_width);
}

int device_facts_read(const DeviceDir *d, PciDevice *dev) {
        static int (*const readers[])(const DeviceDir *, PciDevice *) = {
                read_numa_node, device_facts_read_group, device_facts_read_driver,
                read_sriov,     read_power_state,        read_link,
        };

        for (size_t i = 0; i < ELEMENTSOF(readers); i++) {
                int r = readers[i](d, dev);

                if (r < 0)
                        return r;
        }
        return 0;
}
