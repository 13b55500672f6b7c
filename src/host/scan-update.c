/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Updates an inventory: reads one device's driver again, or reads changed devices and copies the others. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "devicefacts.h"
#include "host/xen.h"
#include "model/mdev-slots.h"
#include "scan-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

/* Appends the function, and the functions of its slot that the last inventory has: a scan must know which functions
 * share a slot, because it reads ACS of such functions. */
static int append_slot(const Inventory *old, PciAddress address, PciAddress **array, size_t *n) {
        int r;

        address = pci_address_function(address);
        r = pci_address_append(array, n, address);
        if (r < 0)
                return r;
        for (uint8_t f = 0; f < 8; f++) {
                PciAddress neighbour = address;

                neighbour.function = f;
                if (inventory_find(old, neighbour))
                        r = pci_address_append(array, n, neighbour);
                if (r < 0)
                        return r;
        }
        return r;
}

/* Appends the device, its PF and its VFs, with their slots. The facts of a PF depend on its VFs and vice versa. */
static int append_family(const Inventory *old, PciAddress address, PciAddress **array, size_t *n) {
        const PciDevice *dev = inventory_find(old, address);
        int r = append_slot(old, address, array, n);

        if (r < 0)
                return r;
        if (dev && dev->type == PCI_TYPE_VF)
                r = append_slot(old, dev->physfn, array, n);
        for (size_t i = 0; r >= 0 && dev && i < dev->n_vfs; i++)
                r = append_slot(old, dev->vfs[i], array, n);
        return r;
}

/* Appends the VFs that the PF has now. The last inventory may lack some. */
static int append_vfs(Scan *s, PciAddress pf) {
        _cleanup_(cleanup_device_dir_free) DeviceDir *d = NULL;
        _cleanup_(pci_device_done) PciDevice now = { 0 }; /* its fault is dropped: add_read_device() notes the same */
        int r = device_dir_open(s->fs, PCI_ADDRESS_STR(pf), &d);

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        r = device_facts_read_vfs(d, &now);
        for (size_t i = 0; r >= 0 && i < now.n_linked; i++)
                r = append_slot(s->old, now.linked[i], &s->reread, &s->n_reread);
        return r;
}

/* Reads the devices at these addresses. Skips an address at which there is no device. */
static int read_devices(Scan *s, const PciAddress *addresses, size_t n) {
        _cleanup_names_ char **names = calloc(n + 1, sizeof(*names));
        size_t n_names = 0;

        if (!names)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                struct stat st;

                if (fstatat(s->devices_fd, PCI_ADDRESS_STR(addresses[i]), &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                names[n_names] = strdup(PCI_ADDRESS_STR(addresses[i]));
                if (!names[n_names++])
                        return -ENOMEM;
        }
        return scan_names(s, names, n_names);
}

/* Reads the PFs of new VFs, because these PFs have new links virtfnN. */
static int read_new_pfs(Scan *s) {
        _cleanup_free_ PciAddress *pfs = NULL;
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < s->inv->n_devices; i++) {
                const PciDevice *vf = &s->inv->devices[i];

                if (vf->type == PCI_TYPE_VF && !scan_is_reread(s, vf->physfn))
                        r = append_slot(s->old, vf->physfn, &pfs, &n);
        }
        if (r < 0 || n == 0)
                return r;
        pci_addresses_sort(pfs, &n);
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = pci_address_append(&s->reread, &s->n_reread, pfs[i]);
        pci_addresses_sort(s->reread, &s->n_reread);
        return r < 0 ? r : read_devices(s, pfs, n);
}

static int copy_devices(Scan *s) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < s->old->n_devices; i++)
                /* inventory_finish() derives the slots of mediated devices. */
                if (!pci_device_is_slot(&s->old->devices[i]) && !scan_is_reread(s, s->old->devices[i].address))
                        r = inventory_copy_device(s->inv, &s->old->devices[i]);
        return r;
}

static int copy_machine(const Inventory *old, Inventory *inv) {
        inv->nodes = calloc(old->n_nodes + 1, sizeof(*inv->nodes));
        inv->cpus = calloc(old->n_cpus + 1, sizeof(*inv->cpus));
        if (!inv->nodes || !inv->cpus)
                return -ENOMEM;
        if (old->n_nodes > 0)
                memcpy(inv->nodes, old->nodes, old->n_nodes * sizeof(*inv->nodes));
        if (old->n_cpus > 0)
                memcpy(inv->cpus, old->cpus, old->n_cpus * sizeof(*inv->cpus));
        inv->n_nodes = old->n_nodes;
        inv->n_cpus = old->n_cpus;
        inv->phys_bits = old->phys_bits;
        inv->amd = old->amd;
        memcpy(inv->architecture, old->architecture, sizeof(inv->architecture));
        inv->kernel = old->kernel;
        inv->libvirt = old->libvirt;
        inv->confidential = old->confidential;
        return inventory_copy_drivers(inv, old);
}

