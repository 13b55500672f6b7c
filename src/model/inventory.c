/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The inventory as a container, and properties of single devices and NUMA nodes. */

#include <assert.h>
#include <errno.h>
#include <limits.h>

#include "model/inventory.h"
#include "util/strings.h"
#include "util/stringtable.h"

/* No fault is added to a device when the text of its faults already has this number of bytes. */
#define FAULT_MAX 1024U

static const char *const pci_type_table[_PCI_TYPE_MAX] = {
        [PCI_TYPE_DEVICE] = "device",
        [PCI_TYPE_PF] = "pf",
        [PCI_TYPE_VF] = "vf",
};
DEFINE_STRING_TABLE_TO_STRING(pci_type, PciType, _PCI_TYPE_MAX)

static const char *const pci_acs_table[_PCI_ACS_MAX] = {
        [PCI_ACS_UNKNOWN] = "unknown",
        [PCI_ACS_CLEAN] = "clean",
        [PCI_ACS_ISOLATED] = "isolated",
        [PCI_ACS_OPEN] = "open",
};
DEFINE_STRING_TABLE_TO_STRING(pci_acs, PciAcs, _PCI_ACS_MAX)

static const char *const pci_acs_bit_table[_PCI_ACS_BIT_MAX] = {
        [PCI_ACS_BIT_SV] = "SV", [PCI_ACS_BIT_TB] = "TB", [PCI_ACS_BIT_RR] = "RR", [PCI_ACS_BIT_CR] = "CR",
        [PCI_ACS_BIT_UF] = "UF", [PCI_ACS_BIT_EC] = "EC", [PCI_ACS_BIT_DT] = "DT",
};
DEFINE_STRING_TABLE_TO_STRING(pci_acs_bit, PciAcsBit, _PCI_ACS_BIT_MAX)

static const char *const pci_ats_table[_PCI_ATS_MAX] = {
        [PCI_ATS_UNKNOWN] = "unknown",
        [PCI_ATS_NONE] = "none",
        [PCI_ATS_OFF] = "off",
        [PCI_ATS_ON] = "on",
};
DEFINE_STRING_TABLE_TO_STRING(pci_ats, PciAts, _PCI_ATS_MAX)

void pci_device_done(PciDevice *dev) {
        free(dev->name);
        free(dev->vf_name);
        free(dev->path);
        free(dev->driver);
        free(dev->driver_override);
        free(dev->vgpu_types);
        free(dev->mdev_types);
        free(dev->mdevs);
        free(dev->linked);
        free(dev->vfs);
        free(dev->reset_methods);
        free(dev->power_state);
        free(dev->kernel_names);
        free(dev->bond);
        free(dev->critical);
        free(dev->console);
        free(dev->fault);
}

const char *inventory_architecture(const Inventory *inv) {
        return *inv->architecture ? inv->architecture : ARCHITECTURE_X86_64;
}

const char *inventory_iommu_remedy(const Inventory *inv) {
        if (inv->iommu)
                return "See the kernel log for DMAR or AMD-Vi; try a firmware update or another slot.";
        if (inv->iommu_boot == IOMMU_BOOT_OFF)
                return "Remove what turns the IOMMU off from the kernel command line and reboot.";
        if (streq(inventory_architecture(inv), ARCHITECTURE_AARCH64))
                return "Turn on the SMMU in the firmware and reboot.";
        if (inv->iommu_boot == IOMMU_BOOT_ON)
                return "Turn on VT-d in the firmware and reboot.";
        return "Turn on VT-d (Intel) or AMD-Vi (AMD) in the firmware, add intel_iommu=on to the kernel command line on "
               "an Intel machine, and reboot.";
}

bool inventory_has_domains(const Inventory *inv) {
        const char *architecture = inventory_architecture(inv);

        return streq(architecture, ARCHITECTURE_X86_64) || streq(architecture, ARCHITECTURE_AARCH64);
}

Inventory *inventory_new(void) {
        return calloc(1, sizeof(Inventory));
}

