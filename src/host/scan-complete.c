/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Adds facts that depend on several devices: IOMMU groups, reserved regions, inherited NUMA nodes, names, notes. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "devicefacts.h"
#include "host/xen.h"
#include "model/cmdline.h"
#include "scan-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

#define GROUPS      "sys/kernel/iommu_groups"
#define CMDLINE_MAX (64U * 1024U)
#define PARENTS_MAX 256U

bool scan_is_reread(const Scan *s, PciAddress address) {
        return pci_addresses_have(s->reread, s->n_reread, address);
}

/*
 * Returns the NUMA node for a device whose numa_node is -1 (not reported by the firmware) or a node that the machine
 * does not list: the node of its PF, or of the nearest bridge above it with a known node, or -1.
 */
static int node_above(const Inventory *inv, const PciDevice *dev) {
        const PciDevice *pf = dev->type == PCI_TYPE_VF ? inventory_find(inv, dev->physfn) : NULL;

        if (pf && pf->numa_node >= 0)
                return pf->numa_node;
        for (unsigned i = 0; i < PARENTS_MAX && dev->parent >= 0; i++) {
                dev = inv->devices + dev->parent;
                if (dev->numa_node >= 0)
                        return dev->numa_node;
        }
        return -1;
}

static void inherit_nodes(Inventory *inv) {
        for (size_t i = 0; i < inv->n_devices; i++) {
                PciDevice *dev = inv->devices + i;

                dev->own_node = dev->numa_node;
                if (pci_device_has_unlisted_node(inv, dev))
                        dev->numa_node = -1;
        }
        for (size_t i = 0; i < inv->n_devices; i++) {
                PciDevice *dev = inv->devices + i;

                if (dev->numa_node == -1)
                        dev->numa_node = node_above(inv, dev);
                else if (dev->numa_node == DEVICE_NODE_DAMAGED)
                        dev->numa_node = -1;
                /* If there is only one node, every device is on it. */
                if (dev->numa_node == -1 && inv->n_nodes == 1)
                        dev->numa_node = inv->nodes[0].id;
        }
}

/* Returns true when `text`, lines of "start end type", has a region of type "direct", which must stay mapped. A region
 * of type "direct-relaxable" need not. */
static bool has_direct_region(char *text) {
        const char *line;

        while ((line = strsep(&text, "\n"))) {
                const char *type = strrchr(line, ' ');

                if (type && streq(type, " direct"))
                        return true;
        }
        return false;
}

/* Copies from the previous inventory whether the group has a direct region. Returns 1. Returns 0 if the regions must be
 * read, because this is a full scan, the group is new, or a member is read again. Returns -ENOMEM when out of
 * memory. */
static int copy_group(const Scan *s, const IommuGroup *group) {
        const IommuGroup *before = s->update ? inventory_find_group(s->old, group->number) : NULL;

        if (!before)
                return 0;
        for (size_t i = 0; i < group->n_members; i++)
                if (scan_is_reread(s, s->inv->devices[group->members[i]].address))
                        return 0;
        return before->direct ? inventory_set_group_direct(s->inv, group->number) ?: 1 : 1;
}

static int read_reserved_regions(const Scan *s) {
        _cleanup_close_ int fd = sysfs_open(s->fs, GROUPS, O_PATH | O_DIRECTORY);
        Inventory *inv = s->inv;

        for (size_t i = 0; i < inv->n_groups; i++) {
                char path[64], buf[SYSFS_ATTRIBUTE_MAX];
                int r = copy_group(s, &inv->groups[i]);

                if (r < 0)
                        return r;
                if (r > 0)
                        continue;
                (void) stpcpy(format_unsigned(path, (uint64_t) inv->groups[i].number), "/reserved_regions");
                r = fd < 0 ? fd : sysfs_read_at(s->fs, fd, path, buf, sizeof(buf));
                if (r < 0 && r != -ENOENT)
                        r = inventory_add_note(inv, "The reserved regions of IOMMU group %d cannot be read (%s).",
                                               inv->groups[i].number, strerror(-r));
                else if (r > 0 && has_direct_region(buf))
                        r = inventory_set_group_direct(inv, inv->groups[i].number);
                if (r == -ENOMEM)
                        return r;
        }
        return 0;
}

/* Reads the IOMMU options of the kernel command line. Adds a note for pcie_acs_override=, which makes the kernel
 * form IOMMU groups that the hardware does not isolate from each other. */
