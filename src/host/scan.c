/* SPDX-License-Identifier: GPL-2.0-or-later */

/* From sysfs to an Inventory: each PCI function in turn, then what only all of them together tell. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "host/devicefacts.h"
#include "host/numa.h"
#include "host/pciconf.h"
#include "host/scan.h"
#include "util/fileio.h"
#include "util/strings.h"

#define DEVICES     "sys/bus/pci/devices"
#define GROUPS      "sys/kernel/iommu_groups"
#define CMDLINE_MAX (64U * 1024U)
#define PARENTS_MAX 256U

typedef struct Scan {
        const Sysfs *fs;
        Inventory *inv;
        PciConf *conf; /* NULL when libpci could not start */
        int devices_fd;
        const PciAddress *busy;
        size_t n_busy;
        char first_skipped[PCI_ADDRESS_STRING_MAX]; /* in a domain above PCI_DOMAIN_MAX */
        size_t n_skipped;
} Scan;

/* "../../../devices/pci0000:80/0000:80:02.0" of the link on the bus; NULL in *ret when it is none. */
static int device_path(const Scan *s, const char *name, char **ret) {
        static const char devices[] = "devices/", below[] = "sys/devices/";
        _cleanup_free_ char *real = NULL;
        char target[PATH_MAX];
        const char *at = target;
        ssize_t n;
        char path[sizeof(DEVICES "/") + PCI_ADDRESS_STRING_MAX];

        *ret = NULL;
        n = readlinkat(s->devices_fd, name, target, sizeof(target) - 1);
        if (n > 0) {
                target[n] = '\0';
                while (strncmp(at, "../", 3) == 0)
                        at += 3;
                if (strncmp(at, devices, strlen(devices)) == 0)
                        return string_copy(ret, at + strlen(devices));
        }
        (void) snprintf(path, sizeof(path), DEVICES "/%s", name);
        if (sysfs_realpath(s->fs, path, &real) < 0 || strncmp(real, below, strlen(below)) != 0)
                return 0;
        return string_copy(ret, real + strlen(below));
}

static int read_path(const Scan *s, const char *name, PciDevice *dev) {
        int r = device_path(s, name, &dev->path);

        if (r < 0 || dev->path)
                return r;
        r = string_copy(&dev->path, "");
        if (r < 0)
                return r;
        return pci_device_add_fault(dev, "its place below sys/devices is not known");
}

static bool class_is_bridge(const PciDevice *dev) {
        return dev->class >> 8 == 0x0604 || dev->class >> 8 == 0x0607;
}

/*
 * Header type and ACS. Config space is read where it can make a difference: bridges, what may be one (class 06 beyond
 * host, ISA, EISA and MCA bridges), and functions that share a slot. The rest isolates by definition.
 */
static int read_config(const Scan *s, const DeviceDir *d, bool shares_slot, PciDevice *dev) {
        PciConfFacts facts = { .acs = PCI_ACS_UNKNOWN };
        bool may_bridge;

        dev->is_bridge = class_is_bridge(dev) || device_dir_has(d, ATTRIBUTE_SECONDARY_BUS_NUMBER);
        may_bridge = dev->is_bridge || (dev->class >> 16 == 0x06 && (dev->class >> 8 & 0xff) >= 0x04);
        if (dev->type == PCI_TYPE_VF || (!may_bridge && !shares_slot)) {
                dev->acs = PCI_ACS_CLEAN;
                return 0;
        }
        /* Reading would wake it up. */
        if (!s->conf || !device_dir_has(d, ATTRIBUTE_CONFIG) || streq_ptr(dev->power_state, "D3cold"))
                return 0;
        if (pciconf_read(s->conf, dev->address, &facts) < 0)
                return pci_device_add_fault(dev, "config cannot be read");
        dev->is_bridge = dev->is_bridge || facts.is_bridge;
        dev->acs = facts.acs;
        return 0;
}

static int add_device(Scan *s, const DeviceDir *d, const char *name, PciAddress address, bool shares_slot) {
        PciDevice ids = { 0 }, *dev;
        int r;

        r = device_facts_read_ids(d, &ids);
        if (r < 0 || (ids.fault && device_dir_is_gone(d))) {
                free(ids.fault);
                return r;
        }
        dev = inventory_add_device(s->inv, address);
        if (!dev) {
                free(ids.fault);
                return -ENOMEM;
        }
        dev->vendor = ids.vendor;
        dev->device = ids.device;
        dev->subsystem_vendor = ids.subsystem_vendor;
        dev->subsystem_device = ids.subsystem_device;
        dev->class = ids.class;
        dev->fault = ids.fault;

        r = read_path(s, name, dev);
        if (r >= 0)
                r = device_facts_read(d, dev);
        if (r >= 0)
                r = read_config(s, d, shares_slot, dev);
        return r;
}

static bool is_busy(const Scan *s, PciAddress address) {
        for (size_t i = 0; i < s->n_busy; i++)
                if (pci_address_equal(s->busy[i], address))
                        return true;
        return false;
}

