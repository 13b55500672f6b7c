/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>

#include "unit.h"

#include "scanfixture.h"

TEST_WITH(test_E1_totalvfs, setup, teardown) {
        Fixture *f = *state;
        const PciDevice *nic;

        assert_int_equal(scan_nic(f)->type, PCI_TYPE_DEVICE);
        nic_has(f, "sriov_totalvfs", "7");
        nic_has(f, "sriov_vf_device", "10ca");
        nic = scan_nic(f);
        assert_int_equal(nic->type, PCI_TYPE_PF);
        assert_int_equal(nic->total_vfs, 7);
        assert_int_equal(nic->vf_device, 0x10ca);
        nic_has(f, "sriov_totalvfs", "0");
        assert_int_equal(scan_nic(f)->type, PCI_TYPE_DEVICE);
        nic_has(f, "sriov_totalvfs", "seven");
        nic = scan_nic(f);
        assert_int_equal(nic->type, PCI_TYPE_DEVICE);
        assert_int_equal(nic->total_vfs, 0);
        assert_fault(nic, "sriov_totalvfs");
}

/* The facts of VFs that a PF could have. Lines 8 to 13 of resource have all their BARs together. */
TEST_WITH(test_missing_vfs, setup, teardown) {
        static const char absent[] = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
        Fixture *f = *state;
        _cleanup_free_ char *resource = NULL;
        const PciDevice *nic;

        assert_int_equal(string_append(&resource, "", "0x1000 0x1fff 0x200\n"), 0);
        for (unsigned i = 1; i < 7; i++)
                assert_int_equal(string_append(&resource, "", "%s", absent), 0);
        assert_int_equal(string_append(&resource, "", "%s0x10000 0x17fff 0x200", absent), 0);
        nic_has(f, "resource", resource);
        nic_has(f, "sriov_offset", "128");
        nic_has(f, "sriov_stride", "2");
        assert_int_equal(scan_nic(f)->vf_offset, 0);
        nic_has(f, "sriov_totalvfs", "8");
        nic = scan_nic(f);
        assert_int_equal(nic->vf_offset, 128);
        assert_int_equal(nic->vf_stride, 2);
        assert_int_equal(nic->bar_size[0], 0x1000);
        assert_int_equal(nic->vf_bar_size[0], 0);
        assert_int_equal(nic->vf_bar_size[1], 0x1000);
        assert_null(nic->fault);
        nic_has(f, "sriov_offset", "-1");
        assert_fault(scan_nic(f), "sriov_offset");
}

TEST_WITH(test_E2_physfn, setup, teardown) {
        Fixture *f = *state;
        const PciDevice *vf;

        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:10.0", "0x8086", "0x10ca", "0x020000");
        scan(f);
        assert_int_equal(find(f, "0000:01:10.0")->type, PCI_TYPE_DEVICE);

        nic_has(f, "numa_node", "0");
        tree_attribute(f->root, "0000:01:10.0", "numa_node", "-1");
        tree_attribute_link(f->root, "0000:01:10.0", "physfn", "../0000:01:00.0");
        scan(f);
        vf = find(f, "0000:01:10.0");
        assert_int_equal(vf->type, PCI_TYPE_VF);
        assert_true(pci_address_equal(vf->physfn, find(f, "0000:01:00.0")->address));
        assert_int_equal(vf->numa_node, 0); /* inherited from the PF */

        tree_attribute(f->root, "0000:01:10.0", "physfn", "0000:01:00.0");
        scan(f);
        assert_int_equal(find(f, "0000:01:10.0")->type, PCI_TYPE_DEVICE);
        assert_fault(find(f, "0000:01:10.0"), "physfn");
}

