/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Prints the inventory of the machine below ROOT as stable text, without names: pci.ids differs between hosts. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "host/critical.h"
#include "host/scan.h"

static void print_text(const char *key, const char *value) {
        if (value)
                printf("  %s %s\n", key, value);
}

static void print_bars(const PciDevice *dev) {
        bool any = false;

        for (size_t i = 0; i < PCI_BARS_MAX; i++)
                any = any || dev->bar_size[i] > 0;
        if (!any)
                return;
        printf("  bars");
        for (size_t i = 0; i < PCI_BARS_MAX; i++)
                printf(" %" PRIu64, dev->bar_size[i]);
        printf("\n");
}

static void print_sriov(const PciDevice *dev) {
        if (dev->type == PCI_TYPE_VF)
                printf("  physfn %s\n", PCI_ADDRESS_STR(dev->physfn));
        if (dev->type != PCI_TYPE_PF)
                return;
        printf("  vfs %zu of %u", dev->n_vfs, dev->total_vfs);
        if (dev->vf_device)
                printf(" device %04x", dev->vf_device);
        for (size_t i = 0; i < dev->n_vfs; i++)
                printf(" %s", PCI_ADDRESS_STR(dev->vfs[i]));
        printf("\n");
}

static void print_device(const Inventory *inv, const PciDevice *dev) {
        printf("device %s\n", PCI_ADDRESS_STR(dev->address));
        printf("  id %04x:%04x subsystem %04x:%04x class %06x type %s%s%s\n", dev->vendor, dev->device,
               dev->subsystem_vendor, dev->subsystem_device, dev->class, pci_type_to_string(dev->type),
               dev->is_bridge ? " bridge" : "", dev->boot_vga ? " boot-vga" : "");
        print_text("path", dev->path);
        if (dev->parent >= 0)
                printf("  parent %s\n", PCI_ADDRESS_STR(inv->devices[dev->parent].address));
        printf("  numa %d group %d acs %s", dev->numa_node, dev->iommu_group, pci_acs_to_string(dev->acs));
        if (dev->acs_capabilities != 0)
                printf(" %02x/%02x", dev->acs_enabled, dev->acs_capabilities);
        if (dev->ats != PCI_ATS_UNKNOWN && !dev->is_bridge)
                printf(" ats %s", pci_ats_to_string(dev->ats));
        putchar('\n');
        printf("  driver %s override %s%s\n", dev->driver ? dev->driver : "-",
               !dev->has_override     ? "impossible"
               : dev->driver_override ? dev->driver_override
                                      : "-",
               dev->vfio ? " vfio" : "");
        print_sriov(dev);
        print_text("reset", dev->reset_methods);
        print_text("power", dev->power_state);
        print_bars(dev);
        print_text("critical", dev->critical);
        print_text("console", dev->console);
        print_text("fault", dev->fault);
}

static void print_groups(const Inventory *inv) {
        for (size_t i = 0; i < inv->n_groups; i++) {
                const IommuGroup *group = inv->groups + i;

                printf("group %d%s", group->number, group->direct ? " direct" : "");
                for (size_t j = 0; j < group->n_members; j++)
                        printf(" %s", PCI_ADDRESS_STR(inv->devices[group->members[j]].address));
                printf("\n");
        }
}

static int print_nodes(const Inventory *inv) {
        for (size_t i = 0; i < inv->n_nodes; i++) {
                const NumaNode *node = inv->nodes + i;
                _cleanup_free_ char *cpus = cpuset_format(&node->cpus);

                if (!cpus)
                        return -ENOMEM;
                printf("node %d package %d cpus %s memory %" PRIu64 " base %" PRIu64 "\n", node->id, node->package,
                       *cpus ? cpus : "-", node->memory, numa_node_base_memory(node));
                for (size_t j = 0; j < node->n_pages; j++)
                        printf("  pages %" PRIu64 " free %" PRIu64 " of %" PRIu64 "\n", node->pages[j].size,
                               node->pages[j].free, node->pages[j].total);
                printf("  distance");
                for (size_t j = 0; j < inv->n_nodes; j++)
                        printf(" %u", node->distance[j]);
                printf("\n");
        }
        return 0;
}

static void print_cores(const Inventory *inv) {
        for (size_t i = 0; i < inv->n_cpus; i++) {
                const Cpu *first = inv->cpus + i;
                const NumaNode *node = inventory_find_node(inv, first->node);

                if (first->core != first->id)
                        continue;
                printf("core %u node %d package %d cpus", first->core, first->node, node ? node->package : -1);
                for (size_t j = 0; j < inv->n_cpus; j++)
                        if (inv->cpus[j].core == first->core)
                                printf(" %u", inv->cpus[j].id);
                printf("\n");
        }
}

static int print_inventory(const Inventory *inv) {
        int r;

        printf("iommu %s\n", inv->iommu ? "on" : "off");
        for (size_t i = 0; i < inv->n_notes; i++)
                printf("note %s\n", inv->notes[i]);
        r = print_nodes(inv);
        if (r < 0)
                return r;
        print_cores(inv);
        print_groups(inv);
        for (size_t i = 0; i < inv->n_devices; i++)
                print_device(inv, inv->devices + i);
        return 0;
}

int main(int argc, char *argv[]) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = NULL;
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        int r;

        if (argc != 2) {
                fprintf(stderr, "usage: dump-inventory ROOT\n");
                return 2;
        }
        r = sysfs_new(argv[1], &fs);
        if (r >= 0)
                r = scan_inventory(fs, &inv);
        if (r >= 0)
                r = critical_mark(fs, NULL, inv);
        if (r >= 0)
                r = print_inventory(inv);
        if (r < 0) {
                fprintf(stderr, "dump-inventory: %s: %s\n", argv[1], strerror(-r));
                return 1;
        }
        return 0;
}
