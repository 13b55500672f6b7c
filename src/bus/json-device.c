/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Devices as JSON. A host can have thousands of devices, and printing text is several times faster than creating a
 * json_object for each value. */

#include <stdio.h>

#include "json-internal.h"
#include "model/json-parse.h"
#include "model/pcilink.h"
#include "model/vgpu.h"
#include "util/strings.h"

static void put_ids(JsonText *t, const PciDevice *dev) {
        json_text_first_member(t, "address", address, dev->address);
        json_text_member(t, "vendor", hex, dev->vendor, 4);
        json_text_member(t, "device", hex, dev->device, 4);
        json_text_member(t, "subsystem_vendor", hex, dev->subsystem_vendor, 4);
        json_text_member(t, "subsystem_device", hex, dev->subsystem_device, 4);
        json_text_member(t, "class", hex, dev->class, 6);
        json_text_member(t, "name", string, dev->name);
        json_text_member(t, "type", string, pci_type_to_string(dev->type));
        json_text_member(t, "path", string, dev->path);
}

static void put_state(JsonText *t, const char *pool, DeviceState state, const Refusal *why, const Allocation *holder) {
        json_text_member(t, "pool", string, pool);
        json_text_member(t, "state", string, device_state_to_string(state));
        json_text_member(t, "verdict", string, verdict_to_string(why->verdict));
        json_text_member(t, "reason", string, why->message);
        json_text_member(t, "remedy", string, why->remedy);
        json_text_member(t, "allocation", string, holder ? holder->name : NULL);
}

static void put_vfs(JsonText *t, const PciDevice *dev) {
        json_text_literal(t, "[");
        for (size_t i = 0; i < dev->n_vfs; i++) {
                if (i > 0)
                        json_text_literal(t, ",");
                json_text_address(t, dev->vfs[i]);
        }
        json_text_literal(t, "]");
}

/* Appends the BARs that the device uses, each with its index. Index 6 is the expansion ROM. */
static void put_bars(JsonText *t, const PciDevice *dev) {
        bool first = true;

        json_text_literal(t, "[");
        for (size_t i = 0; i < PCI_BARS_MAX; i++) {
                if (dev->bar_size[i] == 0)
                        continue;
                if (!first)
                        json_text_literal(t, ",");
                first = false;
                json_text_first_member(t, "index", number, i);
                json_text_member(t, "size", number, dev->bar_size[i]);
                json_text_literal(t, "}");
        }
        json_text_literal(t, "]");
}

/* Appends a number of the link. 0 means unknown and becomes null. */
static void put_link_number(JsonText *t, unsigned n) {
        json_text_known(t, n > 0 ? (int) n : -1);
}

static void put_link(JsonText *t, const PciDevice *dev) {
        if (dev->link_speed == 0 && dev->link_width == 0) {
                json_text_literal(t, "null");
                return;
        }
        json_text_first_key(t, "generation");
        put_link_number(t, pci_link_generation(dev->current_speed));
        json_text_key(t, "width");
        put_link_number(t, dev->current_width);
        json_text_key(t, "max_generation");
        put_link_number(t, pci_link_generation(dev->link_speed));
        json_text_key(t, "max_width");
        put_link_number(t, dev->link_width);
        json_text_literal(t, "}");
}

static void put_vgpu(JsonText *t, const PciDevice *dev) {
        const char *rest = dev->vgpu_types;
        VgpuType type;

        if (!dev->vgpu_types) {
                json_text_literal(t, "null");
                return;
        }
        json_text_first_member(t, "type", known, dev->vgpu_type > 0 ? (int) dev->vgpu_type : -1);
        json_text_key(t, "creatable");
        json_text_literal(t, "[");
        for (bool first = true; vgpu_types_next(&rest, &type); first = false) {
                char name[VGPU_NAME_MAX + 1];

                if (!first)
                        json_text_literal(t, ",");
                (void) snprintf(name, sizeof(name), "%.*s", (int) type.length, type.name);
                json_text_string(t, name);
        }
        json_text_literal(t, "]");
        json_text_member(t, "mediated", boolean, dev->mdev_parent);
        json_text_member(t, "mdev", string, *dev->mdev ? dev->mdev : NULL);
        json_text_literal(t, "}");
}

int device_module(const HostView *view, PciAddress address) {
        const PciDevice *dev = inventory_find(view->inventory, address);
        unsigned module = dev ? config_module(view->config, dev) : 0;

        return module > 0 ? (int) module : -1;
}

int device_partition(const HostView *view, PciAddress address) {
        const Allocation *holder = device_module(view, address) > 0 ? ledger_holder(view->ledger, address) : NULL;

        return holder ? holder->partition : -1;
}

#define VENDOR_AMD 0x1022U

/* Returns true for functions that CPUs have by the dozen and that few guests need: placeholders ("non-essential
 * instrumentation"), performance counters, system peripherals such as DMA engines, and AMD's encryption controllers. */
static bool is_part_of_cpu(const PciDevice *dev) {
        return dev->class >> 16 == 0x13 || dev->class >> 8 == 0x1101 || dev->class >> 16 == 0x08 ||
               (dev->class >> 8 == 0x1080 && dev->vendor == VENDOR_AMD);
}

const char *device_kind(const PciDevice *dev) {
        if (dev->is_bridge)
                return "bridge";
        if (pci_device_is_platform(dev) || is_part_of_cpu(dev))
                return "platform";
        if (pci_device_is_gpu(dev))
                return "gpu";
        if (pci_device_is_accelerator(dev))
                return "accelerator";
        return pci_device_is_nic(dev) ? "nic" : "other";
}

