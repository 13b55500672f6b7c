/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Writes PCI controllers, hostdevs, shared memory, the memory balloon, the guest's IOMMUs, and arguments of QEMU. */

#include <stdio.h>

#include "domxml-internal.h"
#include "util/strings.h"

#define PLAIN_DRIVER "vfio-pci"

#define CLASS_VGA 0x0300U
#define UNIT_GIB  (1ULL << 30)
#define UNIT_MIB  (1ULL << 20)

#define FIRMWARE_HINT "opt/ovmf/X-PciMmio64Mb"
#define VIRT_WINDOW   "highmem-mmio-size"

static void write_address(Domain *d, xmlNode *parent, const char *type, PciAddress a, bool multifunction) {
        xmlNode *address = node_add(d, parent, "address");

        if (type)
                node_set(d, address, "type", "%s", type);
        node_set(d, address, "domain", "0x%04x", a.domain);
        node_set(d, address, "bus", "0x%02x", a.bus);
        node_set(d, address, "slot", "0x%02x", a.slot);
        node_set(d, address, "function", "0x%x", a.function);
        if (multifunction)
                node_set(d, address, "multifunction", "on");
}

static xmlNode *write_controller(Domain *d, unsigned index, const char *model) {
        xmlNode *controller = node_add(d, d->devices, "controller");

        node_set(d, controller, "type", "pci");
        node_set(d, controller, "index", "%u", index);
        node_set(d, controller, "model", "%s", model);
        return controller;
}

static void write_guest_controller(Domain *d, const GuestController *c) {
        static const char *const models[] = {
                [GUEST_EXPANDER_BUS] = "pcie-expander-bus",
                [GUEST_ROOT_PORT] = "pcie-root-port",
                [GUEST_UPSTREAM_PORT] = "pcie-switch-upstream-port",
                [GUEST_DOWNSTREAM_PORT] = "pcie-switch-downstream-port",
        };
        xmlNode *controller = write_controller(d, c->index, models[c->type]);

        if (c->type == GUEST_EXPANDER_BUS) {
                xmlNode *target = node_add(d, controller, "target");

                node_set(d, target, "busNr", "%u", c->bus_nr);
                node_set_text(d, node_add(d, target, "node"), "%d", c->cell);
        } else if (c->bus > 0)
                write_address(d, controller, "pci",
                              (PciAddress) { .bus = (uint8_t) c->bus, .slot = c->slot, .function = c->function },
                              c->multifunction);
}

static xmlNode *find_root_controller(const xmlNode *devices) {
        for (xmlNode *n = devices->children; n; n = n->next)
                if (node_is(n, "controller") && node_has(n, "type", "pci") && node_has(n, "model", "pcie-root"))
                        return n;
        return NULL;
}

/*
 * The 64-bit window of machine 'virt' is 512 GiB. QEMU 10.0 can enlarge the window. libvirt 12.8 passes <pcihole64> to
 * QEMU for this machine, 11.3 refuses it.
 */
static bool needs_virt_window(const Domain *d) {
        return d->aarch64 && d->pci->hole64 > 0;
}

static bool can_size_window(const Domain *d) {
        return !d->aarch64 || libvirt_sizes_virt(&d->inv->libvirt);
}

/* Adds a missing pcie-root, and writes the size of the 64-bit window if libvirt can set it. A larger size in the
 * template stays. */
static void write_root(Domain *d) {
        xmlNode *root = find_root_controller(d->devices), *hole;

        if (!root)
                root = write_controller(d, 0, "pcie-root");
        if (d->pci->hole64 == 0 || !root || !can_size_window(d))
                return;
        hole = node_find(root, "pcihole64");
        if (hole && node_get_size(hole) >= d->pci->hole64)
                return;
        if (hole)
                node_remove(hole);
        hole = node_add(d, root, "pcihole64");
        node_set(d, hole, "unit", "GiB");
        node_set_text(d, hole, "%llu", (unsigned long long) (d->pci->hole64 / UNIT_GIB));
}

/* Returns true when the guest should not see a ROM: VFs have none, and an accelerator that is no VGA device does not
 * need its ROM, which firmware would run. */
static bool rom_is_useless(const Domain *d, const AllocationDevice *dev) {
        const PciDevice *facts = inventory_find(d->inv, dev->address);

        return dev->is_vf || (facts && pci_device_is_accelerator(facts) && facts->class >> 8 != CLASS_VGA);
}

/*
 * Writes only attributes that libvirt supports. Writes the driver's model only if it is not vfio-pci, and never for a
 * vGPU, whose VF keeps its driver.
 */
