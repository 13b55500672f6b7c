/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Which devices leave an allocation together, and when the rest of the allocation forbids that. */

#include "unit.h"

#include "nodefixture.h"

#define PF "0000:81:00.0"

/* Two GPUs, the first one with its audio function, and two VFs, the second one in a group with a NIC that has no pool
 * and no driver. */
static TestNode *make_node(void) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, 8, 1, 64 * GIB);
        node_gpu(t, "pci0000:00/0000:00:01.0/0000:01:00.0", 0, 1);
        node_device(t, "pci0000:00/0000:00:01.0/0000:01:00.1", 0x040300, 0, 1);
        node_gpu(t, "pci0000:00/0000:00:02.0/0000:02:00.0", 0, 2);
        node_nic(t, "pci0000:80/0000:80:01.0/" PF, 0, 3)->total_vfs = 2;
        node_vf(t, "pci0000:80/0000:80:01.0/0000:81:00.1", PF, 0, 4);
        node_vf(t, "pci0000:80/0000:80:01.0/0000:81:00.2", PF, 0, 5);
        assert_int_equal(string_copy(&node_nic(t, "pci0000:80/0000:80:02.0/0000:82:00.0", 0, 5)->driver, NULL), 0);
        node_ready(t, "[Pool gpu]\nMatch=class=0302\n[Pool vf]\nMatch=type=vf\n"
                      "[Service remote]\nKind=lupine\nEndpoint=a:1 slots=4\nVia=vf\n");
        return t;
}

static Allocation *make_allocation(TestNode *t, const char *pools, unsigned cpus) {
        _cleanup_refusal_ Refusal why = { 0 };

        if (node_allocate(t, "vm", ASK(.pools = pools, .cpus = cpus), &why) != VERDICT_NONE)
                fail_msg("%s", why.message);
        return ledger_find(t->ledger, "vm");
}

/* Detaches the slot in a copy, and compares the detached devices: "0000:01:00.0 0000:01:00.1". */
static void assert_leave(const TestNode *t, const Allocation *a, const char *slot, const char *expected) {
        _cleanup_(cleanup_allocation_free) Allocation *b = allocation_copy(a);
        _cleanup_free_ char *text = NULL;

        assert_int_equal(plan_detach(&t->context, b, slot, NULL), VERDICT_NONE);
        for (size_t i = 0; i < b->n_devices; i++)
                if (b->devices[i].phase == DEVICE_PHASE_DETACHING)
                        assert_int_equal(string_append(&text, " ", "%s", PCI_ADDRESS_STR(b->devices[i].address)), 0);
        assert_string_equal(text, expected);
}

static void assert_stays(const TestNode *t, const Allocation *a, const char *slot, Verdict expected,
                         const char *words) {
        _cleanup_(cleanup_allocation_free) Allocation *b = allocation_copy(a);
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(plan_detach(&t->context, b, slot, &why), expected);
        assert_says(&why, words);
}

TEST(test_with_companions) {
        _cleanup_node_ TestNode *t = make_node();
        const Allocation *a = make_allocation(t, "gpu=2", 2);

        assert_leave(t, a, "gpu0", "0000:01:00.0 0000:01:00.1");
        assert_leave(t, a, "gpu1", "0000:02:00.0");
}

TEST(test_with_held) {
        _cleanup_node_ TestNode *t = make_node();
        const Allocation *a = make_allocation(t, "vf=2", 2);

        assert_leave(t, a, "vf0", "0000:81:00.1");
        assert_leave(t, a, "vf1", "0000:81:00.2 0000:82:00.0");
}

TEST(test_no_such_slot) {
        _cleanup_node_ TestNode *t = make_node();
        const Allocation *a = make_allocation(t, "gpu=1 vf=1", 2);

        assert_stays(t, a, "gpu1", VERDICT_NO_SUCH_DEVICE, "gpu1");
        /* The audio function cannot be detached without its GPU. */
        assert_stays(t, a, "gpu0-1", VERDICT_NO_SUCH_DEVICE, "gpu0-1");
}

TEST(test_group) {
        _cleanup_node_ TestNode *t = make_node();
        Allocation *a = make_allocation(t, "vf=2", 2);

        for (size_t i = 0; i < a->n_devices; i++)
                a->devices[i].role = DEVICE_ROLE_ASSIGNED;
        assert_stays(t, a, "vf1", VERDICT_GROUP_NOT_VIABLE, "0000:82:00.0");
        assert_leave(t, a, "vf0", "0000:81:00.1");
}

TEST(test_last_device) {
        _cleanup_node_ TestNode *t = make_node();
        const Allocation *a = make_allocation(t, "gpu=1", 0);

        assert_stays(t, a, "gpu0", VERDICT_WRONG_STATE, "vm");
}

TEST(test_last_device_with_cpus) {
        _cleanup_node_ TestNode *t = make_node();
        const Allocation *a = make_allocation(t, "gpu=1", 2);

        assert_leave(t, a, "gpu0", "0000:01:00.0 0000:01:00.1");
}

TEST(test_via) {
        _cleanup_node_ TestNode *t = make_node();
        const Allocation *a = make_allocation(t, "gpu=1 vf=1 remote=2", 2);

        assert_stays(t, a, "vf0", VERDICT_WRONG_STATE, "remote");
        assert_leave(t, a, "gpu0", "0000:01:00.0 0000:01:00.1");
        node_release(t, "vm");
        a = make_allocation(t, "vf=2 remote=2", 2);
        assert_leave(t, a, "vf0", "0000:81:00.1");
}

/* An unfinished attach or detach is detached as a whole. */
TEST(test_unfinished) {
        _cleanup_node_ TestNode *t = make_node();
        Allocation *a = make_allocation(t, "gpu=2 vf=2", 2);

        for (size_t i = 0; i < a->n_devices; i++)
                if (streq_ptr(a->devices[i].pool, "vf"))
                        a->devices[i].phase = DEVICE_PHASE_ATTACHING;
        assert_leave(t, a, "vf1", "0000:81:00.1 0000:81:00.2");
        assert_stays(t, a, "gpu0", VERDICT_WRONG_STATE, "vm");
}
