/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The number of fitting requests equals the number of possible allocations. The query changes nothing. */

#include <stdio.h>

#include "unit.h"

#include "nodefixture.h"

/* Two NUMA nodes with four GPUs each, and a PF with three VFs on the first one. */
static TestNode *eight_gpus(void) {
        TestNode *t = node_new();

        for (int n = 0; n < 2; n++) {
                node_numa(t, n, (unsigned) n * 16, 16, 2, 16 * GIB);
                for (int i = 0; i < 4; i++) {
                        char path[32];

                        (void) snprintf(path, sizeof(path), "pci0000:%02x/0000:%02x:%02x.0", n * 0x80, n * 0x80, i + 1);
                        node_gpu(t, path, n, n * 10 + i);
                }
        }
        node_nic(t, "pci0000:00/0000:00:08.0", 0, 30)->total_vfs = 3;
        for (int i = 1; i < 4; i++) {
                char path[32];

                (void) snprintf(path, sizeof(path), "pci0000:00/0000:00:08.%d", i);
                node_vf(t, path, "0000:00:08.0", 0, 30 + i);
        }
        node_ready(t, "[Pool gpu]\nMatch=class=03\n[Pool vf]\nMatch=type=vf\n");
        return t;
}

static Verdict repeat(const TestNode *t, const Ask *ask, Repeat *ret, Refusal *why) {
        _cleanup_request_ Request r;

        ask_request(ask, &r);
        return plan_repeat(&t->context, &r, ret, why);
}

static void check_repeat(TestNode *t, const Ask *ask, size_t expected) {
        size_t allocations = t->ledger->n_allocations, claims = t->ledger->n_claims;
        _cleanup_refusal_ Refusal why = { 0 };
        _cleanup_repeat_ Repeat fits = { 0 };
        char name[32];

        assert_int_equal(repeat(t, ask, &fits, &why), VERDICT_NONE);
        assert_int_equal(fits.n, expected);
        assert_int_equal(t->ledger->n_allocations, allocations);
        assert_int_equal(t->ledger->n_claims, claims);
        assert_true(ledger_verify(t->ledger, t->inventory, t->config));
        for (size_t i = 0; i < fits.n; i++) {
                _cleanup_free_ char *text = allocation_text(fits.fits[i].allocation);
                const Allocation *a;

                (void) snprintf(name, sizeof(name), "vm%zu", i);
                assert_int_equal(node_allocate(t, name, ask, NULL), VERDICT_NONE);
                a = ledger_find(t->ledger, name);
                assert_devices(a, text);
                assert_true(cpuset_equal(&a->cpus, &fits.fits[i].allocation->cpus));
        }
        assert_int_equal(node_allocate(t, "one-more", ask, &why), fits.refusal.verdict);
        for (size_t i = 0; i < fits.n; i++) {
                (void) snprintf(name, sizeof(name), "vm%zu", i);
                node_release(t, name);
        }
}

TEST(test_repeat) {
        _cleanup_node_ TestNode *t = eight_gpus();

        check_repeat(t, ASK("gpu=1", .cpus = 2), 8);
        check_repeat(t, ASK("gpu=3", .cpus = 2), 2);
        check_repeat(t, ASK("gpu=1 vf=1", .cpus = 2), 3);
        check_repeat(t, ASK("gpu=1", .cpus = 8), 4);                    /* CPUs */
        check_repeat(t, ASK("gpu=1", .cpus = 2, .memory = 6 * GIB), 5); /* memory: two on each node, one over both */
        check_repeat(t, ASK("gpu=9", .cpus = 2), 0);
        check_repeat(t, ASK(.cpus = 4), 8);
        check_repeat(t, ASK(.cpus = 64), 0);
        check_repeat(t, ASK(.cpus = 2, .memory = 64 * GIB), 0);
        check_repeat(t, ASK("gpu=5", .cpus = 2, .cells = 1, .numa = NUMA_POLICY_REQUIRED), 0);
        check_repeat(t, ASK("gpu=2", .cpus = 2, .proximity = "gpu:gpu=switch"), 0);
}

