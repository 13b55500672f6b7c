/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <stdio.h>

#include "unit.h"

#include "model/inventory.h"
#include "util/strings.h"

static PciAddress addr(const char *s) {
        PciAddress a;

        assert_int_equal(pci_address_parse(s, &a), 0);
        return a;
}

static PciDevice *add(Inventory *inv, const char *address, const char *path, int group) {
        PciDevice *dev = inventory_add_device(inv, addr(address));

        assert_non_null(dev);
        assert_int_equal(string_copy(&dev->path, path), 0);
        dev->iommu_group = group;
        return dev;
}

static void set_vf(PciDevice *dev, const char *pf) {
        dev->type = PCI_TYPE_VF;
        dev->physfn = addr(pf);
}

static const PciDevice *find(const Inventory *inv, const char *address) {
        const PciDevice *dev = inventory_find(inv, addr(address));

        assert_non_null(dev);
        return dev;
}

TEST(test_new_device_knows_nothing) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        const PciDevice *dev = inventory_add_device(inv, addr("0000:01:00.0"));

        assert_int_equal(dev->numa_node, -1);
        assert_int_equal(dev->iommu_group, -1);
        assert_int_equal(dev->parent, -1);
        assert_int_equal(dev->acs, PCI_ACS_UNKNOWN);
        assert_null(dev->driver);
}

TEST(test_empty) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();

        assert_int_equal(inventory_finish(inv), 0);
        assert_null(inventory_find(inv, addr("0000:01:00.0")));
        assert_null(inventory_find_group(inv, 0));
        assert_null(inventory_find_node(inv, 0));
        assert_null(inventory_find_cpu(inv, 0));
        assert_int_equal(inventory_node_index(inv, 0), -1);
        assert_false(inv->iommu);
}

static NumaNode *add_node(Inventory *inv, int id, unsigned cpus, uint64_t memory) {
        NumaNode *node;

        assert_int_equal(ARRAY_RESERVE(inv->nodes, inv->n_nodes), 0);
        node = &inv->nodes[inv->n_nodes++];
        *node = (NumaNode) { .id = id, .package = -1, .memory = memory };
        for (unsigned i = 0; i < cpus; i++)
                cpuset_add(&node->cpus, (unsigned) id * 8 + i);
        return node;
}

static void set_distances(Inventory *inv, int id, const unsigned *distances) {
        for (size_t i = 0; i < inv->n_nodes; i++)
                inv->nodes[inventory_node_index(inv, id)].distance[i] = distances[i];
}

/* A node with CPUs and memory, one without memory, and two without CPUs. */
static Inventory *make_nodes(void) {
        Inventory *inv = inventory_new();

        (void) add_node(inv, 0, 4, 1 << 20);
        (void) add_node(inv, 1, 4, 0);
        (void) add_node(inv, 4, 0, 1 << 20);
        (void) add_node(inv, 7, 0, 0);
        set_distances(inv, 1, (unsigned[]) { 20, 10, 12, 30 });
        set_distances(inv, 4, (unsigned[]) { 30, 20, 10, 11 });
        set_distances(inv, 7, (unsigned[]) { 20, 20, 11, 10 });
        return inv;
}

TEST(test_nearest_cpus) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_nodes();

        assert_int_equal(inventory_cpu_node(inv, 0), 0);
        assert_int_equal(inventory_cpu_node(inv, 1), 1); /* CPUs suffice */
        assert_int_equal(inventory_cpu_node(inv, 4), 1);
        assert_int_equal(inventory_cpu_node(inv, 7), 0); /* the lowest of two as near */
        assert_int_equal(inventory_cpu_node(inv, 9), -1);
        assert_int_equal(inventory_cpu_node(inv, -1), -1);
        set_distances(inv, 4, (unsigned[]) { 30, 0, 10, 11 });
        assert_int_equal(inventory_cpu_node(inv, 4), 0); /* unknown is not near */
        set_distances(inv, 4, (unsigned[]) { 0, 0, 10, 11 });
        assert_int_equal(inventory_cpu_node(inv, 4), -1);
        inv->nodes[1].cpus = (CpuSet) { 0 };
        assert_int_equal(inventory_cpu_node(inv, 4), 0); /* the only one with CPUs */
        assert_int_equal(inventory_cpu_node(inv, -1), 0);
        inv->nodes[0].cpus = (CpuSet) { 0 };
        assert_int_equal(inventory_cpu_node(inv, 4), 4);
}