Inventory *inventory_free(Inventory *inv) {
        if (!inv)
                return NULL;
        for (size_t i = 0; i < inv->n_devices; i++)
                pci_device_done(inv->devices + i);
        for (size_t i = 0; i < inv->n_groups; i++)
                free(inv->groups[i].members);
        for (size_t i = 0; i < inv->n_notes; i++)
                free(inv->notes[i]);
        for (size_t i = 0; i < inv->n_variants; i++) {
                free(inv->variants[i].pattern);
                free(inv->variants[i].driver);
        }
        free(inv->variants);
        for (size_t i = 0; i < inv->n_drivers; i++)
                free(inv->drivers[i]);
        free(inv->drivers);
        free(inv->critical_error);
        free(inv->devices);
        free(inv->groups);
        free(inv->nodes);
        free(inv->cpus);
        free(inv->notes);
        free(inv);
        return NULL;
}

PciDevice *inventory_add_device(Inventory *inv, PciAddress address) {
        PciDevice *dev;

        if (inv->n_devices >= INVENTORY_DEVICES_MAX || ARRAY_RESERVE(inv->devices, inv->n_devices) < 0)
                return NULL;
        dev = inv->devices + inv->n_devices++;
        *dev = (PciDevice) { .address = address, .parent = -1, .numa_node = -1, .iommu_group = -1, .vf_index = -1 };
        return dev;
}

static int copy_strings(PciDevice *to, const PciDevice *from) {
        const struct {
                char **to;
                const char *from;
        } strings[] = {
                { &to->name, from->name },
                { &to->vf_name, from->vf_name },
                { &to->path, from->path },
                { &to->driver, from->driver },
                { &to->driver_override, from->driver_override },
                { &to->vgpu_types, from->vgpu_types },
                { &to->mdev_types, from->mdev_types },
                { &to->mdevs, from->mdevs },
                { &to->reset_methods, from->reset_methods },
                { &to->power_state, from->power_state },
                { &to->kernel_names, from->kernel_names },
                { &to->bond, from->bond },
                { &to->fault, from->fault },
        };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(strings); i++)
                r = string_copy(strings[i].to, strings[i].from);
        return r;
}

int pci_device_copy_vgpu(PciDevice *to, const PciDevice *from) {
        to->vgpu_type = from->vgpu_type;
        to->mdev_parent = from->mdev_parent;
        memcpy(to->mdev, from->mdev, sizeof(to->mdev));
        if (string_copy(&to->mdev_types, from->mdev_types) < 0 || string_copy(&to->mdevs, from->mdevs) < 0)
                return -ENOMEM;
        return string_copy(&to->vgpu_types, from->vgpu_types);
}

bool pci_device_same_vgpu(const PciDevice *a, const PciDevice *b) {
        return a->vgpu_type == b->vgpu_type && a->mdev_parent == b->mdev_parent && streq(a->mdev, b->mdev) &&
               streq_ptr(a->vgpu_types, b->vgpu_types) && streq_ptr(a->mdev_types, b->mdev_types) &&
               streq_ptr(a->mdevs, b->mdevs);
}

int inventory_copy_device(Inventory *inv, const PciDevice *dev) {
        PciDevice *copy = inventory_add_device(inv, dev->address);

        if (!copy)
                return -ENOMEM;
        *copy = *dev;
        copy->numa_node = dev->own_node;
        copy->name = copy->vf_name = copy->path = copy->driver = copy->driver_override = copy->vgpu_types =
                copy->mdev_types = copy->mdevs = copy->reset_methods = copy->power_state = copy->kernel_names =
                        copy->bond = copy->critical = copy->console = copy->fault = NULL;
        copy->linked = copy->vfs = NULL;
        copy->n_linked = copy->n_vfs = 0;
        if (dev->n_linked > 0) {
                copy->linked = calloc(dev->n_linked, sizeof(*copy->linked));
                if (!copy->linked)
                        return -ENOMEM;
                memcpy(copy->linked, dev->linked, dev->n_linked * sizeof(*copy->linked));
                copy->n_linked = dev->n_linked;
        }
        return copy_strings(copy, dev);
}

