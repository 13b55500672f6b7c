/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The VFs that a configuration would create on a node without VFs. */

#include <errno.h>
#include <stdio.h>

#include "unit.h"

#include "nodefixture.h"

#define NIC    "0000:3b:00.0"
#define VF     "0000:3b:00.2"
#define CONFIG "[Pool nic]\nMatch=id=15b3:101e type=vf\nVirtualFunctions=4\n"

/* A NIC in IOMMU group 2 with 16 VFs to create, from 0000:3b:00.2 on. */
static PciDevice *add_pf(TestNode *t) {
        PciDevice *pf = node_nic(t, "pci0000:3a/0000:3a:00.0/" NIC, 1, 2);

        pf->total_vfs = 16;
        pf->vf_device = 0x101e;
        pf->vf_offset = 2;
        pf->vf_stride = 1;
        pf->vf_bar_size[0] = 2 << 20;
        assert_int_equal(string_copy(&pf->vf_name, "Virtual NIC"), 0);
        return pf;
}

/* bridge: the IOMMU group of the port above the NIC. */
static TestNode *node_with_pf(int bridge) {
        TestNode *t = node_new();

        (void) node_numa(t, 0, 0, 4, 1, 64 * GIB);
        (void) node_numa(t, 1, 4, 4, 1, 64 * GIB);
        (void) node_bridge(t, "pci0000:3a/0000:3a:00.0", 1, bridge);
        (void) add_pf(t);
        node_ready(t, CONFIG);
        return t;
}

/* Without a refusal, the plan of a VF has this text among its assumptions. */
static void assert_assumed(TestNode *t, const char *text) {
        const PciDevice *vf = node_find(t, VF);
        _cleanup_free_ char *said = inventory_describe_expected(t->inventory, vf);

        assert_non_null(said);
        assert_non_null(strstr(said, text));
}

TEST(test_isolated) {
        _cleanup_node_ TestNode *t = node_with_pf(1);
        const PciDevice *vf, *pf;

        assert_int_equal(policy_expect_vfs(t->config, t->inventory), 0);
        pf = node_find(t, NIC);
        assert_int_equal(pf->n_vfs, 4);
        assert_int_equal(t->inventory->n_devices, 6);
        vf = node_find(t, VF);
        assert_true(vf->expected && !pf->expected);
        assert_int_equal(vf->type, PCI_TYPE_VF);
        assert_int_equal(vf->vf_index, 0);
        assert_int_equal(vf->vendor, 0x15b3);
        assert_int_equal(vf->device, 0x101e);
        assert_int_equal(vf->class, 0x020000);
        assert_int_equal(vf->numa_node, 1);
        assert_int_equal(vf->bar_size[0], 2 << 20);
        assert_string_equal(vf->name, "Virtual NIC");
        assert_string_equal(vf->path, "pci0000:3a/0000:3a:00.0/" VF);
        assert_int_equal(vf->iommu_group, 3);
        assert_int_equal(node_find(t, "0000:3b:00.5")->iommu_group, 6);
        assert_assumed(t, "of its own");
        /* A second call adds nothing. */
        assert_int_equal(policy_expect_vfs(t->config, t->inventory), 0);
        assert_int_equal(t->inventory->n_devices, 6);
}

TEST(test_not_isolated) {
        _cleanup_node_ TestNode *t = node_with_pf(2);

        assert_int_equal(policy_expect_vfs(t->config, t->inventory), 0);
        assert_int_equal(node_find(t, VF)->iommu_group, 2);
        assert_assumed(t, "join");
}

TEST(test_addresses) {
        _cleanup_node_ TestNode *t = node_with_pf(1);
        PciDevice *pf = (PciDevice *) node_find(t, NIC);

        pf->vf_offset = 128;
        pf->vf_stride = 200;
        assert_int_equal(inventory_expect_vfs(t->inventory, pf->address, 3), 0);
        (void) node_find(t, "0000:3b:10.0");
        (void) node_find(t, "0000:3c:09.0");
        (void) node_find(t, "0000:3d:02.0");
}

TEST(test_impossible) {
        _cleanup_node_ TestNode *t = node_with_pf(1);
        PciDevice *pf = (PciDevice *) node_find(t, NIC);

        pf->vf_offset = 0;
        assert_int_equal(inventory_expect_vfs(t->inventory, pf->address, 4), -ENODATA);
        pf->vf_offset = 0xffff;
        assert_int_equal(inventory_expect_vfs(t->inventory, pf->address, 4), -ERANGE);
        pf->vf_offset = 2;
        pf->vf_stride = 0;
        assert_int_equal(inventory_expect_vfs(t->inventory, pf->address, 4), -ENODATA);
        assert_int_equal(t->inventory->n_devices, 2);
        assert_int_equal(inventory_expect_vfs(t->inventory, pf->address, 1), 0);
        assert_int_equal(t->inventory->n_devices, 3);
}

/* No VFs are expected on a PF without its driver, with too few VFs, or with existing VFs. A PF that the host needs gets
 * VFs. */
TEST(test_unwanted) {
        for (int i = 0; i < 5; i++) {
                _cleanup_node_ TestNode *t = node_with_pf(1);
                PciDevice *pf = (PciDevice *) node_find(t, NIC);

                if (i == 0)
                        assert_int_equal(string_copy(&pf->critical, "default route"), 0);
                else if (i == 1)
                        assert_int_equal(string_copy(&pf->driver, NULL), 0);
                else if (i == 2)
                        pf->total_vfs = 3;
                else if (i == 3)
                        pf->n_virtfns = 1;
                assert_int_equal(policy_expect_vfs(t->config, t->inventory), 0);
                assert_int_equal(t->inventory->n_devices, i == 0 || i == 4 ? 6 : 2);
        }
}