TEST(test_nearest_memory) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_nodes();
        CpuSet named = { 0 };

        assert_int_equal(inventory_memory_node(inv, 0, NULL), 0);
        assert_int_equal(inventory_memory_node(inv, 1, NULL), 0); /* not node 4, though it is nearer */
        assert_int_equal(inventory_memory_node(inv, 9, NULL), -1);
        cpuset_add(&named, 4);
        assert_int_equal(inventory_memory_node(inv, 0, &named), 4);
        cpuset_add(&named, 0);
        assert_int_equal(inventory_memory_node(inv, 0, &named), 0);
        assert_int_equal(inventory_memory_node(inv, 1, &named), 4);
}

/* A node without CPUs has memory of a GPU if the GPU's driver says so, or if a GPU beside a Grace CPU is on the
 * node. */
TEST(test_memory_of_a_gpu) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_nodes();
        PciDevice *gpu = add(inv, "0000:01:00.0", "pci0000:00/0000:01:00.0", 1);

        gpu->class = 0x030200;
        gpu->vendor = 0x10de;
        gpu->numa_node = 4;
        assert_null(inventory_memory_owner(inv, &inv->nodes[2]));
        (void) snprintf(inv->architecture, sizeof(inv->architecture), ARCHITECTURE_AARCH64);
        gpu->numa_node = 0;
        assert_null(inventory_memory_owner(inv, &inv->nodes[2]));
        gpu->numa_node = 4;
        assert_ptr_equal(inventory_memory_owner(inv, &inv->nodes[2]), gpu);
        gpu->has_memory_node = true;
        gpu->memory_node = 7;
        assert_null(inventory_memory_owner(inv, &inv->nodes[2]));
        assert_ptr_equal(inventory_memory_owner(inv, &inv->nodes[3]), gpu);
        gpu->memory_node = 0;
        assert_null(inventory_memory_owner(inv, &inv->nodes[0]));
}

TEST(test_system_peripherals) {
        static const struct {
                uint32_t class;
                uint64_t bar;
                bool platform;
        } cases[] = {
                { 0x080100, 0, false },   { 0x088000, 4096, false }, { 0x088000, 0, true },
                { 0x080000, 4096, true }, { 0x080200, 4096, true },  { 0x080600, 4096, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const PciDevice dev = { .class = cases[i].class, .bar_size = { cases[i].bar } };

                assert_int_equal(pci_device_is_platform(&dev), cases[i].platform);
        }
}

TEST(test_sorted_with_parents) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        const PciDevice *dev;

        (void) add(inv, "0000:02:00.0", "pci0000:00/0000:00:1c.0/0000:02:00.0", -1);
        (void) add(inv, "0000:00:1c.0", "pci0000:00/0000:00:1c.0", -1);
        (void) add(inv, "0000:03:00.0", "pci0000:00/0000:00:1d.0/0000:03:00.0", -1); /* its bridge is missing */
        (void) add(inv, "0001:00:00.0", "pci0001:00/0001:00:00.0", -1);
        (void) inventory_add_device(inv, addr("0000:00:02.0")); /* no path */
        assert_int_equal(inventory_finish(inv), 0);

        for (size_t i = 1; i < inv->n_devices; i++)
                assert_true(pci_address_compare(inv->devices[i - 1].address, inv->devices[i].address) < 0);
        dev = find(inv, "0000:02:00.0");
        assert_true(pci_address_equal(inv->devices[dev->parent].address, addr("0000:00:1c.0")));
        assert_int_equal(find(inv, "0000:00:1c.0")->parent, -1);
        assert_int_equal(find(inv, "0000:03:00.0")->parent, -1);
        assert_int_equal(find(inv, "0000:00:02.0")->parent, -1);
        assert_int_equal(inventory_device_index(inv, dev), (size_t) (dev - inv->devices));
}