static int read_cmdline(const Sysfs *fs, Inventory *inv) {
        _cleanup_close_ int fd = sysfs_open(fs, "proc", O_RDONLY | O_DIRECTORY);
        _cleanup_free_ char *text = NULL;
        char *word, *rest;
        int r;

        r = fd < 0 ? fd : read_file_at(fd, "cmdline", CMDLINE_MAX, &text, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        inv->iommu_boot = cmdline_iommu(text);
        inv->confidential.passthrough = cmdline_iommu_passthrough(text);
        rest = text;
        while ((word = strsep(&rest, " \n"))) {
                static const char key[] = "pcie_acs_override=";

                if (strncmp(word, key, strlen(key)) != 0)
                        continue;
                return inventory_add_note(inv,
                                          NOTE_ACS_OVERRIDE
                                          "%s: its IOMMU groups claim isolation that the hardware does not provide.",
                                          text_is_clean(word) && strlen(word) < 200 ? word + strlen(key) : "");
        }
        return 0;
}

bool scan_group_is_noiommu(const Sysfs *fs, int number) {
        char path[64], buf[SYSFS_ATTRIBUTE_MAX];

        (void) snprintf(path, sizeof(path), GROUPS "/%d/name", number);
        return sysfs_read(fs, path, buf, sizeof(buf)) > 0 && streq(buf, "vfio-noiommu");
}

static int drop_noiommu_groups(const Sysfs *fs, Inventory *inv) {
        size_t n = 0;
        int r;

        for (size_t i = 0; i < inv->n_groups; i++) {
                if (!scan_group_is_noiommu(fs, inv->groups[i].number))
                        continue;
                for (size_t j = 0; j < inv->groups[i].n_members; j++)
                        inv->devices[inv->groups[i].members[j]].iommu_group = -1;
                n++;
        }
        if (n == 0)
                return 0;
        r = inventory_add_note(inv, "IOMMU groups of VFIO's no-IOMMU mode are ignored (%zu).", n);
        return r < 0 ? r : inventory_finish(inv);
}

static int read_noiommu(const Sysfs *fs, Inventory *inv) {
        char buf[SYSFS_ATTRIBUTE_MAX];
        int r = sysfs_read(fs, "sys/module/vfio/parameters/enable_unsafe_noiommu_mode", buf, sizeof(buf));

        if (r <= 0 || (!streq(buf, "Y") && !streq(buf, "1")))
                return 0;
        r = inventory_add_note(
                inv, "VFIO runs in its unsafe no-IOMMU mode: groups of this mode isolate nothing and are not used.");
        return r < 0 ? r : drop_noiommu_groups(fs, inv);
}

static int take_over_name(const Scan *s, PciDevice *dev) {
        const PciDevice *before = inventory_find(s->old, dev->address);

        if (!before || !before->named || before->vendor != dev->vendor || before->device != dev->device ||
            before->vf_device != dev->vf_device)
                return 0;
        if (string_copy(&dev->name, before->name) < 0 || string_copy(&dev->vf_name, before->vf_name) < 0)
                return -ENOMEM;
        dev->named = true;
        return 0;
}

static int take_name_of_pf(const Scan *s, PciDevice *dev) {
        const PciDevice *pf = dev->type == PCI_TYPE_VF ? inventory_find(s->inv, dev->physfn) : NULL;
        int r;

        if (!pf || !pf->named || pf->vendor != dev->vendor || pf->vf_device != dev->device || pf->class != dev->class)
                return 0;
        r = string_copy(&dev->name, pf->vf_name);
        dev->named = r >= 0;
        return r;
}

/* Copies names from the last inventory and, for new VFs, from their PFs, to avoid a read of pci.ids, which has more
 * than a megabyte. */
static int take_over_names(const Scan *s) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < s->inv->n_devices; i++)
                if (!s->inv->devices[i].named)
                        r = take_over_name(s, &s->inv->devices[i]);
        for (size_t i = 0; r >= 0 && i < s->inv->n_devices; i++)
                if (!s->inv->devices[i].named)
                        r = take_name_of_pf(s, &s->inv->devices[i]);
        return r;
}

int scan_complete(const Scan *s) {
        const Sysfs *fs = s->fs;
        Inventory *inv = s->inv;
        int r;

        r = inventory_finish(inv);
        if (r < 0)
                return r;
        r = read_noiommu(fs, inv);
        if (r < 0)
                return r;
        inv->xen = xen_is_dom0(fs);
        if (inv->xen)
                r = inventory_derive_groups(inv);
        if (r < 0)
                return r;
        inherit_nodes(inv);
        r = subdevices_append_names(fs, inv->devices, inv->n_devices);
        if (r < 0)
                return r;
        r = read_reserved_regions(s);
        if (r < 0)
                return r;
        r = s->update ? take_over_names(s) : 0;
        if (r < 0)
                return r;
        r = s->conf ? pciconf_name_devices(s->conf, inv) : 0;
        if (r == -ENOMEM)
                return r;
        r = read_cmdline(fs, inv);
        if (r < 0)
                return r;
        return inv->iommu ? 0 : inventory_add_note(inv, "%s", NOTE_NO_IOMMU);
}

/*
 * The target of a disk's link in /sys/class/block leads through the directory of the disk's controller, and that of an
 * interface's link in /sys/class/net through the directory of the network device. Reading these links takes fewer
 * system calls than walking through the directories of all devices.
 */

#define SUBDEVICES_MAX 65536U

typedef struct Subdevices {
        PciDevice *devices;
        size_t n_devices;
        char **names; /* names of the entries, sorted */
        size_t n;
        bool nested; /* entries may be below others, as a partition is below its disk */
        bool (*has)(const PciDevice *dev);
} Subdevices;

static bool has_disks(const PciDevice *dev) {
        return dev->class >> 16 == 0x01;
}

/* Returns true when interfaces are searched for below the device. VFs and GPUs are left out: they are often read
 * again, and device_facts_read_driver() reads the interfaces in their own directory net. */
static bool has_interfaces(const PciDevice *dev) {
        return dev->type != PCI_TYPE_VF && !pci_device_is_gpu(dev);
}

static int name_compare(const void *key, const void *element) {
        return strcmp(key, *(char *const *) element);
}

static int device_compare(const void *key, const void *element) {
        return pci_address_compare(*(const PciAddress *) key, ((const PciDevice *) element)->address);
}

/* Cuts off the last component of the path, and returns it. NULL: there is none left. */
static const char *cut_last(char *path) {
        char *slash = strrchr(path, '/');

        if (!slash)
                return NULL;
        *slash = '\0';
        return slash + 1;
}

/* Finds the PCI function in a target such as "../../devices/pci0000:00/0000:00:1d.0/0000:3c:00.0/nvme/nvme0/nvme0n1".
 * Returns NULL for a partition, and for an entry below no PCI function. Modifies target. */
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

/* In sysfs, the path of controller 1 to namespace nvme0n1 is called "nvme0c1n1". The block device in /dev is
 * nvme0n1. */
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

/* Appends the entries of a class. other: what some recordings have instead of the class; NULL: nothing. */
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
