/* SPDX-License-Identifier: GPL-2.0-or-later */

/* IOMMU groups that are derived from ACS when the kernel has none. */

#include "unit.h"

#include "nodefixture.h"

#define PORT  "pci0000:00/0000:00:01.0"
#define UP    PORT "/0000:01:00.0"
#define OTHER "pci0000:00/0000:00:02.0"

typedef struct Function {
        const char *path;
        PciAcs acs;
} Function;

static TestNode *node_of(const Function *functions, size_t n) {
        TestNode *t = node_new();

        for (size_t i = 0; i < n; i++) {
                uint32_t class = i + 1 < n && strstr(functions[i + 1].path, functions[i].path) ? 0x060400 : 0x030200;

                node_device(t, functions[i].path, class, 0, -1)->acs = functions[i].acs;
        }
        assert_int_equal(inventory_finish(t->inventory), 0);
        assert_int_equal(inventory_derive_groups(t->inventory), 0);
        return t;
}
#define NODE(...) node_of((Function[]) { __VA_ARGS__ }, ELEMENTSOF(((Function[]) { __VA_ARGS__ })))

static int group_of(const TestNode *t, const char *address) {
        const PciDevice *dev = inventory_find(t->inventory, address_of(address));

        assert_non_null(dev);
        return dev->iommu_group;
}

static void assert_alone(const TestNode *t, const char *address) {
        const IommuGroup *group = inventory_find_group(t->inventory, group_of(t, address));

        assert_non_null(group);
        assert_int_equal(group->n_members, 1);
}

static void assert_together(const TestNode *t, const char *a, const char *b) {
        assert_true(group_of(t, a) >= 0);
        assert_int_equal(group_of(t, a), group_of(t, b));
}

TEST(test_isolated) {
        _cleanup_node_ TestNode *t =
                NODE({ PORT, PCI_ACS_ISOLATED }, { PORT "/0000:01:00.0", PCI_ACS_CLEAN }, { OTHER, PCI_ACS_ISOLATED },
                     { OTHER "/0000:02:00.0", PCI_ACS_CLEAN }, { "pci0000:00/0000:00:05.0", PCI_ACS_CLEAN });

        assert_alone(t, "0000:01:00.0");
        assert_alone(t, "0000:02:00.0");
        assert_alone(t, "0000:00:05.0");
        assert_alone(t, "0000:00:01.0");
        assert_true(t->inventory->iommu);
}

/* A VF and its PF, which has two ports. */
TEST(test_virtual_functions) {
        _cleanup_node_ TestNode *t =
                NODE({ PORT, PCI_ACS_ISOLATED }, { PORT "/0000:01:00.0", PCI_ACS_OPEN },
                     { PORT "/0000:01:00.1", PCI_ACS_OPEN }, { PORT "/0000:01:00.2", PCI_ACS_CLEAN },
                     { PORT "/0000:01:02.1", PCI_ACS_CLEAN });

        assert_together(t, "0000:01:00.0", "0000:01:00.1");
        assert_alone(t, "0000:01:00.2");
        assert_alone(t, "0000:01:02.1");
}

TEST(test_multifunction) {
        _cleanup_node_ TestNode *isolated = NODE({ PORT, PCI_ACS_ISOLATED }, { PORT "/0000:01:00.0", PCI_ACS_ISOLATED },
                                                 { PORT "/0000:01:00.1", PCI_ACS_ISOLATED });
        _cleanup_node_ TestNode *unknown = NODE({ PORT, PCI_ACS_ISOLATED }, { PORT "/0000:01:00.0", PCI_ACS_UNKNOWN },
                                                { PORT "/0000:01:00.1", PCI_ACS_UNKNOWN });

        assert_alone(isolated, "0000:01:00.0");
        assert_alone(isolated, "0000:01:00.1");
        assert_together(unknown, "0000:01:00.0", "0000:01:00.1");
}

/* A port without isolation shares its group with everything below it, even with ports that isolate. */
TEST(test_open_port) {
        _cleanup_node_ TestNode *t =
                NODE({ PORT, PCI_ACS_OPEN }, { UP, PCI_ACS_CLEAN }, { UP "/0000:02:00.0", PCI_ACS_ISOLATED },
                     { UP "/0000:02:00.0/0000:03:00.0", PCI_ACS_CLEAN }, { UP "/0000:02:01.0", PCI_ACS_ISOLATED },
                     { UP "/0000:02:01.0/0000:04:00.0", PCI_ACS_CLEAN }, { OTHER, PCI_ACS_UNKNOWN },
                     { OTHER "/0000:05:00.0", PCI_ACS_CLEAN });

        assert_together(t, "0000:03:00.0", "0000:04:00.0");
        assert_together(t, "0000:03:00.0", "0000:00:01.0");
        assert_together(t, "0000:05:00.0", "0000:00:02.0");
        assert_int_not_equal(group_of(t, "0000:03:00.0"), group_of(t, "0000:05:00.0"));
}