static int update(Scan *s, const PciAddress *devices, size_t n) {
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                r = append_family(s->old, devices[i], &s->reread, &s->n_reread);
                if (r < 0)
                        return r;
                r = append_vfs(s, devices[i]);
                if (r < 0)
                        return r;
        }
        pci_addresses_sort(s->reread, &s->n_reread);
        r = read_devices(s, s->reread, s->n_reread);
        if (r < 0)
                return r;
        r = read_new_pfs(s);
        if (r < 0)
                return r;
        r = copy_devices(s);
        if (r < 0)
                return r;
        r = copy_machine(s->old, s->inv);
        return r < 0 ? r : scan_complete(s);
}

int scan_update(const Sysfs *fs, const Inventory *old, const PciAddress *devices, size_t n, bool locked,
                const PciAddress *busy, size_t n_busy, Inventory **ret) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = NULL;
        _cleanup_(cleanup_pciconf_free) PciConf *conf = NULL;
        _cleanup_close_ int fd = -1;
        _cleanup_(scan_done) Scan s = { .directory_fd = -1 };
        int r;

        /* There are notes about the machine, which may be outdated. Only a full scan can tell. */
        if (old->n_notes > 0)
                return scan_inventory_except(fs, old, locked, busy, n_busy, ret);
        fd = sysfs_open(fs, SCAN_DEVICES, O_RDONLY | O_DIRECTORY);
        inv = fd < 0 ? NULL : inventory_new();
        if (!inv)
                return fd < 0 ? fd : -ENOMEM;
        s = (Scan) { .fs = fs,
                     .inv = inv,
                     .devices_fd = fd,
                     .directory_fd = -1,
                     .busy = busy,
                     .n_busy = n_busy,
                     .old = old,
                     .update = true,
                     .locked = locked };
        r = scan_start_libpci(&s, &conf);
        if (r < 0)
                return r;
        r = update(&s, devices, n);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(inv);
        return 0;
}

static int check_same(const Sysfs *fs, const PciDevice *now, size_t n_virtfns, const PciDevice *before) {
        int group = now->iommu_group;

        /* Do not compare vendor, device and class: with the same instance they are the same. */
        if (now->instance != before->instance || n_virtfns != before->n_virtfns)
                return -ESTALE;
        if (group >= 0 && group != before->iommu_group && scan_group_is_noiommu(fs, group))
                group = -1;
        /* Under Xen no link shows the IOMMU group, which is derived and changes only with devices and ACS. */
        return group == before->iommu_group || xen_is_dom0(fs) ? 0 : -ESTALE;
}

static int take_driver(PciDevice *dev, PciDevice *now) {
        free(dev->driver);
        free(dev->driver_override);
        free(dev->kernel_names);
        free(dev->bond);
        free(dev->reset_methods);
        dev->driver = TAKE_PTR(now->driver);
        dev->kernel_names = TAKE_PTR(now->kernel_names);
        dev->bond = TAKE_PTR(now->bond);
        dev->driver_override = TAKE_PTR(now->driver_override);
        dev->reset_methods = TAKE_PTR(now->reset_methods);
        dev->has_override = now->has_override;
        dev->sets_guids = now->sets_guids;
        dev->vfio = now->vfio;
        memcpy(dev->vfio_cdev, now->vfio_cdev, sizeof(dev->vfio_cdev));
        dev->runtime_pm = now->runtime_pm;
        dev->d3cold = now->d3cold;
        return pci_device_copy_vgpu(dev, now);
}

int scan_refresh(const Sysfs *fs, PciDevice *dev, bool locked) {
        _cleanup_(cleanup_device_dir_free) DeviceDir *d = NULL;
        _cleanup_(pci_device_done) PciDevice now = { .iommu_group = -1 }; /* its fault is dropped: a scan noted it */
        size_t n_virtfns;
        int r;

        r = device_dir_open(fs, PCI_ADDRESS_STR(dev->address), &d);
        if (r == -ENODEV)
                return -ENOENT;
        if (r < 0)
                return r;
        device_dir_set_known(d, dev);
        if (locked)
                device_dir_set_locked(d);
        now.instance = device_dir_instance(d);
        (void) device_dir_virtfns(d, &n_virtfns);
        r = device_facts_read_group(d, &now);
        if (r < 0)
                return r;
        r = check_same(fs, &now, n_virtfns, dev);
        if (r < 0)
                return r;
        r = device_facts_read_driver(d, &now);
        if (r < 0)
                return r;
        if (locked &&
            (string_copy(&now.driver_override, dev->driver_override) < 0 || pci_device_copy_vgpu(&now, dev) < 0))
                return -ENOMEM;
        if (pci_device_has_slots(dev) != (now.mdev_types && dev->type == PCI_TYPE_DEVICE))
                return -ESTALE;
        r = take_driver(dev, &now);
        if (r < 0)
                return r;
        r = subdevices_append_names(fs, dev, 1);
        return MIN(r, 0);
}