TEST(test_groups) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        const IommuGroup *group;

        (void) add(inv, "0000:03:00.0", "pci0000:00/0000:03:00.0", 7);
        (void) add(inv, "0000:01:00.1", "pci0000:00/0000:01:00.1", 2);
        (void) add(inv, "0000:01:00.0", "pci0000:00/0000:01:00.0", 2);
        (void) add(inv, "0000:00:1b.0", "pci0000:00/0000:00:1b.0", -1);
        assert_int_equal(inventory_set_group_direct(inv, 2), 0);
        assert_int_equal(inventory_set_group_direct(inv, 99), 0); /* of no device: not kept */
        assert_int_equal(inventory_finish(inv), 0);

        assert_true(inv->iommu);
        assert_int_equal(inv->n_groups, 2);
        group = inventory_find_group(inv, 2);
        assert_non_null(group);
        assert_true(group->direct);
        assert_int_equal(group->n_members, 2);
        assert_true(group->members[0] < group->members[1]);
        assert_false(inventory_find_group(inv, 7)->direct);
        assert_null(inventory_find_group(inv, 99));

        assert_int_equal(inventory_set_group_direct(inv, 7), 0);
        assert_int_equal(inventory_finish(inv), 0); /* idempotent */
        assert_int_equal(inv->n_groups, 2);
        assert_true(inventory_find_group(inv, 7)->direct);
        assert_true(inventory_find_group(inv, 2)->direct);
}

TEST(test_E9_vfs_with_odd_functions) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        static const char *const vfs[] = { "0000:05:11.1", "0000:05:10.1", "0000:05:10.7", "0000:05:10.3",
                                           "0000:05:10.5" };
        const PciDevice *pf;

        add(inv, "0000:05:00.0", "", 15)->total_vfs = 7;
        add(inv, "0000:05:00.1", "", 15)->total_vfs = 7;
        for (size_t i = 0; i < ELEMENTSOF(vfs); i++)
                set_vf(add(inv, vfs[i], "", 20 + (int) i), "0000:05:00.1");
        set_vf(add(inv, "0000:06:10.0", "", 40), "0000:06:00.0"); /* its PF is missing */
        assert_int_equal(inventory_finish(inv), 0);

        pf = find(inv, "0000:05:00.0");
        assert_int_equal(pf->type, PCI_TYPE_PF);
        assert_int_equal(pf->n_vfs, 0);
        pf = find(inv, "0000:05:00.1");
        assert_int_equal(pf->type, PCI_TYPE_PF);
        assert_int_equal(pf->n_vfs, 5);
        assert_true(pci_address_equal(pf->vfs[0], addr("0000:05:10.1")));
        assert_true(pci_address_equal(pf->vfs[4], addr("0000:05:11.1")));
        assert_int_equal(inventory_find_group(inv, 15)->n_members, 2);
        assert_int_equal(find(inv, "0000:06:10.0")->type, PCI_TYPE_VF);
}

static void set_vfs(PciDevice *pf, const PciAddress *vfs, size_t n) {
        pf->linked = calloc(n, sizeof(*vfs));
        assert_non_null(pf->linked);
        memcpy(pf->linked, vfs, n * sizeof(*vfs));
        pf->n_linked = n;
}