/* Below a switch with a port that does not isolate, devices behind other ports are reachable. */
TEST(test_open_switch) {
        _cleanup_node_ TestNode *t =
                NODE({ PORT, PCI_ACS_ISOLATED }, { UP, PCI_ACS_CLEAN }, { UP "/0000:02:00.0", PCI_ACS_ISOLATED },
                     { UP "/0000:02:00.0/0000:03:00.0", PCI_ACS_CLEAN }, { UP "/0000:02:01.0", PCI_ACS_OPEN },
                     { UP "/0000:02:01.0/0000:04:00.0", PCI_ACS_CLEAN });

        assert_together(t, "0000:03:00.0", "0000:04:00.0");
        assert_together(t, "0000:03:00.0", "0000:01:00.0");
        assert_alone(t, "0000:00:01.0");
}

TEST(test_isolating_switch) {
        _cleanup_node_ TestNode *t =
                NODE({ PORT, PCI_ACS_ISOLATED }, { UP, PCI_ACS_CLEAN }, { UP "/0000:02:00.0", PCI_ACS_ISOLATED },
                     { UP "/0000:02:00.0/0000:03:00.0", PCI_ACS_CLEAN }, { UP "/0000:02:01.0", PCI_ACS_ISOLATED },
                     { UP "/0000:02:01.0/0000:04:00.0", PCI_ACS_CLEAN });

        assert_alone(t, "0000:03:00.0");
        assert_alone(t, "0000:04:00.0");
}

/* Two root ports of one slot without isolation: the kernel has one group for both and everything below. */
TEST(test_ports_of_a_slot) {
        _cleanup_node_ TestNode *t = NODE(
                { "pci0000:00/0000:00:1c.0", PCI_ACS_OPEN }, { "pci0000:00/0000:00:1c.0/0000:01:00.0", PCI_ACS_CLEAN },
                { "pci0000:00/0000:00:1c.4", PCI_ACS_OPEN }, { "pci0000:00/0000:00:1c.4/0000:02:00.0", PCI_ACS_CLEAN },
                { "pci0000:00/0000:00:1d.0", PCI_ACS_OPEN }, { "pci0000:00/0000:00:1d.0/0000:03:00.0", PCI_ACS_CLEAN });

        assert_together(t, "0000:01:00.0", "0000:02:00.0");
        assert_int_not_equal(group_of(t, "0000:01:00.0"), group_of(t, "0000:03:00.0"));
}

/* The number does not change when another device appears. */
TEST(test_stable) {
        _cleanup_node_ TestNode *t = NODE({ PORT, PCI_ACS_ISOLATED }, { PORT "/0000:01:00.0", PCI_ACS_CLEAN });
        int group = group_of(t, "0000:01:00.0");

        node_device(t, "pci0000:00/0000:00:00.0", 0x060000, 0, -1)->acs = PCI_ACS_CLEAN;
        assert_int_equal(inventory_finish(t->inventory), 0);
        assert_int_equal(inventory_derive_groups(t->inventory), 0);
        assert_int_equal(group_of(t, "0000:01:00.0"), group);
}

/* A device with an unknown place, and one whose domain QEMU and Xen cannot address. */
TEST(test_unknown) {
        _cleanup_node_ TestNode *t = NODE({ "pci10000:00/10000:00:01.0", PCI_ACS_CLEAN });
        PciDevice *lost = node_device(t, "pci0000:00/0000:00:03.0", 0x030200, 0, -1);

        lost->acs = PCI_ACS_CLEAN;
        lost->path[0] = '\0';
        assert_int_equal(inventory_finish(t->inventory), 0);
        assert_int_equal(inventory_derive_groups(t->inventory), 0);
        assert_int_equal(group_of(t, "0000:00:03.0"), -1);
        assert_int_equal(group_of(t, "10000:00:01.0"), -1);
}

/* The slots for mediated devices of a GPU have no group. */
TEST(test_slots) {
        _cleanup_node_ TestNode *t = NODE({ PORT, PCI_ACS_ISOLATED }, { PORT "/0000:01:00.0", PCI_ACS_CLEAN });

        assert_int_equal(string_copy(&t->inventory->devices[1].mdev_types, ""), 0);
        assert_int_equal(inventory_finish(t->inventory), 0);
        assert_int_equal(inventory_derive_groups(t->inventory), 0);
        assert_int_equal(group_of(t, "0000:01:00.0.1"), -1);
        assert_alone(t, "0000:01:00.0");
}
