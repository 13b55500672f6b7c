/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Reads all PCI functions from sysfs into an Inventory. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "devicefacts.h"
#include "host/cpuinfo.h"
#include "host/driverlist.h"
#include "host/numa.h"
#include "pciconf.h"
#include "scan-internal.h"
#include "util/fileio.h"
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

static void forget_directory(Scan *s) {
        free(s->directory);
        s->directory = NULL;
        cleanup_close(&s->directory_fd);
        s->directory_fd = -1;
}

/*
 * Sets s->directory to the directory that holds the PF with this path. The kernel gives a VF the parent of its PF. The
 * VFs follow in the order of addresses, and are opened there without a walk from the root. Returns 0 or -ENOMEM.
 */
static int remember_directory(Scan *s, const char *path) {
        const char *slash = strrchr(path, '/');
        _cleanup_free_ char *full = NULL;

        forget_directory(s);
        if (!slash)
                return 0;
        s->directory = strndup(path, (size_t) (slash + 1 - path));
        if (!s->directory || string_replace(&full, "sys/devices/%s", s->directory) < 0)
                return -ENOMEM;
        s->directory_fd = sysfs_open(s->fs, full, O_PATH | O_DIRECTORY);
        return 0;
}

/* Opens the entry `name` of SCAN_DEVICES. Sets *ret_beside to whether its directory is in s->directory. Returns 0 or a
 * negative errno. */