TEST(test_vfs_by_index) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        /* Index 0 has a higher address than index 1. One VF is listed twice, one is gone, one is another PF's; one is
         * the PF. */
        const PciAddress listed[] = { addr("0000:01:10.2"), addr("0000:01:10.0"), addr("0000:01:10.2"),
                                      addr("0000:01:17.0"), addr("0000:02:10.0"), addr("0000:01:00.0") };
        const PciDevice *pf;

        set_vfs(add(inv, "0000:01:00.0", "", 1), listed, ELEMENTSOF(listed));
        set_vf(add(inv, "0000:01:10.0", "", 2), "0000:01:00.0");
        set_vf(add(inv, "0000:01:10.2", "", 3), "0000:01:00.0");
        set_vf(add(inv, "0000:01:10.4", "", 4), "0000:01:00.0"); /* not listed, but its physfn names the PF */
        add(inv, "0000:02:00.0", "", 5)->total_vfs = 1;
        set_vf(add(inv, "0000:02:10.0", "", 6), "0000:02:00.0");
        assert_int_equal(inventory_finish(inv), 0);

        pf = find(inv, "0000:01:00.0");
        assert_int_equal(pf->type, PCI_TYPE_PF);
        assert_int_equal(pf->n_vfs, 3);
        assert_true(pci_address_equal(pf->vfs[0], addr("0000:01:10.2")));
        assert_true(pci_address_equal(pf->vfs[1], addr("0000:01:10.0")));
        assert_true(pci_address_equal(pf->vfs[2], addr("0000:01:10.4")));
        assert_int_equal(find(inv, "0000:02:00.0")->n_vfs, 1);
}

/* Copies inv to another inventory, as an update does. */
static Inventory *copy(const Inventory *inv) {
        Inventory *to = inventory_new();

        assert_non_null(to);
        for (size_t i = 0; i < inv->n_devices; i++)
                assert_int_equal(inventory_copy_device(to, &inv->devices[i]), 0);
        assert_int_equal(inventory_finish(to), 0);
        return to;
}

TEST(test_vf_index_of_a_copy) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new(), *again = NULL;
        PciDevice *pf = add(inv, "0000:01:00.0", "", 1);
        const PciAddress whole[] = { addr("0000:01:10.0"), addr("0000:01:10.2") };

        /* A link of the other PF could not be read, so its VFs have no known index. */
        set_vfs(pf, whole, ELEMENTSOF(whole));
        pf->n_virtfns = 2;
        pf = add(inv, "0000:02:00.0", "", 2);
        set_vfs(pf, &(PciAddress) { .bus = 2, .slot = 0x10, .function = 2 }, 1);
        pf->n_virtfns = 2;
        set_vf(add(inv, "0000:01:10.2", "", 4), "0000:01:00.0"); /* the first one was removed */
        set_vf(add(inv, "0000:02:10.0", "", 5), "0000:02:00.0");
        set_vf(add(inv, "0000:02:10.2", "", 6), "0000:02:00.0");
        assert_int_equal(inventory_finish(inv), 0);
        again = copy(inv);
        assert_int_equal(inventory_finish(again), 0); /* idempotent */

        for (size_t i = 0; i < 2; i++) {
                const Inventory *at = i == 0 ? inv : again;

                assert_int_equal(find(at, "0000:01:10.2")->vf_index, 1);
                assert_int_equal(find(at, "0000:01:00.0")->n_vfs, 1);
                assert_int_equal(find(at, "0000:02:10.0")->vf_index, -1);
                assert_int_equal(find(at, "0000:02:10.2")->vf_index, -1);
                assert_int_equal(find(at, "0000:02:00.0")->n_vfs, 2);
        }
}

TEST(test_D10_pf_and_vfs_in_one_group) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();

        add(inv, "0000:01:00.0", "", 1)->total_vfs = 2;
        set_vf(add(inv, "0000:01:00.2", "", 1), "0000:01:00.0");
        set_vf(add(inv, "0000:01:00.3", "", 1), "0000:01:00.0");
        assert_int_equal(inventory_finish(inv), 0);
        assert_int_equal(inv->n_groups, 1);
        assert_int_equal(inventory_find_group(inv, 1)->n_members, 3);
        assert_int_equal(find(inv, "0000:01:00.0")->n_vfs, 2);
}