static int scan_device(Scan *s, const char *name, bool shares_slot) {
        _cleanup_(cleanup_device_dir_free) DeviceDir *d = NULL;
        PciAddress address;
        int r;

        if (pci_address_parse(name, &address) < 0)
                return inventory_add_note(s->inv, "An entry of %s is not a PCI address and is skipped.", DEVICES);
        if (address.domain > PCI_DOMAIN_MAX) {
                if (s->n_skipped++ == 0)
                        (void) pci_address_format(address, s->first_skipped);
                return 0;
        }
        r = device_dir_open(s->fs, name, &d);
        if (r == -ENOMEM)
                return r;
        if (r == -ENOENT || r == -ENODEV)
                return 0; /* went away meanwhile */
        if (r < 0)
                return inventory_add_note(s->inv, "%s cannot be read (%s) and is skipped.", name, strerror(-r));
        if (is_busy(s, address))
                device_dir_set_locked(d);
        return add_device(s, d, name, address, shares_slot);
}

/* Two functions of one slot: "0000:01:00.0", "0000:01:00.1". */
static bool same_slot(const char *a, const char *b) {
        size_t n = strcspn(a, ".");

        return a[n] == '.' && strncmp(a, b, n + 1) == 0;
}

static int scan_devices(Scan *s) {
        char **names;
        size_t n;
        int r;

        r = list_dir_at(s->devices_fd, ".", INVENTORY_DEVICES_MAX, &names, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n && r >= 0; i++) {
                bool shares_slot = (i > 0 && same_slot(names[i], names[i - 1])) ||
                                   (i + 1 < n && same_slot(names[i], names[i + 1]));

                r = scan_device(s, names[i], shares_slot);
        }
        (void) free_names(names, n);
        if (r < 0 || s->n_skipped == 0)
                return r;
        if (s->n_skipped == 1)
                return inventory_add_note(s->inv,
                                          "%s is skipped: no guest can be given a device of a PCI domain above %04x.",
                                          s->first_skipped, PCI_DOMAIN_MAX);
        return inventory_add_note(
                s->inv, "%s and %zu more are skipped: no guest can be given a device of a PCI domain above %04x.",
                s->first_skipped, s->n_skipped - 1, PCI_DOMAIN_MAX);
}

static int scan_pci(Scan *s) {
        _cleanup_close_ int fd = sysfs_open(s->fs, DEVICES, O_RDONLY | O_DIRECTORY);

        if (fd == -ENOENT)
                return inventory_add_note(s->inv, "This machine has no PCI bus.");
        s->devices_fd = fd;
        return fd < 0 ? fd : scan_devices(s);
}

/*
 * The kernel says -1 where firmware says nothing; then the bridges above may know, and for a VF its PF.
 * Not where the attribute is damaged: that stays unknown.
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

                if (dev->numa_node == -1)
                        dev->numa_node = node_above(inv, dev);
                else if (dev->numa_node == DEVICE_NODE_DAMAGED)
                        dev->numa_node = -1;
        }
}

/* Lines of "start end type". "direct" has to stay mapped; "direct-relaxable" need not. */
static bool has_direct_region(char *text) {
        const char *line;

        while ((line = strsep(&text, "\n"))) {
                const char *type = strrchr(line, ' ');

                if (type && streq(type, " direct"))
                        return true;
        }
        return false;
}