static void write_driver(Domain *d, xmlNode *hostdev, const AllocationDevice *dev) {
        xmlNode *driver = node_add(d, hostdev, "driver");
        const char *name = allocation_driver(d->a, dev);

        node_set(d, driver, "name", "vfio");
        if (d->inv->libvirt.driver_model && name && !streq(name, PLAIN_DRIVER) && dev->vgpu_type == 0)
                node_set(d, driver, "model", "%s", name);
        if (iommufd_is_used(d->iommufd))
                node_set(d, driver, "iommufd", "yes");
        else if (node_find(d->root, "iommufd"))
                node_set(d, driver, "iommufd", "no");
}

static void write_function(Domain *d, xmlNode *hostdev, const AllocationDevice *dev) {
        node_set(d, hostdev, "type", "pci");
        node_set(d, hostdev, "managed", "no"); /* the daemon binds devices */
        if (d->xen)
                node_set(d, node_add(d, hostdev, "driver"), "name", "xen");
        else
                write_driver(d, hostdev, dev);
        write_address(d, node_add(d, hostdev, "source"), NULL, dev->address, false);
        if (!d->xen && rom_is_useless(d, dev))
                node_set(d, node_add(d, hostdev, "rom"), "bar", "off");
}

xmlNode *domain_write_hostdev(Domain *d, const AllocationDevice *dev) {
        xmlNode *hostdev = node_add(d, d->devices, "hostdev");

        node_set(d, hostdev, "mode", "subsystem");
        if (*dev->mdev) {
                node_set(d, hostdev, "type", "mdev");
                node_set(d, hostdev, "model", "vfio-pci");
                node_set(d, node_add(d, node_add(d, hostdev, "source"), "address"), "uuid", "%s", dev->mdev);
        } else
                write_function(d, hostdev, dev);
        if (dev->slot)
                node_set(d, node_add(d, hostdev, "alias"), "name", "ua-%s", dev->slot);
        return hostdev;
}

void domain_write_address(Domain *d, xmlNode *hostdev, PciAddress a) {
        write_address(d, hostdev, "pci", a, false);
}

/* Links the device to its memory cells: QEMU makes the device their generic initiator. */
static void write_nodeset(Domain *d, xmlNode *hostdev, const AllocationDevice *dev) {
        int first = memory_cells_first(d->a, d->memory_cells, dev);

        if (first >= 0)
                node_set(d, node_add(d, hostdev, "acpi"), "nodeset", "%d-%d", first, first + (int) d->memory_cells - 1);
}

void domain_write_place(Domain *d, xmlNode *hostdev, const GuestFunction *f) {
        write_address(d, hostdev, "pci", f->guest, f->multifunction);
}

/* Writes the Intel IOMMU. With host devices QEMU requires caching mode. QEMU's default of 39 address bits is too small
 * for large guests. */
static void write_iommu(Domain *d) {
        xmlNode *iommu = node_need(d, d->devices, "iommu"), *driver = node_need(d, iommu, "driver");
        xmlNode *features = node_find(d->root, "features");

        node_set(d, iommu, "model", "intel");
        node_set(d, driver, "intremap", "on");
        node_set(d, driver, "caching_mode", "on");
        node_set(d, driver, "eim", "on");
        node_set(d, driver, "aw_bits", "48");
        if (!features)
                features = domain_add(d, "features");
        node_set(d, node_need(d, features, "ioapic"), "driver", "qemu"); /* interrupt remapping needs it */
}

/* Replaces the template's SMMU by a copy for each expander. An expander has the devices of one host bridge, and an SMMU
 * of the host serves one host bridge. */
static void write_smmus(Domain *d) {
        for (size_t i = 0; i < d->pci->n_controllers; i++) {
                const GuestController *c = &d->pci->controllers[i];
                xmlNode *smmu = c->type == GUEST_EXPANDER_BUS ? xmlDocCopyNode(d->smmu, d->doc, 1) : NULL;

                if (c->type != GUEST_EXPANDER_BUS)
                        continue;
                if (!smmu || !xmlAddChild(d->devices, smmu)) {
                        d->failed = true;
                        xmlFreeNode(smmu);
                        return;
                }
                node_set(d, node_need(d, smmu, "driver"), "pciBus", "%u", c->index);
        }
        node_remove(d->smmu);
        d->smmu = NULL;
}

static bool is_uefi(const Domain *d) {
        const xmlNode *os = node_find(d->root, "os"), *loader = node_find(os, "loader");

        return d->confidential != CONFIDENTIAL_NONE || (os && node_has(os, "firmware", "efi")) ||
               (loader && node_has(loader, "type", "pflash"));
}