static int open_device(Scan *s, const char *name, bool *ret_beside, DeviceDir **ret) {
        int fd = s->directory_fd < 0 ? -1
                                     : openat(s->directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        *ret_beside = fd >= 0;
        if (fd >= 0)
                return device_dir_new(s->fs, fd, ret);
        forget_directory(s);
        return device_dir_open(s->fs, name, ret);
}

/* Sets dev->path. beside: the device is in s->directory. 0 or -ENOMEM. */
static int read_path(const Scan *s, const char *name, bool beside, PciDevice *dev) {
        int r;

        if (beside) {
                dev->path = malloc(strlen(s->directory) + strlen(name) + 1);
                if (!dev->path)
                        return -ENOMEM;
                (void) stpcpy(stpcpy(dev->path, s->directory), name);
                return 0;
        }
        r = device_path(s, name, &dev->path);
        if (r < 0 || dev->path)
                return r;
        r = string_copy(&dev->path, "");
        if (r < 0)
                return r;
        return pci_device_add_fault(dev, "the path below sys/devices is unknown");
}

static bool class_is_bridge(const PciDevice *dev) {
        return dev->class >> 8 == 0x0604 || dev->class >> 8 == 0x0607;
}

/* Returns whether to read ATS: for accelerators and NICs, which may do peer-to-peer DMA. A machine can have thousands
 * of VFs, for which the ATS state of their PF is reported. */
static bool may_have_ats(const PciDevice *dev) {
        return dev->type != PCI_TYPE_VF && (pci_device_is_accelerator(dev) || pci_device_is_nic(dev));
}

static bool is_busy(const Scan *s, PciAddress address) {
        for (size_t i = 0; i < s->n_busy; i++)
                if (pci_address_equal(s->busy[i], address))
                        return true;
        return false;
}

/* Returns the device in the last inventory. NULL: it is new, or another device was at its address. */
static const PciDevice *find_before(const Scan *s, const PciDevice *dev) {
        const PciDevice *before = s->old ? inventory_find(s->old, dev->address) : NULL;

        return before && before->instance == dev->instance ? before : NULL;
}

/*
 * Copies the facts of config space from the previous inventory, if it has them all, when the device's driver has not
 * changed or a job works on the device: reading config space of a dead or resetting endpoint may block for ever.
 * Returns false when config space must be read.
 */
static bool keep_config(const Scan *s, PciDevice *dev, bool clean) {
        const PciDevice *before = find_before(s, dev);

        if (!before || before->is_bridge || before->fault || streq_ptr(before->power_state, "D3cold") ||
            !(is_busy(s, dev->address) || streq_ptr(before->driver, dev->driver)))
                return false;
        dev->ats = before->ats;
        if (clean)
                return true;
        /* ACS was not read: the device was alone in its slot then. */
        if (before->acs == PCI_ACS_CLEAN)
                return false;
        dev->acs = before->acs;
        dev->acs_capabilities = before->acs_capabilities;
        dev->acs_enabled = before->acs_enabled;
        return true;
}

/*
 * Reads header type, ACS and ATS from config space, where needed: for bridges, for functions that may be bridges (class
 * 06 except host, ISA, EISA and MCA bridges), for functions that share a slot (except VFs), and for the ATS of
 * accelerators and NICs. Every other function is isolated by definition.
 */
static int read_config(const Scan *s, const DeviceDir *d, bool shares_slot, PciDevice *dev) {
        PciConfFacts facts = { .acs = PCI_ACS_UNKNOWN };
        bool may_bridge, clean;

        dev->is_bridge = class_is_bridge(dev) || device_dir_has(d, ATTRIBUTE_SECONDARY_BUS_NUMBER);
        may_bridge = dev->is_bridge || (dev->class >> 16 == 0x06 && (dev->class >> 8 & 0xff) >= 0x04);
        clean = dev->type == PCI_TYPE_VF || (!may_bridge && !shares_slot);
        if (clean)
                dev->acs = PCI_ACS_CLEAN;
        if ((clean && !may_have_ats(dev)) || (!may_bridge && keep_config(s, dev, clean)))
                return 0;
        /* An update leaves ATS out, because the read might wait for the hot-plug lock. The next full scan reads it. */
        if (clean && s->update)
                return 0;
        /* A read of config space would resume a device in D3cold. */
        if (!s->conf || !device_dir_has(d, ATTRIBUTE_CONFIG) || streq_ptr(dev->power_state, "D3cold"))
                return 0;
        if (pciconf_read(s->conf, dev->address, &facts) < 0)
                /* ATS decides nothing, so it is no fault that it is unknown. */
                return clean ? 0 : pci_device_add_fault(dev, "config cannot be read");
        dev->ats = facts.ats;
        if (clean)
                return 0;
        dev->is_bridge = dev->is_bridge || facts.is_bridge;
        dev->acs = facts.acs;
        dev->acs_capabilities = facts.acs_capabilities;
        dev->acs_enabled = facts.acs_enabled;
        return 0;
}

/* Finds the VF in siblings that has the same PF. The search begins at the end, because VFs of one PF have neighbouring
 * addresses. */
static const PciDevice *find_sibling(const Scan *s, const PciDevice *dev) {
        for (size_t i = s->n_siblings; dev->type == PCI_TYPE_VF && i > 0; i--) {
                const PciDevice *vf = &s->inv->devices[s->siblings[i - 1]];

                if (pci_address_equal(vf->physfn, dev->physfn))
                        return vf;
        }
        return NULL;
}

/* Remembers a PF with VFs, because its VFs are read next. 0 or -ENOMEM. */
static int add_pf(Scan *s, bool beside, const PciDevice *dev) {
        if (dev->n_linked == 0)
                return 0;
        if (ARRAY_RESERVE(s->pfs, s->n_pfs) < 0)
                return -ENOMEM;
        s->pfs[s->n_pfs++] = (size_t) (dev - s->inv->devices);
        return beside ? 0 : remember_directory(s, dev->path);
}

/* Returns the PF that has a link to this VF; NULL: no such PF was read before. */
static const PciDevice *find_pf(const Scan *s, PciAddress vf) {
        for (size_t i = s->n_pfs; i > 0; i--) {
                const PciDevice *pf = &s->inv->devices[s->pfs[i - 1]];

                if (pci_addresses_have(pf->linked, pf->n_linked, vf))
                        return pf;
        }
        return NULL;
}

/* Reads physfn only if no virtfnN of a PF that was read names the VF, because the kernel creates both together. */
static int read_physfn(const Scan *s, const DeviceDir *d, PciDevice *dev) {
        const PciDevice *pf = device_dir_has(d, ATTRIBUTE_PHYSFN) ? find_pf(s, dev->address) : NULL;

        if (!pf)
                return device_facts_read_physfn(d, dev);
        dev->type = PCI_TYPE_VF;
        dev->physfn = pf->address;
        return 0;
}

/* Adds dev to siblings if it is the first VF of its PF that was read completely. */
static int add_sibling(Scan *s, const DeviceDir *d, const PciDevice *dev) {
        if (dev->type != PCI_TYPE_VF || !device_facts_are_whole(d, dev) || find_sibling(s, dev))
                return 0;
        if (ARRAY_RESERVE(s->siblings, s->n_siblings) < 0)
                return -ENOMEM;
        s->siblings[s->n_siblings++] = (size_t) (dev - s->inv->devices);
        return 0;
}

/* Adds a device and reads its facts. `known` has the device's address, type and physfn; takes ownership of
 * known->fault. */
static int add_read_device(Scan *s, const DeviceDir *d, const char *name, bool beside, PciDevice *known,
                           bool shares_slot) {
        PciDevice *dev;
        int r = device_facts_read_identity(d, find_sibling(s, known), known);

        if (r < 0 || (known->fault && device_dir_is_gone(d))) {
                free(known->fault);
                return r;
        }
        dev = inventory_add_device(s->inv, known->address);
        if (!dev) {
                free(known->fault);
                return -ENOMEM;
        }
        dev->type = known->type;
        dev->physfn = known->physfn;
        dev->vendor = known->vendor;
        dev->device = known->device;
        dev->subsystem_vendor = known->subsystem_vendor;
        dev->subsystem_device = known->subsystem_device;
        dev->class = known->class;
        memcpy(dev->bar_size, known->bar_size, sizeof(dev->bar_size));
        dev->fault = known->fault;
        dev->instance = device_dir_instance(d);
        r = read_path(s, name, beside, dev);
        if (r < 0)
                return r;
        r = add_sibling(s, d, dev);
        if (r < 0)
                return r;
        r = device_facts_read(d, dev);
        if (r < 0)
                return r;
        r = add_pf(s, beside, dev);
        return r < 0 ? r : read_config(s, d, shares_slot, dev);
}

/* Copies from the last inventory what was not read of the locked device, the last one in s->inv. 0 or -ENOMEM. */
static int keep_locked(Scan *s, PciAddress address) {
        PciDevice *now = s->inv->n_devices > 0 ? &s->inv->devices[s->inv->n_devices - 1] : NULL;
        const PciDevice *before;

        /* The device was not added, because it has disappeared. */
        if (!now || !pci_address_equal(now->address, address))
                return 0;
        before = find_before(s, now);
        if (!before)
                return 0;
        return string_copy(&now->driver_override, before->driver_override) < 0 || pci_device_copy_vgpu(now, before) < 0
                       ? -ENOMEM
                       : 0;
}

static int scan_device(Scan *s, const char *name, bool shares_slot) {
        _cleanup_(cleanup_device_dir_free) DeviceDir *d = NULL;
        PciDevice known = { 0 };
        bool beside, locked;
        int r;

        if (pci_address_parse(name, &known.address) < 0)
                return inventory_add_note(s->inv, "An entry of %s is not a PCI address and is skipped.", SCAN_DEVICES);
        r = open_device(s, name, &beside, &d);
        if (r == -ENOMEM)
                return r;
        if (r == -ENOENT || r == -ENODEV)
                return 0; /* removed since the listing */
        if (r < 0)
                return inventory_add_note(s->inv, "%s cannot be read (%s) and is skipped.", name, strerror(-r));
        r = read_physfn(s, d, &known);
        if (r < 0)
                return r;
        /* The device lock may be held: when a uevent arrives, the kernel may still probe drivers, and a job that
         * creates VFs on a PF makes the kernel probe drivers for these VFs. */
        locked = s->locked || is_busy(s, known.address) || (known.type == PCI_TYPE_VF && is_busy(s, known.physfn));
        if (locked)
                device_dir_set_locked(d);
        r = add_read_device(s, d, name, beside, &known, shares_slot);
        return r >= 0 && locked ? keep_locked(s, known.address) : r;
}

/* Returns whether two functions are in one slot, such as "0000:01:00.0" and "0000:01:00.1". */
static bool same_slot(const char *a, const char *b) {
        size_t n = strcspn(a, ".");

        return a[n] == '.' && strncmp(a, b, n + 1) == 0;
}

int scan_names(Scan *s, char *const *names, size_t n) {
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                bool shares_slot = (i > 0 && same_slot(names[i], names[i - 1])) ||
                                   (i + 1 < n && same_slot(names[i], names[i + 1]));

                r = scan_device(s, names[i], shares_slot);
                if (r < 0)
                        return r;
        }
        return r;
}

