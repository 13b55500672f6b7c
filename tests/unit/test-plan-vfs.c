/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Checks before a change of the number of VFs of a PF. */

#include "unit.h"

#include "nodefixture.h"
#include "plan/vfs.h"

#define PF    "0000:81:00.0"
#define VF1   "0000:81:00.1"
#define VF2   "0000:81:00.2"
#define OTHER "0000:82:00.0"

static PciDevice *device(TestNode *t, const char *address) {
        return &t->inventory->devices[inventory_device_index(t->inventory, node_find(t, address))];
}

/* A PF with two of at most eight VFs, and a PF whose VFs are in a pool that creates none. */
static TestNode *make_node(const char *more) {
        TestNode *t = node_new();
        _cleanup_free_ char *config = string_format("[Pool vf]\nMatch=type=vf pf=" PF "\nVirtualFunctions=2\n%s", more);

        node_numa(t, 0, 0, 8, 1, 64 * GIB);
        node_nic(t, "pci0000:80/0000:80:01.0/" PF, 0, 1)->total_vfs = 8;
        node_vf(t, "pci0000:80/0000:80:01.0/" VF1, PF, 0, 2);
        node_vf(t, "pci0000:80/0000:80:01.0/" VF2, PF, 0, 3);
        node_nic(t, "pci0000:80/0000:80:02.0/" OTHER, 0, 4)->total_vfs = 8;
        node_gpu(t, "pci0000:00/0000:00:01.0/0000:01:00.0", 0, 5);
        for (size_t i = 0; i < t->inventory->n_devices; i++)
                if (t->inventory->devices[i].total_vfs > 0)
                        t->inventory->devices[i].type = PCI_TYPE_PF;
        node_ready(t, config);
        device(t, PF)->n_virtfns = 2;
        device(t, VF1)->vf_index = 0;
        device(t, VF2)->vf_index = 1;
        return t;
}

static void assert_pf(const TestNode *t, const char *address, unsigned count, Verdict expected, const char *words) {
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(plan_check_pf(&t->context, node_find(t, address), count, &why), expected);
        if (words)
                assert_says(&why, words);
}

TEST(test_pf) {
        _cleanup_node_ TestNode *t = make_node("");

        assert_pf(t, PF, 8, VERDICT_NONE, NULL);
        assert_pf(t, PF, 9, VERDICT_NOT_SUPPORTED, "8");
        assert_pf(t, VF1, 1, VERDICT_NOT_SUPPORTED, VF1);
        assert_pf(t, "0000:01:00.0", 1, VERDICT_NOT_SUPPORTED, "0000:01:00.0");
}

TEST(test_blocked) {
        _cleanup_node_ TestNode *t = make_node("");

        assert_int_equal(device_status_set(&t->status, address_of(PF), DEVICE_STUCK, "It hangs."), 0);
        assert_pf(t, PF, 8, VERDICT_STUCK, "hangs");
}

TEST(test_pool) {
        _cleanup_node_ TestNode *t = make_node("");
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(plan_check_pf_pool(&t->context, node_find(t, PF), NULL), VERDICT_NONE);
        assert_int_equal(plan_check_pf_pool(&t->context, node_find(t, OTHER), &why), VERDICT_NOT_IN_POOL);
        assert_says(&why, OTHER);
}

TEST(test_other_program) {
        _cleanup_node_ TestNode *t =
                make_node("[Pool theirs]\nMatch=type=vf pf=" OTHER "\nVirtualFunctions=external\n");
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(plan_check_pf_pool(&t->context, node_find(t, OTHER), &why), VERDICT_EXCLUDED);
        assert_says(&why, "test.conf");
}

static void assert_kept(const TestNode *t, Verdict expected, const char *words) {
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(plan_check_vfs_idle(&t->context, node_find(t, PF), &why), expected);
        assert_says(&why, words);
}

TEST(test_idle) {
        _cleanup_node_ TestNode *t = make_node("");
        PciDevice *vf = device(t, VF2);
        _cleanup_refusal_ Refusal ignored = { 0 };

        assert_int_equal(plan_check_vfs_idle(&t->context, node_find(t, PF), NULL), VERDICT_NONE);
        assert_int_equal(string_copy(&vf->driver, "mlx5_core"), 0);
        assert_kept(t, VERDICT_BUSY, VF2);
        assert_int_equal(string_copy(&vf->driver, "vfio-pci"), 0);
        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "vf=1"), NULL), VERDICT_NONE);
        assert_kept(t, VERDICT_ALLOCATED, "vm");
        assert_int_equal(plan_check_pf_free(&t->context, node_find(t, PF), &ignored), VERDICT_NONE);
        node_release(t, "vm");
}

/* A VF in use keeps its identity. A created VF gets the same identity each time. */
TEST(test_attributes) {
        _cleanup_node_ TestNode *t = make_node("");
        PciDevice *vf = device(t, VF1);
        _cleanup_free_ VfAttributes *made = NULL, *again = NULL, *present = NULL;
        const PciDevice *pf = node_find(t, PF);

        assert_int_equal(plan_vf_attributes(&t->context, "node", pf, 4, &made), 0);
        assert_int_equal(plan_vf_attributes(&t->context, "node", pf, 4, &again), 0);
        for (unsigned i = 0; i < 4; i++) {
                assert_true(made[i].set != 0);
                assert_memory_equal(&made[i], &again[i], sizeof(made[i]));
                for (unsigned k = 0; k < i; k++)
                        assert_memory_not_equal(&made[i], &made[k], sizeof(made[i]));
        }
        assert_int_equal(string_copy(&vf->driver, "vfio-pci"), 0);
        assert_int_equal(plan_vf_attributes(&t->context, "node", pf, 2, &present), 0);
        assert_int_equal(present[0].set, 0);
        assert_memory_equal(&present[1], &made[1], sizeof(made[1]));
}
