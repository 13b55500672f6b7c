/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "guest/coherent.h"

#include <errno.h>

#include "guest/guestpci.h"
#include "util/strings.h"

#define LIBVIRT_SIZES_VIRT 12008000U
#define QEMU_SIZES_VIRT    10000000U

static bool is_coherent(const Allocation *a, const AllocationDevice *dev) {
        return guest_pci_shows(dev) && driver_is_coherent(allocation_driver(a, dev));
}

/* Returns the number of coherent GPUs before the device `before`; if that is NULL, of the whole allocation. */
static unsigned count_coherent(const Allocation *a, const AllocationDevice *before) {
        unsigned n = 0;

        for (size_t i = 0; i < a->n_devices && &a->devices[i] != before; i++)
                n += is_coherent(a, &a->devices[i]);
        return n;
}

unsigned memory_cells_each(const Inventory *inv, const Config *config, const Allocation *a) {
        unsigned n = count_coherent(a, NULL);

        if (n == 0 || !inv->libvirt.acpi_nodeset || config->guest_nodes <= a->n_cells)
                return 0;
        return MIN(MEMORY_CELLS_MAX, (config->guest_nodes - (unsigned) a->n_cells) / n);
}

size_t memory_cells_count(const Allocation *a, unsigned each) {
        return (size_t) each * count_coherent(a, NULL);
}

int memory_cells_first(const Allocation *a, unsigned each, const AllocationDevice *dev) {
        return each > 0 && is_coherent(a, dev) ? (int) (a->n_cells + (size_t) each * count_coherent(a, dev)) : -1;
}

int guest_cell_node(const Inventory *inv, const Allocation *a, unsigned each, size_t cell) {
        if (cell < a->n_cells)
                return a->cells[cell].node;
        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(inv, a->devices[i].address);
                int first = memory_cells_first(a, each, &a->devices[i]);

                if (first >= 0 && cell >= (size_t) first && cell < (size_t) first + each)
                        return dev ? dev->numa_node : a->devices[i].numa_node;
        }
        return -1;
}

bool libvirt_sizes_virt(const LibvirtFeatures *f) {
        return f->libvirt >= LIBVIRT_SIZES_VIRT && qemu_sizes_virt(f);
}

bool qemu_sizes_virt(const LibvirtFeatures *f) {
        return f->qemu >= QEMU_SIZES_VIRT;
}

/* Formats the versions: "this node has libvirt 11.3 and QEMU 10.0". */
static char *explain_versions(const LibvirtFeatures *f) {
        if (f->libvirt == 0)
                return strdup("what libvirt and QEMU of this node have is unknown");
        return string_format("this node has libvirt %u.%u and QEMU %u.%u", f->libvirt / 1000000,
                             f->libvirt / 1000 % 1000, f->qemu / 1000000, f->qemu / 1000 % 1000);
}

/* Appends a sentence about GPUs whose VFIO driver does not give the guest their memory. 0 or -ENOMEM. */
static int explain_memory(const Inventory *inv, const Allocation *a, char **text) {
        _cleanup_free_ char *first = NULL;
        const char *remedy = NULL, *other;
        size_t n = 0;

        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(inv, a->devices[i].address);
                _cleanup_free_ char *why = NULL;

                if (!dev || !guest_pci_shows(&a->devices[i]) || a->devices[i].vgpu_type > 0)
                        continue;
                if (inventory_explain_lost_memory(inv, dev, allocation_driver(a, &a->devices[i]), &why, &other) < 0)
                        return -ENOMEM;
                if (why && n++ == 0) {
                        first = TAKE_PTR(why);
                        remedy = other;
                }
        }
        return n == 0 ? 0 : string_append(text, "", "%s%s %s\n", first, n > 1 ? " Others too." : "", remedy);
}

/* Appends a sentence if a device has a VFIO driver of its own and libvirt is older than 10.0. Such a libvirt refuses a
 * device that it did not bind itself ("must be manually detached"), unless the driver is vfio-pci. 0 or -ENOMEM. */
static int explain_driver(const LibvirtFeatures *f, const Allocation *a, char **text) {
        for (size_t i = 0; f->known && !f->driver_model && i < a->n_devices; i++) {
                const AllocationDevice *dev = &a->devices[i];
                const char *driver = allocation_driver(a, dev);

                if (guest_pci_shows(dev) && !streq(driver, "vfio-pci") && dev->vgpu_type == 0 && !*dev->mdev)
                        return string_append(text, "",
                                             "libvirt before 10.0 starts no guest with %s on %s. Use a later one, or "
                                             "VfioDriver=vfio-pci.\n",
                                             PCI_ADDRESS_STR(dev->address), driver);
        }
        return 0;
}

static int explain_cells(const Inventory *inv, const Config *config, const Allocation *a, const char *versions,
                         char **text) {
        unsigned each = memory_cells_each(inv, config, a), n = count_coherent(a, NULL);

        if (!inv->libvirt.acpi_nodeset)
                return string_append(
                        text, "",
                        "The guest has no NUMA nodes for the memory of its GPU%s, so its driver cannot put "
                        "that memory online. They take libvirt 11.8 and QEMU 9.0, and %s.\n",
                        PLURAL(n), versions);
        if (each == MEMORY_CELLS_MAX)
                return 0;
        return string_append(text, "",
                             "Each of the guest's %u GPU%s has %u of %u NUMA nodes for its memory and that of its MIG "
                             "instances, because the guest's kernel has %u nodes (GuestNodes=).\n",
                             n, PLURAL(n), each, MEMORY_CELLS_MAX, config->guest_nodes);
}

static int explain_window(const LibvirtFeatures *f, uint64_t hole64, const char *versions, char **text) {
        if (hole64 == 0 || qemu_sizes_virt(f))
                return 0;
        return string_append(text, "",
                             "The BARs of the guest's devices do not fit its window of %s, so devices stay without "
                             "addresses. A larger one takes QEMU 10.0, and %s.\n",
                             FORMAT_SIZE(GUEST_HOLE64_VIRT), versions);
}

static int explain_document(const Inventory *inv, const Config *config, const Allocation *a, uint64_t hole64, bool smmu,
                            char **text) {
        _cleanup_free_ char *versions = explain_versions(&inv->libvirt);
        bool coherent = count_coherent(a, NULL) > 0;
        int r;

        if (!versions)
                return -ENOMEM;
        r = coherent ? explain_cells(inv, config, a, versions, text) : 0;
        if (r < 0)
                return r;
        r = explain_window(&inv->libvirt, hole64, versions, text);
        if (r < 0 || !coherent || smmu)
                return r;
        return string_append(text, "",
                             "The guest has no SMMU for its GPUs, so they have no ATS there, unless a template asks "
                             "for one: an iommu of model smmuv3 with accel='on', which takes libvirt 12.7.\n");
}

int guest_explain_lacks(const Inventory *inv, const Config *config, const Allocation *a, uint64_t hole64, bool smmu,
                        char **ret) {
        bool aarch64 = streq(inventory_architecture(inv), ARCHITECTURE_AARCH64);
        _cleanup_free_ char *text = NULL;
        int r = config->hypervisor == HYPERVISOR_XEN ? 0 : explain_driver(&inv->libvirt, a, &text);

        *ret = NULL;
        if (r < 0)
                return r;
        r = aarch64 ? explain_memory(inv, a, &text) : 0;
        if (r < 0)
                return r;
        r = aarch64 && a->n_cells > 0 ? explain_document(inv, config, a, hole64, smmu, &text) : 0;
        if (r < 0)
                return r;
        *ret = TAKE_PTR(text);
        return 0;
}