TEST(test_memory) {
        NumaNode node = {
                .memory = 16ULL << 30,
                .pages = { { .size = 2ULL << 20, .total = 1024 }, { .size = 1ULL << 30, .total = 4 } },
                .n_pages = 2,
        };

        assert_int_equal(numa_node_base_memory(&node), 10ULL << 30);
        assert_int_equal(numa_node_pages(&node, 1ULL << 30)->total, 4);
        assert_null(numa_node_pages(&node, 4096));
        node.pages[1].total = 100; /* more than the kernel has */
        assert_int_equal(numa_node_base_memory(&node), 0);
        node.pages[1].total = UINT64_MAX;
        assert_int_equal(numa_node_base_memory(&node), 0);
}

TEST(test_harmless_drivers) {
        static const char *const harmless[] = { "vfio-pci", "pci-stub", "pcieport" };
        static const char *const harmful[] = { "ahci", "nvidia", "shpchp", "xen-pciback", "mlx5_vfio_pci" };
        PciDevice dev = { 0 };

        assert_true(pci_device_driver_is_harmless(&dev));
        for (size_t i = 0; i < ELEMENTSOF(harmless); i++) {
                dev.driver = (char *) harmless[i];
                assert_true(pci_device_driver_is_harmless(&dev));
        }
        for (size_t i = 0; i < ELEMENTSOF(harmful); i++) {
                dev.driver = (char *) harmful[i];
                assert_false(pci_device_driver_is_harmless(&dev));
        }
        dev.vfio = true; /* bound to a VFIO variant driver, which only the kernel knows */
        assert_true(pci_device_driver_is_harmless(&dev));
}

TEST(test_classes) {
        assert_true(pci_device_is_gpu(&(PciDevice) { .class = 0x030200 }));
        assert_true(pci_device_is_gpu(&(PciDevice) { .class = 0x120000, .vendor = 0x1002, .device = 0x74a1 }));
        assert_false(pci_device_is_gpu(&(PciDevice) { .class = 0x120000, .vendor = 0x10ee, .device = 0x5004 }));
        assert_false(pci_device_is_gpu(&(PciDevice) { .class = 0x040300 }));
        assert_false(pci_device_is_gpu(&(PciDevice) { .class = 0x030000, .vendor = 0x1a03, .device = 0x2000 }));
        assert_false(pci_device_is_gpu(&(PciDevice) { .class = 0x030000, .vendor = 0x1002, .device = 0x515e }));
        assert_true(pci_device_is_gpu(&(PciDevice) { .class = 0x030000, .vendor = 0x1002, .device = 0x73bf }));
        assert_false(pci_device_is_gpu(&(PciDevice) { .class = 0x120000, .vendor = 0x19e5, .device = 0xd802 }));
        assert_true(pci_device_is_accelerator(&(PciDevice) { .class = 0x120000, .vendor = 0x19e5, .device = 0xd802 }));
        assert_true(pci_device_is_accelerator(&(PciDevice) { .class = 0x030200 }));
        assert_false(pci_device_is_accelerator(&(PciDevice) { .class = 0x030000, .vendor = 0x1a03, .device = 0x2000 }));
        assert_false(pci_device_is_accelerator(&(PciDevice) { .class = 0x0b4000 }));
        assert_true(pci_device_is_nic(&(PciDevice) { .class = 0x020700 }));
        assert_false(pci_device_is_nic(&(PciDevice) { .class = 0x0c0600 }));
}

TEST(test_isolated_path) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        const PciDevice *port = NULL;

        add(inv, "0000:00:01.0", "pci0000:00/0000:00:01.0", 1)->acs = PCI_ACS_ISOLATED;
        add(inv, "0000:01:00.0", "pci0000:00/0000:00:01.0/0000:01:00.0", 2)->acs = PCI_ACS_CLEAN;
        add(inv, "0000:02:00.0", "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0", 3)->acs = PCI_ACS_OPEN;
        add(inv, "0000:03:00.0", "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0", 4)->acs =
                PCI_ACS_OPEN;
        (void) add(inv, "0000:00:02.0", "pci0000:00/0000:00:02.0", 5); /* unknown is not isolated */
        (void) add(inv, "0000:04:00.0", "pci0000:00/0000:00:02.0/0000:04:00.0", 6);
        assert_int_equal(inventory_finish(inv), 0);

        assert_true(inventory_path_is_isolated(inv, find(inv, "0000:02:00.0"), &port));
        assert_false(inventory_path_is_isolated(inv, find(inv, "0000:03:00.0"), &port));
        assert_ptr_equal(port, find(inv, "0000:02:00.0"));
        assert_false(inventory_path_is_isolated(inv, find(inv, "0000:04:00.0"), NULL));
        assert_true(inventory_path_is_isolated(inv, find(inv, "0000:00:02.0"), NULL));
}