static void quarantine_gpu(TestNode *t) {
        const Allocation *a;
        Allocation *rest;

        assert_int_equal(node_allocate(t, "failed", ASK("gpu=1", .cpus = 2), NULL), VERDICT_NONE);
        a = ledger_find(t->ledger, "failed");
        rest = allocation_reduce(a, &a->devices[0], "Its reset failed.");
        assert_non_null(rest);
        node_release(t, "failed");
        assert_int_equal(ledger_quarantine(t->ledger, rest), 0);
}

TEST(test_repeat_beside_others) {
        _cleanup_node_ TestNode *t = eight_gpus();

        assert_int_equal(node_allocate(t, "other", ASK("gpu=3 vf=1", .cpus = 2), NULL), VERDICT_NONE);
        assert_int_equal(device_status_set(&t->status, address_of("0000:80:01.0"), DEVICE_BUSY, "Somebody uses it."),
                         0);
        check_repeat(t, ASK("gpu=1", .cpus = 2), 4);
        check_repeat(t, ASK("vf=1", .cpus = 2), 2);
        assert_int_equal(device_status_set(&t->status, address_of("0000:80:02.0"), DEVICE_UNHEALTHY, "It is dead."), 0);
        check_repeat(t, ASK("gpu=1", .cpus = 2), 3);
        quarantine_gpu(t);
        check_repeat(t, ASK("gpu=1", .cpus = 2), 2);
}

/* Shared memory counts once, and has one owner. */
TEST(test_shared_memory) {
        for (int there = 0; there < 2; there++) {
                _cleanup_node_ TestNode *t = eight_gpus();
                _cleanup_refusal_ Refusal why = { 0 };
                _cleanup_repeat_ Repeat fits = { 0 };
                _cleanup_request_ Request r;

                ask_request(ASK(.cpus = 2, .memory = 7 * GIB, .cells = 1), &r);
                assert_int_equal(request_add_region(&r, "mpi", GIB, 0, NULL), VERDICT_NONE);
                if (there) {
                        _cleanup_(cleanup_plan_free) Plan *plan = NULL;

                        assert_int_equal(plan_make(&t->context, &r, &plan, NULL), VERDICT_NONE);
                        assert_int_equal(string_copy(&plan->allocation->name, "first"), 0);
                        plan->allocation->owner = 1000;
                        assert_int_equal(ledger_claim(t->ledger, t->inventory, t->config, plan->allocation, NULL),
                                         VERDICT_NONE);
                        plan->allocation = NULL;
                }
                assert_int_equal(plan_repeat(&t->context, &r, &fits, &why), VERDICT_NONE);
                assert_int_equal(fits.n, there ? 3 : 4);
                if (there)
                        assert_ptr_equal(t->ledger->allocations[0]->shared[0], ledger_find_region(t->ledger, "mpi"));
                assert_int_equal(t->ledger->n_regions, there);
                assert_true(ledger_verify(t->ledger, t->inventory, t->config));
        }
}

TEST(test_what_is_wrong_with_the_request) {
        _cleanup_node_ TestNode *t = eight_gpus();
        _cleanup_refusal_ Refusal pool = { 0 }, empty = { 0 };
        Repeat fits;

        assert_int_equal(repeat(t, ASK("fpga=1"), &fits, &pool), VERDICT_NO_SUCH_POOL);
        assert_says(&pool, "'fpga'");
        assert_int_equal(repeat(t, ASK(""), &fits, &empty), VERDICT_INVALID_REQUEST);
        repeat_done(&fits);
}

/* The query has a limit. */
TEST(test_bound) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_repeat_ Repeat fits = { 0 };

        node_numa(t, 0, 0, 1100, 1, 4096 * GIB);
        node_ready(t, "");
        assert_int_equal(repeat(t, ASK(.cpus = 1), &fits, NULL), VERDICT_NONE);
        assert_int_equal(fits.n, REPEAT_MAX);
        assert_int_equal(fits.refusal.verdict, VERDICT_LIMIT);
}
