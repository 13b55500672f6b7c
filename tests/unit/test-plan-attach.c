/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Requests that an attach refuses. */

#include "unit.h"

#include "nodefixture.h"

/* Two H100 and two NICs. */
static TestNode *make_node(const char *config) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, 8, 1, 64 * GIB);
        node_gpu(t, "pci0000:00/0000:00:01.0/0000:01:00.0", 0, 1)->device = 0x2330;
        node_gpu(t, "pci0000:00/0000:00:02.0/0000:02:00.0", 0, 2)->device = 0x2330;
        node_nic(t, "pci0000:80/0000:80:01.0/0000:81:00.0", 0, 3);
        node_nic(t, "pci0000:80/0000:80:02.0/0000:82:00.0", 0, 4);
        node_ready(t, config);
        return t;
}

static void assert_attach(const TestNode *t, const char *pools, Verdict expected, const char *words) {
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_request_ Request r = { 0 };
        _cleanup_refusal_ Refusal why = { 0 };

        ask_request(ASK(.pools = pools), &r);
        assert_int_equal(plan_attach(&t->context, ledger_find(t->ledger, "vm"), &r, &plan, &why), expected);
        if (expected != VERDICT_NONE)
                assert_says(&why, words);
}

/* A guest's memory keeps its page size. */
TEST(test_page_size) {
        _cleanup_node_ TestNode *t = make_node("[Pool gpu]\nMatch=class=0302\n[Pool nic]\nMatch=class=0200\n");
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_request_ Request r = { 0 };
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "gpu=1", .cpus = 2), NULL), VERDICT_NONE);
        ask_request(ASK(.pools = "nic=1"), &r);
        r.page_size = GIB;
        assert_int_equal(plan_attach(&t->context, ledger_find(t->ledger, "vm"), &r, &plan, &why),
                         VERDICT_INVALID_REQUEST);
        assert_says(&why, "page-size");
}

/* A guest that is not confidential keeps its GPU, and gets no other one of a pool for confidential guests. */
TEST(test_confidential_mode) {
        _cleanup_node_ TestNode *t = make_node("[Pool gpu]\nMatch=class=0302\n[Pool nic]\nMatch=class=0200\n");
        Pool *gpu = &t->config->pools[0];

        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "gpu=1 nic=1", .cpus = 2), NULL), VERDICT_NONE);
        assert_attach(t, "gpu=1", VERDICT_NONE, NULL);
        gpu->confidential_mode = CONFIDENTIAL_MODE_ON;
        assert_attach(t, "gpu=1", VERDICT_NOT_SUPPORTED, "confidential guest");
        assert_attach(t, "nic=1", VERDICT_NONE, NULL);
}

/* With devices alone, the program that makes the guest is responsible. */
TEST(test_confidential_mode_of_devices_alone) {
        _cleanup_node_ TestNode *t =
                make_node("[Pool gpu]\nMatch=class=0302\nConfidentialMode=on\n[Pool nic]\nMatch=class=0200\n");

        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "nic=1"), NULL), VERDICT_NONE);
        assert_attach(t, "gpu=1", VERDICT_NONE, NULL);
}