TEST(test_path_that_loops) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();

        add(inv, "0000:01:00.0", "0000:02:00.0/0000:01:00.0", 1)->acs = PCI_ACS_CLEAN;
        add(inv, "0000:02:00.0", "0000:01:00.0/0000:02:00.0", 1)->acs = PCI_ACS_CLEAN;
        add(inv, "0000:03:00.0", "0000:03:00.0/0000:03:00.0", 1)->acs = PCI_ACS_CLEAN;
        assert_int_equal(inventory_finish(inv), 0);
        assert_false(inventory_path_is_isolated(inv, find(inv, "0000:01:00.0"), NULL));
        assert_int_equal(find(inv, "0000:03:00.0")->parent, -1);
}

TEST(test_host_bridges) {
        static const struct {
                const char *path, *host;
        } cases[] = {
                { "pci0000:00/0000:00:01.0", "pci0000:00" },
                { "pci0000:80/0000:80:02.0/0000:82:00.0", "pci0000:80" },
                { "platform/soc/40000000.pcie/pci0001:00/0001:00:00.0", "platform/soc/40000000.pcie/pci0001:00" },
                { "LNXSYSTM:00/LNXSYBUS:00/PNP0A08:00/pci0000:00/0000:00:01.0/0000:01:00.0",
                  "LNXSYSTM:00/LNXSYBUS:00/PNP0A08:00/pci0000:00" },
                { "pci0000:64/0000:64:05.5/pci10000:e0/10000:e0:02.0", "pci0000:64/0000:64:05.5/pci10000:e0" },
                { "pci0000:0/0000:00:01.0", "" },
                { "pci0000:00:00/0000:00:01.0", "" },
                { "bus0000:00/0000:00:01.0", "" },
                { "pci/0000:00:01.0", "" },
                { "pci00000000000000000000000:00/0000:00:01.0", "" },
                { "elsewhere/0000:00:01.0", "" },
                { "/", "" },
                { "", "" },
                { NULL, "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                PciDevice dev = { .path = (char *) cases[i].path };
                size_t n = strlen(cases[i].host);

                assert_int_equal(pci_device_host_length(&dev), n);
                assert_true(n == 0 || strncmp(cases[i].path, cases[i].host, n) == 0);
        }
}

TEST(test_faults_and_notes) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        PciDevice *dev = inventory_add_device(inv, addr("0000:01:00.0"));

        assert_int_equal(pci_device_add_fault(dev, "no %s", "vendor"), 0);
        assert_int_equal(pci_device_add_fault(dev, "no class"), 0);
        assert_string_equal(dev->fault, "no vendor; no class");
        for (unsigned i = 0; i < 10000; i++)
                assert_int_equal(pci_device_add_fault(dev, "virtfn%u no link", i), 0);
        assert_true(strlen(dev->fault) < 2048);
        assert_int_equal(inventory_add_note(inv, "%d", 1), 0);
        assert_int_equal(inventory_add_note(inv, "%d", 2), 0);
        assert_int_equal(inv->n_notes, 2);
        assert_string_equal(inv->notes[1], "2");
}

TEST(test_names) {
        assert_string_equal(pci_type_to_string(PCI_TYPE_VF), "vf");
        assert_null(pci_type_to_string(_PCI_TYPE_MAX));
        assert_string_equal(pci_acs_to_string(PCI_ACS_OPEN), "open");
}