int pci_device_add_fault(PciDevice *dev, const char *format, ...) {
        _cleanup_free_ char *text = NULL;

        if (dev->fault && strlen(dev->fault) >= FAULT_MAX)
                return 0;
        text = FORMAT_ARGUMENTS(format);
        if (!text)
                return -ENOMEM;
        if (!dev->fault) {
                dev->fault = TAKE_PTR(text);
                return 0;
        }
        return string_replace(&dev->fault, "%s; %s", dev->fault, text);
}

int inventory_add_note(Inventory *inv, const char *format, ...) {
        _cleanup_free_ char *text = FORMAT_ARGUMENTS(format);

        if (!text || ARRAY_RESERVE(inv->notes, inv->n_notes) < 0)
                return -ENOMEM;
        inv->notes[inv->n_notes++] = TAKE_PTR(text);
        return 0;
}

static int device_search(const void *key, const void *element) {
        return pci_address_compare(*(const PciAddress *) key, ((const PciDevice *) element)->address);
}

static int group_search(const void *key, const void *element) {
        int a = *(const int *) key, b = ((const IommuGroup *) element)->number;

        return (a > b) - (a < b);
}

static int node_search(const void *key, const void *element) {
        int a = *(const int *) key, b = ((const NumaNode *) element)->id;

        return (a > b) - (a < b);
}

static int cpu_search(const void *key, const void *element) {
        unsigned a = *(const unsigned *) key, b = ((const Cpu *) element)->id;

        return (a > b) - (a < b);
}

/* bsearch() that accepts a NULL array. */
static const void *search(const void *key, const void *array, size_t n, size_t size,
                          int (*compare)(const void *, const void *)) {
        return n > 0 ? bsearch(key, array, n, size, compare) : NULL;
}

const PciDevice *inventory_find(const Inventory *inv, PciAddress address) {
        return search(&address, inv->devices, inv->n_devices, sizeof(PciDevice), device_search);
}

const IommuGroup *inventory_find_group(const Inventory *inv, int number) {
        return search(&number, inv->groups, inv->n_groups, sizeof(IommuGroup), group_search);
}

const PciDevice *inventory_find_vgpu_parent(const Inventory *inv, const PciDevice *dev) {
        return dev && dev->vgpu_types ? inventory_find(inv, dev->physfn) : dev;
}

const NumaNode *inventory_find_node(const Inventory *inv, int id) {
        return search(&id, inv->nodes, inv->n_nodes, sizeof(NumaNode), node_search);
}

const Cpu *inventory_find_cpu(const Inventory *inv, unsigned id) {
        return search(&id, inv->cpus, inv->n_cpus, sizeof(Cpu), cpu_search);
}

int inventory_node_index(const Inventory *inv, int id) {
        const NumaNode *node = inventory_find_node(inv, id);

        return node ? (int) (node - inv->nodes) : -1;
}

static bool has_cpus(const NumaNode *node) {
        return !cpuset_is_empty(&node->cpus);
}

/* Returns the id of the nearest node in `set`, which has indices into nodes[]; of equally near ones, the first. -1: no
 * distance is known. */
static int find_nearest(const Inventory *inv, const NumaNode *node, const CpuSet *set) {
        const NumaNode *nearest = NULL;
        unsigned best = UINT_MAX;

        for (int i = cpuset_next(set, 0); i >= 0; i = cpuset_next(set, (unsigned) i + 1)) {
                unsigned distance = node->distance[i];

                if (&inv->nodes[i] == node)
                        return node->id;
                if (distance > 0 && distance < best) {
                        best = distance;
                        nearest = &inv->nodes[i];
                }
        }
        return nearest ? nearest->id : -1;
}

int inventory_cpu_node(const Inventory *inv, int id) {
        const NumaNode *node = inventory_find_node(inv, id);
        CpuSet set = { 0 };

        if (node && has_cpus(node))
                return id;
        for (unsigned i = 0; i < inv->n_nodes; i++)
                if (has_cpus(&inv->nodes[i]) || inv->n_nodes == 1)
                        cpuset_add(&set, i);
        if (cpuset_count(&set) == 1)
                return inv->nodes[cpuset_next(&set, 0)].id;
        if (!node || cpuset_is_empty(&set))
                return node ? id : -1;
        return find_nearest(inv, node, &set);
}