static void add_vf(const Fixture *f, const char *vf, const char *device, const char *pf, const char *resource) {
        _cleanup_free_ char *path = NULL, *physfn = NULL;

        assert_int_equal(string_replace(&path, "pci0000:00/0000:00:01.0/%s", vf), 0);
        assert_int_equal(string_replace(&physfn, "../%s", pf), 0);
        tree_device(f->root, path, "0x8086", device, "0x020000");
        tree_attribute(f->root, vf, "subsystem_vendor", "0x8086");
        tree_attribute(f->root, vf, "subsystem_device", "0x0001");
        if (resource)
                tree_attribute(f->root, vf, "resource", resource);
        tree_attribute_link(f->root, vf, "physfn", physfn);
}

/* The kernel gives all VFs of a PF one class, subsystem and size of BARs, so the first VF's are copied. Impossible
 * differences in this test show what was read. */
TEST_WITH(test_siblings, setup, teardown) {
        static const char small[] = "0x1000 0x1fff 0x200", large[] = "0x10000 0x1ffff 0x200";
        const struct {
                const char *vf, *device, *pf, *class, *resource, *numa_node;
                uint64_t bar;
        } vfs[] = {
                { "0000:01:10.0", "0x10ca", "0000:01:00.0", "0x020000", small, "0", 0x1000 },
                { "0000:01:10.1", "0x10ca", "0000:01:00.1", "0x020000", large, "0", 0x10000 }, /* another PF */
                { "0000:01:10.2", "0x10ca", "0000:01:00.0", "junk", large, "1", 0x1000 },
                { "0000:01:10.3", "0x10ca", "0000:01:00.1", "junk", small, "1", 0x10000 },
                { "0000:01:10.4", "0x10cb", "0000:01:00.0", "0x020000", large, "0", 0x10000 }, /* another device ID */
                { "0000:01:10.6", "0x10ca", "0000:01:00.0", "0x020000", NULL, "0", 0 }, /* an attribute is missing */
        };
        Fixture *f = *state;

        for (size_t i = 0; i < ELEMENTSOF(vfs); i++) {
                add_vf(f, vfs[i].vf, vfs[i].device, vfs[i].pf, vfs[i].resource);
                tree_attribute(f->root, vfs[i].vf, "class", vfs[i].class);
                tree_attribute(f->root, vfs[i].vf, "numa_node", vfs[i].numa_node);
        }
        scan(f);
        for (size_t i = 0; i < ELEMENTSOF(vfs); i++) {
                const PciDevice *vf = find(f, vfs[i].vf);

                assert_null(vf->fault);
                assert_int_equal(vf->class, 0x020000);
                assert_int_equal(vf->vendor, 0x8086);
                assert_int_equal(vf->subsystem_device, 1);
                assert_int_equal(vf->bar_size[0], vfs[i].bar);
                assert_int_equal(vf->own_node, vfs[i].numa_node[0] - '0');
        }
}

/* A VF with damaged attributes is not copied. */
TEST_WITH(test_damaged_sibling, setup, teardown) {
        Fixture *f = *state;

        add_vf(f, "0000:01:10.0", "0x10ca", "0000:01:00.0", "0x1000 0x1fff 0x200");
        add_vf(f, "0000:01:10.2", "0x10ca", "0000:01:00.0", "0x1000 0x1fff 0x200");
        tree_attribute(f->root, "0000:01:10.0", "class", "junk");
        scan(f);
        assert_fault(find(f, "0000:01:10.0"), "class");
        assert_null(find(f, "0000:01:10.2")->fault);
        assert_int_equal(find(f, "0000:01:10.2")->class, 0x020000);
}

TEST_WITH(test_E3_virtfn_junk, setup, teardown) {
        Fixture *f = *state;
        const PciDevice *nic;

        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:10.2", "0x8086", "0x10ca", "0x020000");
        tree_attribute_link(f->root, "0000:01:10.2", "physfn", "../0000:01:00.0");
        nic_has(f, "sriov_totalvfs", "8");
        nic_has(f, "virtfn0", "junk");
        tree_attribute_link(f->root, "0000:01:00.0", "virtfn1", "../0000:01:10.2");
        tree_attribute_link(f->root, "0000:01:00.0", "virtfn2", "../../elsewhere");
        tree_attribute_link(f->root, "0000:01:00.0", "virtfn3", "../0000:01:17.7"); /* the target is gone */
        nic = scan_nic(f);
        assert_int_equal(nic->n_vfs, 1);
        assert_true(pci_address_equal(nic->vfs[0], find(f, "0000:01:10.2")->address));
        assert_fault(nic, "virtfn0");
        assert_fault(nic, "virtfn2");
        assert_null(strstr(nic->fault, "virtfn1"));
}