static int read_reserved_regions(const Sysfs *fs, Inventory *inv) {
        for (size_t i = 0; i < inv->n_groups; i++) {
                char path[64], buf[SYSFS_ATTRIBUTE_MAX];
                int r;

                (void) snprintf(path, sizeof(path), GROUPS "/%d/reserved_regions", inv->groups[i].number);
                r = sysfs_read(fs, path, buf, sizeof(buf));
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

/* The word of the kernel command line that makes groups promise isolation that is not there. */
static int note_acs_override(const Sysfs *fs, Inventory *inv) {
        _cleanup_close_ int fd = sysfs_open(fs, "proc", O_RDONLY | O_DIRECTORY);
        _cleanup_free_ char *text = NULL;
        char *word, *rest;
        int r;

        r = fd < 0 ? fd : read_file_at(fd, "cmdline", CMDLINE_MAX, &text, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        rest = text;
        while ((word = strsep(&rest, " \n"))) {
                static const char key[] = "pcie_acs_override=";

                if (strncmp(word, key, strlen(key)) != 0)
                        continue;
                return inventory_add_note(
                        inv,
                        "The kernel runs with %s: its IOMMU groups promise isolation that the hardware does not give.",
                        text_is_clean(word) && strlen(word) < 200 ? word : key);
        }
        return 0;
}

/* The kernel makes such groups for devices that no IOMMU confines (domain.md A17). */
static bool group_is_noiommu(const Sysfs *fs, int number) {
        char path[64], buf[SYSFS_ATTRIBUTE_MAX];

        (void) snprintf(path, sizeof(path), GROUPS "/%d/name", number);
        return sysfs_read(fs, path, buf, sizeof(buf)) > 0 && streq(buf, "vfio-noiommu");
}

static int drop_noiommu_groups(const Sysfs *fs, Inventory *inv) {
        size_t n = 0;
        int r;

        for (size_t i = 0; i < inv->n_groups; i++) {
                if (!group_is_noiommu(fs, inv->groups[i].number))
                        continue;
                for (size_t j = 0; j < inv->groups[i].n_members; j++)
                        inv->devices[inv->groups[i].members[j]].iommu_group = -1;
                n++;
        }
        if (n == 0)
                return 0;
        r = inventory_add_note(inv, "%zu of the IOMMU groups are of the no-IOMMU mode and count as none.", n);
        return r < 0 ? r : inventory_finish(inv);
}

static int read_noiommu(const Sysfs *fs, Inventory *inv) {
        char buf[SYSFS_ATTRIBUTE_MAX];
        int r = sysfs_read(fs, "sys/module/vfio/parameters/enable_unsafe_noiommu_mode", buf, sizeof(buf));

        if (r <= 0 || (!streq(buf, "Y") && !streq(buf, "1")))
                return 0;
        r = inventory_add_note(
                inv, "VFIO runs in its unsafe no-IOMMU mode: its groups protect nothing and do not serve guests.");
        return r < 0 ? r : drop_noiommu_groups(fs, inv);
}

static int note_iommu(Inventory *inv) {
        return inv->iommu
                       ? 0
                       : inventory_add_note(inv,
                                            "No device has an IOMMU group: the IOMMU is off or missing, no device can "
                                            "be given to a guest.");
}

static int complete(const Sysfs *fs, Inventory *inv, PciConf *conf) {
        int r;

        r = inventory_finish(inv);
        if (r < 0)
                return r;
        r = read_noiommu(fs, inv);
        if (r < 0)
                return r;
        inherit_nodes(inv);
        r = read_reserved_regions(fs, inv);
        if (r < 0)
                return r;
        r = conf ? pciconf_name_devices(conf, inv) : 0;
        if (r == -ENOMEM)
                return r;
        r = note_acs_override(fs, inv);
        if (r < 0)
                return r;
        return note_iommu(inv);
}

int scan_inventory(const Sysfs *fs, Inventory **ret) {
        return scan_inventory_around(fs, NULL, 0, ret);
}

int scan_inventory_around(const Sysfs *fs, const PciAddress *busy, size_t n_busy, Inventory **ret) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        _cleanup_(cleanup_pciconf_free) PciConf *conf = NULL;
        int r;

        if (!inv)
                return -ENOMEM;
        r = pciconf_new(fs, &conf);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                r = inventory_add_note(inv, "libpci cannot start (%s): names and isolation of devices are not known.",
                                       strerror(-r));
                if (r < 0)
                        return r;
        }
        r = scan_pci(&(Scan){ .fs = fs, .inv = inv, .conf = conf, .busy = busy, .n_busy = n_busy });
        if (r < 0)
                return r;
        r = numa_scan(fs, inv);
        if (r < 0)
                return r;
        r = complete(fs, inv, conf);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(inv);
        return 0;
}

static int check_same(const Sysfs *fs, const PciDevice *now, size_t n_virtfns, const PciDevice *before) {
        int group = now->iommu_group;

        if (n_virtfns != before->n_virtfns || now->vendor != before->vendor || now->device != before->device ||
            now->subsystem_vendor != before->subsystem_vendor || now->subsystem_device != before->subsystem_device)
                return -ESTALE;
        if (group >= 0 && group != before->iommu_group && group_is_noiommu(fs, group))
                group = -1;
        return group == before->iommu_group ? 0 : -ESTALE;
}

static void take_driver(PciDevice *dev, PciDevice *now) {
        free(dev->driver);
        free(dev->driver_override);
        dev->driver = TAKE_PTR(now->driver);
        dev->driver_override = TAKE_PTR(now->driver_override);
        dev->has_override = now->has_override;
        dev->vfio = now->vfio;
}

int scan_refresh(const Sysfs *fs, PciDevice *dev) {
        _cleanup_(cleanup_device_dir_free) DeviceDir *d = NULL;
        PciDevice now = { .iommu_group = -1 };
        size_t n_virtfns;
        int r;

        r = device_dir_open(fs, PCI_ADDRESS_STR(dev->address), &d);
        if (r == -ENODEV)
                return -ENOENT;
        if (r < 0)
                return r;
        (void) device_dir_virtfns(d, &n_virtfns);
        r = device_facts_read_ids(d, &now);
        if (r >= 0)
                r = device_facts_read_group(d, &now);
        if (r >= 0)
                r = check_same(fs, &now, n_virtfns, dev);
        if (r >= 0)
                r = device_facts_read_driver(d, &now);
        if (r >= 0)
                take_driver(dev, &now);
        free(now.fault); /* the last scan said so already */
        free(now.driver);
        free(now.driver_override);
        return MIN(r, 0);
}