int inventory_device_cpu_node(const Inventory *inv, const PciDevice *dev) {
        return dev->numa_node < 0 ? -1 : inventory_cpu_node(inv, dev->numa_node);
}

bool pci_device_has_unlisted_node(const Inventory *inv, const PciDevice *dev) {
        return dev->own_node >= 0 && inv->n_nodes > 0 && !inventory_find_node(inv, dev->own_node);
}

int inventory_memory_node(const Inventory *inv, int id, const CpuSet *from) {
        const NumaNode *node = inventory_find_node(inv, id);
        CpuSet set = { 0 };

        if (!node || (!from && node->memory > 0))
                return node ? id : -1;
        for (unsigned i = 0; i < inv->n_nodes; i++) {
                const NumaNode *other = &inv->nodes[i];

                if (from ? cpuset_has(from, (unsigned) other->id) : has_cpus(other) && other->memory > 0)
                        cpuset_add(&set, i);
        }
        if (cpuset_count(&set) == 1)
                return inv->nodes[cpuset_next(&set, 0)].id;
        return find_nearest(inv, node, &set);
}

size_t inventory_device_index(const Inventory *inv, const PciDevice *dev) {
        assert(dev >= inv->devices && dev < inv->devices + inv->n_devices);
        return (size_t) (dev - inv->devices);
}

uint64_t numa_node_base_memory(const NumaNode *node) {
        uint64_t left = node->memory;

        for (size_t i = 0; i < node->n_pages; i++) {
                uint64_t size;

                if (__builtin_mul_overflow(node->pages[i].size, node->pages[i].total, &size) || size > left)
                        return 0;
                left -= size;
        }
        return left;
}

const PagePool *numa_node_pages(const NumaNode *node, uint64_t page_size) {
        for (size_t i = 0; i < node->n_pages; i++)
                if (node->pages[i].size == page_size)
                        return node->pages + i;
        return NULL;
}

bool pci_device_driver_is_harmless(const PciDevice *dev) {
        /* Older kernels have no vfio-dev/, so vfio-pci is known by its name, too. */
        static const char *const harmless[] = { "vfio-pci", "pci-stub", "pcieport", PCIBACK_DRIVER };

        if (!dev->driver || dev->vfio)
                return true;
        return string_table_find(harmless, ELEMENTSOF(harmless), dev->driver) >= 0;
}

bool pci_device_is_display(const PciDevice *dev) {
        return dev->boot_vga || dev->console;
}

#define CLASS_DISPLAY     0x03U
#define CLASS_ACCELERATOR 0x12U
#define VENDOR_AMD_GPU    0x1002U

/* Returns true for a display controller of a BMC or hypervisor: it only shows a console. */
static bool is_console_only(const PciDevice *dev) {
        static const struct {
                uint16_t vendor, device; /* device 0: any device of the vendor */
        } displays[] = {
                { 0x1002, 0x4752 }, /* AMD Rage XL */
                { 0x1002, 0x515e }, /* AMD ES1000 */
                { 0x1013, 0 },      /* Cirrus Logic */
                { 0x102b, 0 },      /* Matrox */
                { 0x1234, 0 },      /* QEMU */
                { 0x126f, 0 },      /* Silicon Motion */
                { 0x1414, 0 },      /* Hyper-V */
                { 0x15ad, 0 },      /* VMware */
                { 0x18ca, 0 },      /* XGI */
                { 0x19e5, 0 },      /* HiSilicon; its accelerators have class 12 */
                { 0x1a03, 0 },      /* ASPEED */
                { 0x1af4, 0 },      /* virtio */
                { 0x1b36, 0 },      /* QXL */
        };

        for (size_t i = 0; i < ELEMENTSOF(displays); i++)
                if (displays[i].vendor == dev->vendor && (!displays[i].device || displays[i].device == dev->device))
                        return true;
        return false;
}