TEST_WITH(test_E9_dual_port_82576, setup, teardown) {
        static const char *const vfs[] = { "10.1", "10.3", "10.5", "10.7", "11.1", "11.3", "11.5" };
        Fixture *f = *state;
        const PciDevice *pf;

        for (unsigned i = 0; i < 2; i++) {
                char path[64], address[32];

                (void) snprintf(path, sizeof(path), "pci0000:00/0000:00:05.0/0000:05:00.%u", i);
                (void) snprintf(address, sizeof(address), "0000:05:00.%u", i);
                tree_device(f->root, path, "0x8086", "0x10c9", "0x020000");
                tree_attribute(f->root, address, "sriov_totalvfs", "7");
                tree_attribute_link(f->root, address, "iommu_group", "../../../../kernel/iommu_groups/15");
        }
        for (unsigned i = 0; i < ELEMENTSOF(vfs); i++) {
                char path[64], address[32], link[32], target[64];

                (void) snprintf(path, sizeof(path), "pci0000:00/0000:00:05.0/0000:05:%s", vfs[i]);
                (void) snprintf(address, sizeof(address), "0000:05:%s", vfs[i]);
                tree_device(f->root, path, "0x8086", "0x10ca", "0x020000");
                tree_attribute_link(f->root, address, "physfn", "../0000:05:00.1");
                (void) snprintf(link, sizeof(link), "../../../kernel/iommu_groups/%u", 22 + i);
                tree_attribute_link(f->root, address, "iommu_group", link);
                (void) snprintf(link, sizeof(link), "virtfn%u", i);
                (void) snprintf(target, sizeof(target), "../%s", address);
                tree_attribute_link(f->root, "0000:05:00.1", link, target);
        }
        scan(f);
        assert_int_equal(inventory_find_group(f->inv, 15)->n_members, 2);
        assert_int_equal(inventory_find_group(f->inv, 25)->n_members, 1);
        assert_int_equal(find(f, "0000:05:00.0")->n_vfs, 0);
        assert_int_equal(find(f, "0000:05:00.0")->type, PCI_TYPE_PF);
        pf = find(f, "0000:05:00.1");
        assert_int_equal(pf->n_vfs, 7);
        assert_true(pci_address_equal(pf->vfs[6], find(f, "0000:05:11.5")->address));
}

/* virtfn10 follows virtfn9, in spite of strcmp(). */
TEST_WITH(test_vfs_in_order_of_index, setup, teardown) {
        Fixture *f = *state;
        const PciDevice *pf;

        nic_has(f, "sriov_totalvfs", "16");
        for (unsigned i = 0; i < 12; i++) {
                char path[64], address[32], link[32], target[64];

                (void) snprintf(address, sizeof(address), "0000:02:%02x.0", 12 - i);
                (void) snprintf(path, sizeof(path), "pci0000:00/0000:00:01.0/%s", address);
                tree_device(f->root, path, "0x8086", "0x10ca", "0x020000");
                tree_attribute_link(f->root, address, "physfn", "../0000:01:00.0");
                (void) snprintf(link, sizeof(link), "virtfn%u", i);
                (void) snprintf(target, sizeof(target), "../%s", address);
                tree_attribute_link(f->root, "0000:01:00.0", link, target);
        }
        pf = scan_nic(f);
        assert_int_equal(pf->n_vfs, 12);
        for (unsigned i = 0; i < 12; i++)
                assert_int_equal(pf->vfs[i].slot, 12 - i);
}