static void put_facts(JsonText *t, const HostView *view, const PciDevice *dev) {
        json_text_member(t, "kind", string, device_kind(dev));
        json_text_member(t, "numa_node", known, dev->numa_node);
        json_text_member(t, "cpu_node", known, inventory_device_cpu_node(view->inventory, dev));
        json_text_member(t, "iommu_group", known, dev->iommu_group);
        json_text_member(t, "vfio_device", string, *dev->vfio_cdev ? dev->vfio_cdev : NULL);
        json_text_member(t, "driver", string, dev->driver);
        json_text_member(t, "driver_override", string, dev->driver_override);
        json_text_member(t, "kernel_names", words, dev->kernel_names);
        json_text_key(t, "link");
        put_link(t, dev);
        json_text_member(t, "module", known, device_module(view, dev->address));
        json_text_member(t, "confidential_mode", string, confidential_mode_to_string(dev->mode));
        json_text_member(t, "partition", known, device_partition(view, dev->address));
        json_text_member(t, "physical_function", string,
                         dev->type == PCI_TYPE_VF ? PCI_ADDRESS_STR(dev->physfn) : NULL);
        json_text_key(t, "virtual_functions");
        put_vfs(t, dev);
        json_text_key(t, "vgpu");
        put_vgpu(t, dev);
        json_text_member(t, "total_vfs", number, dev->total_vfs);
        json_text_member(t, "reset_methods", words, dev->reset_methods);
        json_text_member(t, "power_state", string, dev->power_state);
        json_text_key(t, "bars");
        put_bars(t, dev);
        json_text_member(t, "acs", string, pci_acs_to_string(dev->acs));
        json_text_member(t, "isolated", boolean, inventory_path_is_isolated(view->inventory, dev, NULL));
        json_text_member(t, "fault", string, dev->fault);
}

static void put_device(JsonText *t, const HostView *view, const PciDevice *dev) {
        _cleanup_refusal_ Refusal why = { 0 };
        DeviceState state = device_state(view, dev, &why);
        const Pool *pool = policy_pool(view->policy, dev);

        put_ids(t, dev);
        put_state(t, pool ? pool->name : NULL, state, &why, ledger_holder(view->ledger, dev->address));
        put_facts(t, view, dev);
        json_text_literal(t, "}");
}

/* Ends the text and parses it into an object. The caller owns the object; NULL when out of memory. */
static json_object *parse(JsonText *t) {
        _cleanup_free_ char *text = json_text_finish(t);
        json_object *o = NULL;

        if (text)
                (void) json_parse(text, strlen(text), &o);
        return o;
}

json_object *json_device(const HostView *view, const PciDevice *dev) {
        JsonText t = json_text_new();

        put_device(&t, view, dev);
        return parse(&t);
}

json_object *json_link(const PciDevice *dev) {
        JsonText t;

        if (dev->link_speed == 0 && dev->link_width == 0)
                return NULL;
        t = json_text_new();
        put_link(&t, dev);
        return parse(&t);
}

/* Makes the object of an allocated device that is missing from the host. It has the keys of json_device(); a value that
 * the allocation does not record is null. */
static json_object *json_missing(const HostView *view, const Claim *claim) {
        static const char *const unknown[] = {
                "class",         "kind", "kernel_names", "virtual_functions", "total_vfs", "vgpu",
                "reset_methods", "bars", "acs",          "isolated",
        };
        static const Refusal why = {
                .verdict = VERDICT_MISSING,
                .message = (char *) "The device is allocated, but is missing from this node.",
        };
        const Allocation *a = claim->allocation;
        const AllocationDevice *d = allocation_find_device(a, claim->address);
        PciDevice gone = {
                .address = claim->address, .parent = -1, .numa_node = -1, .iommu_group = -1, .vf_index = -1
        };
        JsonText t = json_text_new();
        json_object *o;

        if (d) {
                gone.vendor = d->vendor;
                gone.device = d->device;
                gone.subsystem_vendor = d->subsystem_vendor;
                gone.subsystem_device = d->subsystem_device;
                gone.type = d->is_vf ? PCI_TYPE_VF : PCI_TYPE_DEVICE;
                gone.physfn = d->physfn;
                gone.path = d->path;
        }
        put_ids(&t, &gone);
        put_state(&t, d ? d->pool : NULL, DEVICE_STATE_MISSING, &why, a);
        put_facts(&t, view, &gone);
        json_text_literal(&t, "}");
        o = parse(&t);
        if (o && (!d || !d->is_vf))
                json_object_object_add(o, "type",
                                       NULL); /* whether the device was a PF is not recorded in the allocation */
        for (size_t i = 0; o && i < ELEMENTSOF(unknown); i++)
                json_object_object_add(o, unknown[i], NULL);
        return o;
}

static void separate(JsonText *t, bool *first) {
        if (!*first)
                json_text_literal(t, ",");
        *first = false;
}

void json_text_devices(JsonText *t, const HostView *view) {
        bool first = true;

        json_text_literal(t, "[");
        for (size_t i = 0; i < view->inventory->n_devices; i++) {
                separate(t, &first);
                put_device(t, view, &view->inventory->devices[i]);
        }
        for (size_t i = 0; i < view->ledger->n_claims; i++)
                if (!inventory_find(view->inventory, view->ledger->claims[i].address)) {
                        json_object *o = json_missing(view, &view->ledger->claims[i]);

                        separate(t, &first);
                        t->failed |= !o;
                        json_text_object(t, o);
                }
        json_text_literal(t, "]");
}