bool pci_device_is_gpu(const PciDevice *dev) {
        return (dev->class >> 16 == CLASS_ACCELERATOR && dev->vendor == VENDOR_AMD_GPU) ||
               (dev->class >> 16 == CLASS_DISPLAY && !is_console_only(dev));
}

/* Returns true for an NVIDIA GPU on `node` of an aarch64 machine. The firmware of a Grace machine gives each GPU the
 * NUMA node of the GPU's memory, so a `node` without CPUs is that memory. Works without NVIDIA's driver. */
static bool may_own_memory(const Inventory *inv, const PciDevice *dev, int node) {
        return pci_device_is_gpu(dev) && dev->vendor == PCI_VENDOR_NVIDIA && dev->numa_node == node &&
               streq(inventory_architecture(inv), ARCHITECTURE_AARCH64);
}

bool inventory_gpu_has_memory_node(const Inventory *inv, const PciDevice *dev) {
        const NumaNode *node = inventory_find_node(inv, dev->numa_node);

        return node && !has_cpus(node) && may_own_memory(inv, dev, node->id);
}

const PciDevice *inventory_memory_owner(const Inventory *inv, const NumaNode *node) {
        for (size_t i = 0; !has_cpus(node) && i < inv->n_devices; i++) {
                const PciDevice *dev = &inv->devices[i];

                if (dev->has_memory_node ? dev->memory_node == node->id : may_own_memory(inv, dev, node->id))
                        return dev;
        }
        return NULL;
}

bool pci_device_is_accelerator(const PciDevice *dev) {
        return dev->class >> 16 == CLASS_ACCELERATOR || pci_device_is_gpu(dev);
}

bool pci_device_is_nic(const PciDevice *dev) {
        return dev->class >> 16 == 0x02;
}

/* Returns true for class 0801 (DMA controller), and for class 0880 (other system peripheral) with BARs. The VT-d
 * function and the memory map of a CPU have no BARs. */
static bool is_dma_engine(const PciDevice *dev) {
        bool has_bar = false;

        for (size_t i = 0; i < PCI_BARS_MAX; i++)
                has_bar = has_bar || dev->bar_size[i] > 0;
        return dev->class >> 8 == 0x0801 || (dev->class >> 8 == 0x0880 && has_bar);
}

bool pci_device_is_platform(const PciDevice *dev) {
        return (dev->class >> 16 == 0x06 && dev->class >> 8 != 0x0680) || dev->class >> 8 == 0x0c05 ||
               (dev->class >> 16 == 0x08 && !is_dma_engine(dev));
}

#define VENDOR_MELLANOX 0x15b3

bool pci_device_is_connectx(const PciDevice *dev) {
        return dev->vendor == VENDOR_MELLANOX && pci_device_is_nic(dev) && dev->type != PCI_TYPE_VF;
}

/* Returns true for a device id in the ranges of mlx4_core: ConnectX, ConnectX-2, ConnectX-3 and ConnectX-3 Pro. */
static bool has_mlx4_id(const PciDevice *dev) {
        return dev->vendor == VENDOR_MELLANOX &&
               ((dev->device >= 0x6340 && dev->device <= 0x676e) || (dev->device >= 0x1002 && dev->device <= 0x1010));
}

bool pci_device_is_mlx4_pf(const PciDevice *dev) {
        return dev->type == PCI_TYPE_PF && (streq_ptr(dev->driver, "mlx4_core") || has_mlx4_id(dev));
}

bool pci_device_needs_guids(const PciDevice *pf) {
        return (pf->class >> 8 == 0x0207 || pf->class >> 8 == 0x0c06) && !pci_device_is_mlx4_pf(pf);
}

bool pci_device_is_companion(const PciDevice *assigned, const PciDevice *other) {
        return assigned->type != PCI_TYPE_VF && other->type != PCI_TYPE_VF && !other->is_bridge &&
               assigned->iommu_group == other->iommu_group &&
               pci_address_same_slot(assigned->address, other->address) &&
               !pci_address_equal(assigned->address, other->address);
}