/* The directory of the PF holds its VFs only. The next device is found elsewhere. */
TEST_WITH(test_vf_named_by_its_pf, setup, teardown) {
        Fixture *f = *state;
        const PciDevice *vf;

        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:10.0", "0x8086", "0x10ca", "0x020000");
        tree_device(f->root, "pci0000:00/0000:00:02.0/0000:02:00.0", "0x8086", "0x10c9", "0x020000");
        tree_attribute_link(f->root, "0000:01:00.0", "virtfn0", "../0000:01:10.0");
        /* physfn is not needed, and so not read. */
        tree_attribute_link(f->root, "0000:01:10.0", "physfn", "../nonsense");
        scan(f);
        vf = find(f, "0000:01:10.0");
        assert_int_equal(vf->type, PCI_TYPE_VF);
        assert_null(vf->fault);
        assert_true(pci_address_equal(vf->physfn, find(f, "0000:01:00.0")->address));
        assert_int_equal(vf->vf_index, 0);
        assert_string_equal(vf->path, "pci0000:00/0000:00:01.0/0000:01:10.0");
        assert_string_equal(find(f, "0000:02:00.0")->path, "pci0000:00/0000:00:02.0/0000:02:00.0");
}

/* Checks that a device and the devices that its pool depends on are as in a full scan. */
static void assert_identity(const Fixture *f, const PciDevice *expected, size_t n) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = NULL;
        const PciDevice *dev;

        assert_int_equal(scan_identities(f->fs, &expected->address, 1, &inv), 0);
        assert_int_equal(inv->n_devices, n);
        dev = inventory_find(inv, expected->address);
        assert_non_null(dev);
        assert_int_equal(dev->type, expected->type);
        assert_true(pci_address_equal(dev->physfn, expected->physfn));
        assert_int_equal(dev->vendor, expected->vendor);
        assert_int_equal(dev->device, expected->device);
        assert_int_equal(dev->class, expected->class);
        assert_int_equal(dev->is_bridge, expected->is_bridge);
        assert_int_equal(dev->numa_node, expected->numa_node);
        assert_string_equal(dev->driver ?: "", expected->driver ?: "");
}

TEST_WITH(test_identities, setup, teardown) {
        static const struct {
                const char *address;
                size_t n; /* including the bridge above, the PF and other functions of all slots */
        } cases[] = { { "0000:00:01.0", 1 },
                      { "0000:01:00.0", 3 },
                      { "0000:01:00.1", 3 },
                      { "0000:01:10.0", 4 },
                      { "0000:02:00.0", 1 } };
        const PciAddress absent = { .bus = 0x7f };
        _cleanup_(cleanup_inventory_free) Inventory *none = NULL;
        Fixture *f = *state;

        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:00.1", "0x8086", "0x10c9", "0x020000");
        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:10.0", "0x8086", "0x10ca", "0x020000");
        tree_device(f->root, "pci0000:02/0000:02:00.0", "0x8086", "0x10c9", "0x020000");
        nic_has(f, "sriov_totalvfs", "7");
        nic_has(f, "numa_node", "-1");
        tree_attribute(f->root, "0000:00:01.0", "numa_node", "0");
        tree_attribute(f->root, "0000:01:10.0", "numa_node", "-1");
        tree_attribute_link(f->root, "0000:01:00.0", "virtfn0", "../0000:01:10.0");
        tree_attribute_link(f->root, "0000:01:10.0", "physfn", "../0000:01:00.0");
        tree_attribute_link(f->root, "0000:01:10.0", "driver", "../../../../bus/pci/drivers/vfio-pci");
        scan(f);
        assert_int_equal(find(f, "0000:01:10.0")->numa_node, 0);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_identity(f, find(f, cases[i].address), cases[i].n);
        assert_int_equal(scan_identities(f->fs, &absent, 1, &none), 0);
        assert_int_equal(none->n_devices, 0);
}