static bool has_argument(const xmlNode *commandline, const char *part) {
        for (const xmlNode *arg = commandline ? commandline->children : NULL; arg; arg = arg->next) {
                _cleanup_free_ char *value = arg->type == XML_ELEMENT_NODE ? node_get(arg, "value") : NULL;

                if (value && strstr(value, part))
                        return true;
        }
        return false;
}

/*
 * Adds two arguments of QEMU, unless the template has an argument that contains `part`. libvirt has no element for the
 * firmware's hint, and rejects its name in <sysinfo>.
 */
static void write_arguments(Domain *d, const char *part, const char *first, const char *second) {
        xmlNode *commandline = NULL;
        xmlNs *ns;

        for (xmlNode *n = d->root->children; n && !commandline; n = n->next)
                if (n->type == XML_ELEMENT_NODE && n->ns && streq((const char *) n->ns->href, DOMXML_QEMU_NAMESPACE) &&
                    streq((const char *) n->name, "commandline"))
                        commandline = n;
        if (has_argument(commandline, part))
                return;
        if (!commandline) {
                commandline = node_add(d, d->root, "commandline");
                ns = commandline
                             ? xmlNewNs(commandline, (const xmlChar *) DOMXML_QEMU_NAMESPACE, (const xmlChar *) "qemu")
                             : NULL;
                if (!ns) {
                        d->failed = true;
                        return;
                }
                xmlSetNs(commandline, ns);
        }
        /* Both elements inherit the namespace of their parent. */
        node_set(d, node_add(d, commandline, "arg"), "value", "%s", first);
        node_set(d, node_add(d, commandline, "arg"), "value", "%s", second);
}

static void write_firmware_hint(Domain *d) {
        char text[64];

        (void) snprintf(text, sizeof(text), "name=%s,string=%llu", FIRMWARE_HINT,
                        (unsigned long long) (d->pci->hole64 / UNIT_MIB));
        write_arguments(d, FIRMWARE_HINT, "-fw_cfg", text);
}

/* Sets the window by an argument: QEMU merges the properties of several -machine arguments. */
static void write_virt_window(Domain *d) {
        char text[64];

        (void) snprintf(text, sizeof(text), VIRT_WINDOW "=%lluG", (unsigned long long) (d->pci->hole64 / UNIT_GIB));
        write_arguments(d, VIRT_WINDOW, "-machine", text);
}

/* A server tells its guests the size, so libvirt refuses a <size> with a <server>. */
static void write_shmem(Domain *d, const Region *r) {
        const char *pattern = d->config->shared_memory_server;
        _cleanup_free_ char *server = pattern ? region_server(r, pattern) : NULL;
        xmlNode *shmem = node_add(d, d->devices, "shmem");

        node_set(d, shmem, "name", "%s", region_file(r, (char[REGION_FILE_MAX]) { 0 }));
        node_set(d, shmem, "role", "peer");
        node_set(d, node_add(d, shmem, "model"), "type", pattern ? "ivshmem-doorbell" : "ivshmem-plain");
        if (!pattern) {
                node_set_size(d, node_add(d, shmem, "size"), NULL, r->size);
                return;
        }
        if (server)
                node_set(d, node_add(d, shmem, "server"), "path", "%s", server);
        else
                d->failed = true;
        node_set(d, node_add(d, shmem, "msi"), "ioeventfd", "on");
}

void domain_write_devices(Domain *d) {
        write_root(d);
        for (size_t i = 0; i < d->pci->n_controllers; i++)
                write_guest_controller(d, &d->pci->controllers[i]);
        for (size_t i = 0; i < d->pci->n_functions; i++) {
                const GuestFunction *f = &d->pci->functions[i];

                xmlNode *hostdev = domain_write_hostdev(d, &d->a->devices[f->device]);

                write_nodeset(d, hostdev, &d->a->devices[f->device]);
                domain_write_place(d, hostdev, f);
        }
        for (size_t i = 0; i < d->a->n_regions; i++)
                write_shmem(d, &d->a->regions[i]);
        node_remove_all(d->devices, "memballoon");
        node_set(d, node_add(d, d->devices, "memballoon"), "model", "none"); /* VFIO pins all memory, so no balloon */
        if (domain_needs_iommu(d))
                write_iommu(d);
        if (d->smmu)
                write_smmus(d);
        if (d->pci->hint && is_uefi(d) && !d->aarch64)
                write_firmware_hint(d);
        if (needs_virt_window(d) && !can_size_window(d) && qemu_sizes_virt(&d->inv->libvirt))
                write_virt_window(d);
}