/* Returns whether one of the paths leads through the slot of the function. */
static bool is_on_path(const char *name, char *const *paths, size_t n_paths) {
        char slot[PCI_ADDRESS_STRING_MAX + 1];
        const char *dot = strrchr(name, '.');

        if (!dot || dot - name >= PCI_ADDRESS_STRING_MAX - 1)
                return false;
        (void) snprintf(slot, sizeof(slot), "/%.*s", (int) (dot + 1 - name), name);
        for (size_t i = 0; i < n_paths; i++)
                if (strstr(paths[i], slot))
                        return true;
        return false;
}

/* Moves the names of devices on the paths to the front. Returns their number. */
static size_t keep_names_on_paths(char **names, size_t n, char *const *paths, size_t n_paths) {
        size_t n_kept = 0;

        for (size_t i = 0; i < n; i++)
                if (is_on_path(names[i], paths, n_paths)) {
                        char *name = names[n_kept];

                        names[n_kept++] = names[i];
                        names[i] = name;
                }
        return n_kept;
}

static int scan_devices(Scan *s) {
        char **names;
        size_t n;
        int r;

        r = list_dir_at(s->devices_fd, ".", INVENTORY_DEVICES_MAX, &names, &n);
        if (r < 0)
                return r;
        r = scan_names(s, names, s->paths ? keep_names_on_paths(names, n, s->paths, s->n_paths) : n);
        (void) free_names(names, n);
        return r;
}

static int scan_pci(Scan *s) {
        _cleanup_close_ int fd = sysfs_open(s->fs, SCAN_DEVICES, O_RDONLY | O_DIRECTORY);

        if (fd == -ENOENT)
                return inventory_add_note(s->inv, "The machine has no PCI bus.");
        s->devices_fd = fd;
        return fd < 0 ? fd : scan_devices(s);
}

int scan_start_libpci(Scan *s, PciConf **ret) {
        int r = pciconf_new(s->fs, ret);

        s->conf = *ret;
        if (r >= 0 || r == -ENOMEM)
                return r;
        return inventory_add_note(s->inv, "libpci cannot be initialized (%s): device names and isolation are unknown.",
                                  strerror(-r));
}

void scan_done(Scan *s) {
        forget_directory(s);
        free(s->reread);
        free(s->siblings);
        free(s->pfs);
}

int scan_inventory(const Sysfs *fs, Inventory **ret) {
        return scan_inventory_except(fs, NULL, false, NULL, 0, ret);
}

/* Adds the path of a device, which names all devices above it, too. A missing device is no error. */
static int add_path(char **paths, size_t *n, const Sysfs *fs, PciAddress address, const char *link) {
        char entry[sizeof(SCAN_DEVICES) + PCI_ADDRESS_STRING_MAX + 8];
        int r;

        (void) snprintf(entry, sizeof(entry), SCAN_DEVICES "/%s%s", PCI_ADDRESS_STR(address), link);
        r = sysfs_realpath(fs, entry, &paths[*n]);
        if (r >= 0)
                (*n)++;
        return r == -ENOMEM ? r : 0;
}

/* Reads the paths of devices and of their PFs. `paths` must have room for two paths per device. */
static int read_paths(const Sysfs *fs, const PciAddress *devices, size_t n, char **paths, size_t *ret_n) {
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                const PciAddress function = pci_address_function(devices[i]);

                r = add_path(paths, ret_n, fs, function, "");
                if (r < 0)
                        return r;
                r = add_path(paths, ret_n, fs, function, "/physfn");
                if (r < 0)
                        return r;
        }
        return r;
}

int scan_identities(const Sysfs *fs, const PciAddress *devices, size_t n, Inventory **ret) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        _cleanup_names_ char **paths = calloc(2 * n + 1, sizeof(*paths));
        _cleanup_(scan_done) Scan s = { .fs = fs, .inv = inv, .locked = true, .directory_fd = -1, .paths = paths };
        int r = inv && paths ? read_paths(fs, devices, n, paths, &s.n_paths) : -ENOMEM;

        if (r < 0)
                return r;
        r = scan_pci(&s);
        if (r < 0)
                return r;
        r = numa_list_nodes(fs, inv);
        if (r < 0)
                return r;
        r = scan_complete(&s);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(inv);
        return 0;
}

int scan_inventory_except(const Sysfs *fs, const Inventory *old, bool locked, const PciAddress *busy, size_t n_busy,
                          Inventory **ret) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        _cleanup_(cleanup_pciconf_free) PciConf *conf = NULL;
        _cleanup_(scan_done) Scan s = {
                .fs = fs, .inv = inv, .busy = busy, .n_busy = n_busy, .old = old, .locked = locked, .directory_fd = -1
        };
        int r;

        if (!inv)
                return -ENOMEM;
        r = scan_start_libpci(&s, &conf);
        if (r < 0)
                return r;
        r = scan_pci(&s);
        if (r < 0)
                return r;
        r = numa_scan(fs, inv);
        if (r < 0)
                return r;
        cpuinfo_scan(fs, inv);
        if (old)
                inv->libvirt = old->libvirt;
        r = driver_list_scan(fs, inv);
        if (r < 0)
                return r;
        r = scan_complete(&s);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(inv);
        return 0;
}
