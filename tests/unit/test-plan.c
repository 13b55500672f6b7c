/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The planner by scenarios, such as Nova's NUMA table. Refusals say what is short and by how much. */

#include <stdio.h>

#include "unit.h"

#include "nodefixture.h"
#include "sentences.h"

#define GPU_POOL   "[Pool gpu]\nMatch=class=0302\n"
#define BOTH_POOLS GPU_POOL "[Pool nic]\nMatch=class=02\n"

/* Nova's host: CPUs 0-3 are on node 0, CPUs 4-7 on node 1, and one device is on node numa. */
static TestNode *nova_host(int numa, const char *config) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, 4, 1, 8 * GIB);
        node_numa(t, 1, 4, 4, 1, 8 * GIB);
        node_gpu(t, "pci0000:80/0000:81:00.0", numa, 1);
        node_ready(t, config);
        return t;
}

TEST(test_A1_to_A9) {
        static const struct {
                NumaPolicy policy;
                int numa;
                Verdict expected;
        } table[] = {
                { NUMA_POLICY_PREFERRED, -1, VERDICT_NONE }, { NUMA_POLICY_PREFERRED, 0, VERDICT_NONE },
                { NUMA_POLICY_PREFERRED, 1, VERDICT_NONE },  { NUMA_POLICY_LEGACY, -1, VERDICT_NONE },
                { NUMA_POLICY_LEGACY, 0, VERDICT_NUMA },     { NUMA_POLICY_LEGACY, 1, VERDICT_NONE },
                { NUMA_POLICY_REQUIRED, -1, VERDICT_NUMA },  { NUMA_POLICY_REQUIRED, 0, VERDICT_NUMA },
                { NUMA_POLICY_REQUIRED, 1, VERDICT_NONE },   { NUMA_POLICY_SOCKET, -1, VERDICT_NUMA },
                { NUMA_POLICY_SOCKET, 0, VERDICT_NUMA },     { NUMA_POLICY_SOCKET, 1, VERDICT_NONE },
                { NUMA_POLICY_SINGLE, -1, VERDICT_NUMA },    { NUMA_POLICY_SINGLE, 0, VERDICT_NUMA },
                { NUMA_POLICY_SINGLE, 1, VERDICT_NONE },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_node_ TestNode *t = nova_host(table[i].numa, "HousekeepingCpus=0-3\n" GPU_POOL);
                _cleanup_refusal_ Refusal why = { 0 };
                Verdict v = node_allocate(t, "vm", ASK(.pools = "gpu=1", .cpus = 2, .numa = table[i].policy), &why);

                if (v != table[i].expected)
                        fail_msg("A%zu: %s", i + 1, verdict_to_string(v));
                assert_int_equal(node_available(t, "gpu"), v == VERDICT_NONE ? 0 : 1);
                if (v == VERDICT_NONE)
                        assert_cpus(&ledger_find(t->ledger, "vm")->cpus, "4-5");
                else {
                        assert_says(&why, numa_policy_to_string(table[i].policy));
                        assert_says(&why, "0000:81:00.0");
                        record(numa_policy_to_string(table[i].policy), why.message);
                }
        }
}

/* Two nodes of four CPUs, each with a GPU. */
static TestNode *two_gpus(const char *config) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, 4, 1, 8 * GIB);
        node_numa(t, 1, 4, 4, 1, 8 * GIB);
        node_gpu(t, "pci0000:00/0000:01:00.0", 0, 1);
        node_gpu(t, "pci0000:80/0000:81:00.0", 1, 2);
        node_ready(t, config);
        return t;
}

/* 'required' permits a device on each of the guest's two nodes. 'single' permits one node, whatever else is short. */
TEST(test_single_is_one_node) {
        static const Ask asks[] = {
                { .pools = "gpu=2", .cpus = 2, .memory = GIB },
                { .pools = "gpu=2" },
                { .pools = "gpu=1", .cpus = 6, .memory = GIB },
                { .pools = "gpu=1", .cpus = 2, .memory = 12 * GIB },
        };

        for (size_t i = 0; i < ELEMENTSOF(asks); i++) {
                _cleanup_node_ TestNode *t = two_gpus(GPU_POOL);
                _cleanup_refusal_ Refusal why = { 0 };
                _cleanup_(cleanup_plan_free) Plan *plan = NULL;
                Ask ask = asks[i];

                ask.numa = NUMA_POLICY_REQUIRED;
                assert_int_equal(node_plan(t, &ask, &plan, NULL), VERDICT_NONE);
                ask.numa = NUMA_POLICY_SINGLE;
                assert_int_equal(node_plan(t, &ask, NULL, &why), VERDICT_NUMA);
                assert_says(&why, "'single'");
                assert_non_null(why.nearest);
                assert_non_null(strstr(why.nearest, "'required'"));
                record(ask.pools, why.message);
        }
}

TEST(test_single_fits_on_one_node) {
        _cleanup_node_ TestNode *t = two_gpus(GPU_POOL);
        const Ask *ask = ASK(.pools = "gpu=1", .cpus = 4, .memory = 8 * GIB, .numa = NUMA_POLICY_SINGLE);

        assert_int_equal(node_allocate(t, "a", ask, NULL), VERDICT_NONE);
        assert_int_equal(node_allocate(t, "b", ask, NULL), VERDICT_NONE);
        assert_int_equal(ledger_find(t->ledger, "a")->n_cells, 1);
        assert_int_equal(ledger_find(t->ledger, "b")->n_cells, 1);
}

TEST(test_single_of_a_pool) {
        _cleanup_node_ TestNode *t = two_gpus(GPU_POOL "NumaPolicy=single\n");
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(node_plan(t, ASK(.pools = "gpu=2", .cpus = 2, .numa = NUMA_POLICY_PREFERRED), NULL, &why),
                         VERDICT_NUMA);
        assert_says(&why, "'gpu'");
        record("single of a pool", why.message);
        assert_int_equal(node_plan(t, ASK(.pools = "gpu=1", .cpus = 2, .numa = NUMA_POLICY_PREFERRED), &plan, NULL),
                         VERDICT_NONE);
}

TEST(test_single_with_several_cells) {
        _cleanup_node_ TestNode *t = two_gpus(GPU_POOL);
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(node_plan(t, ASK(.cpus = 2, .cells = 2, .numa = NUMA_POLICY_SINGLE), NULL, &why),
                         VERDICT_INVALID_REQUEST);
        assert_says(&why, "'single'");
        record("single with two cells", why.message);
}

/* The sentence of A8 also lists the free CPUs, without which its remedy would not help. */
TEST(test_A8_says_where_the_cpus_are) {
        _cleanup_node_ TestNode *t = nova_host(0, "HousekeepingCpus=0-3\n" GPU_POOL);
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(node_plan(t, ASK(.pools = "gpu=1", .cpus = 2, .numa = NUMA_POLICY_REQUIRED), NULL, &why),
                         VERDICT_NUMA);
        assert_says(&why, "node 1");
        record("A8", why.message);
}

/* Other nodes have the memory that the node of the device lacks. */
TEST(test_required_says_that_memory_is_short) {
        _cleanup_node_ TestNode *t = nova_host(1, GPU_POOL);
        _cleanup_refusal_ Refusal why = { 0 };
        const Ask *ask = ASK(.pools = "gpu=1", .cpus = 2, .memory = GIB, .numa = NUMA_POLICY_REQUIRED);

        t->inventory->nodes[1].memory = GIB / 4;
        assert_int_equal(node_plan(t, ask, NULL, &why), VERDICT_NUMA);
        assert_says(&why, "node 1");
        record("memory is short", why.message);
}

TEST(test_socket_reaches_the_other_node_of_the_socket) {
        _cleanup_node_ TestNode *t = nova_host(0, "HousekeepingCpus=0-3\n" GPU_POOL);

        t->inventory->nodes[1].package = 0;
        assert_int_equal(node_plan(t, ASK(.pools = "gpu=1", .cpus = 2, .numa = NUMA_POLICY_REQUIRED), NULL, NULL),
                         VERDICT_NUMA);
        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "gpu=1", .cpus = 2, .numa = NUMA_POLICY_SOCKET), NULL),
                         VERDICT_NONE);
}

static void fill_and_free_node_1(TestNode *t) {
        assert_int_equal(node_allocate(t, "vm1", ASK(.cpus = 4), NULL), VERDICT_NONE);
        assert_int_equal(ledger_find(t->ledger, "vm1")->cells[0].node, 1); /* away from the device */
        assert_int_equal(node_allocate(t, "vm2", ASK(.cpus = 4), NULL), VERDICT_NONE);
        assert_int_equal(ledger_find(t->ledger, "vm2")->cells[0].node, 0);
        node_release(t, "vm1");
}

TEST(test_A14_no_room_beside_the_device) {
        _cleanup_node_ TestNode *t = nova_host(0, GPU_POOL);

        fill_and_free_node_1(t);
        assert_int_equal(node_allocate(t, "vm3", ASK(.pools = "gpu=1", .cpus = 4, .numa = NUMA_POLICY_LEGACY), NULL),
                         VERDICT_NUMA);
        assert_int_equal(node_allocate(t, "vm3", ASK(.pools = "gpu=1", .cpus = 4, .numa = NUMA_POLICY_REQUIRED), NULL),
                         VERDICT_NUMA);
        assert_int_equal(node_available(t, "gpu"), 1);
}

TEST(test_A15_preferred_goes_across) {
        _cleanup_node_ TestNode *t = nova_host(0, GPU_POOL);

        fill_and_free_node_1(t);
        assert_int_equal(node_allocate(t, "vm3", ASK(.pools = "gpu=1", .cpus = 4, .numa = NUMA_POLICY_PREFERRED), NULL),
                         VERDICT_NONE);
        assert_int_equal(ledger_find(t->ledger, "vm3")->cells[0].node, 1);
        assert_int_equal(node_available(t, "gpu"), 0);
}

TEST(test_A16_the_other_colour_is_no_substitute) {
        _cleanup_node_ TestNode *t = node_new();

        node_numa(t, 0, 0, 4, 1, 8 * GIB);
        node_numa(t, 1, 4, 4, 1, 8 * GIB);
        node_gpu(t, "pci0000:80/0000:81:00.0", 0, 1);
        node_gpu(t, "pci0000:80/0000:81:01.0", 1, 2);
        node_ready(t, "HousekeepingCpus=0-3\n[Pool green]\nMatch=address=0000:81:00.0\n[Pool "
                      "red]\nMatch=address=0000:81:01.0\n");
        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "green=1", .cpus = 4, .numa = NUMA_POLICY_REQUIRED), NULL),
                         VERDICT_NUMA);
        assert_int_equal(node_available(t, "green"), 1);
        assert_int_equal(node_available(t, "red"), 1);
}

/* A policy of the pool and one of the request both apply. */
TEST(test_policy_of_a_pool) {
        static const struct {
                NumaPolicy pool, request;
                int numa;
                bool same_socket;
                Verdict expected;
        } table[] = {
                { NUMA_POLICY_PREFERRED, NUMA_POLICY_REQUIRED, -1, false, VERDICT_NUMA },
                { NUMA_POLICY_REQUIRED, NUMA_POLICY_PREFERRED, -1, false, VERDICT_NUMA },
                { NUMA_POLICY_LEGACY, NUMA_POLICY_PREFERRED, -1, false, VERDICT_NONE },
                { NUMA_POLICY_LEGACY, NUMA_POLICY_PREFERRED, 0, false, VERDICT_NUMA },
                { NUMA_POLICY_SOCKET, NUMA_POLICY_PREFERRED, 0, false, VERDICT_NUMA },
                { NUMA_POLICY_SOCKET, NUMA_POLICY_PREFERRED, 0, true, VERDICT_NONE },
                { NUMA_POLICY_SOCKET, NUMA_POLICY_LEGACY, 0, true, VERDICT_NUMA }, /* neither policy is stricter */
                { NUMA_POLICY_SOCKET, NUMA_POLICY_LEGACY, -1, true, VERDICT_NUMA },
                { NUMA_POLICY_SOCKET, NUMA_POLICY_LEGACY, 1, true, VERDICT_NONE },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *config = NULL;
                _cleanup_node_ TestNode *t = NULL;
                _cleanup_(cleanup_plan_free) Plan *plan = NULL;

                assert_int_equal(string_replace(&config, "HousekeepingCpus=0-3\n" GPU_POOL "NumaPolicy=%s\n",
                                                numa_policy_to_string(table[i].pool)),
                                 0);
                t = nova_host(table[i].numa, config);
                t->inventory->nodes[1].package = !table[i].same_socket;
                if (node_plan(t, ASK(.pools = "gpu=1", .cpus = 2, .numa = table[i].request), &plan, NULL) !=
                    table[i].expected)
                        fail_msg("row %zu", i);
        }
}

/* A distance that firmware does not report is not the smallest. */
TEST(test_untold_distance_is_the_largest) {
        for (unsigned far = 20; far <= 254; far += 117) {
                _cleanup_node_ TestNode *t = node_new();
                _cleanup_(cleanup_plan_free) Plan *plan = NULL;

                for (int i = 0; i < 3; i++)
                        node_numa(t, i, 4 * (unsigned) i, 4, 1, 8 * GIB);
                t->inventory->nodes[0].distance[1] = t->inventory->nodes[1].distance[0] = 0;
                t->inventory->nodes[1].distance[2] = t->inventory->nodes[2].distance[1] = (uint8_t) far;
                t->inventory->nodes[0].distance[2] = t->inventory->nodes[2].distance[0] = (uint8_t) far;
                node_ready(t, "");
                assert_int_equal(node_plan(t, ASK(.cpus = 2, .memory = 2 * GIB, .cells = 2), &plan, NULL),
                                 VERDICT_NONE);
                assert_int_equal(plan->allocation->cells[0].node, 0);
                assert_int_equal(plan->allocation->cells[1].node, 2);
        }
}

/* The policy applies to one pool only: the GPU must be beside the CPUs, the disk need not. */
TEST(test_policy_of_one_pool_of_two) {
        for (int strict = 0; strict < 2; strict++) {
                _cleanup_node_ TestNode *t = node_new();
                _cleanup_(cleanup_plan_free) Plan *plan = NULL;

                node_numa(t, 0, 0, 4, 1, 8 * GIB);
                node_numa(t, 1, 4, 4, 1, 8 * GIB);
                node_device(t, "pci0000:00/0000:00:02.0", 0x010802, 0, 1);
                node_gpu(t, "pci0000:80/0000:80:02.0", 1, 2);
                node_ready(t, strict ? GPU_POOL "NumaPolicy=required\n[Pool disk]\nMatch=class=01\n"
                                     : GPU_POOL "[Pool disk]\nMatch=class=01\n");
                assert_int_equal(
                        node_plan(t, ASK(.pools = "gpu=1 disk=1", .cpus = 2, .cells = 1, .numa = NUMA_POLICY_PREFERRED),
                                  &plan, NULL),
                        VERDICT_NONE);
                assert_int_equal(plan->allocation->cells[0].node, strict ? 1 : 0);
        }
}

/* Two PFs with VFs, one of which has a used VF. */
TEST(test_vfs_are_spread_or_packed) {
        for (int pack = 0; pack < 2; pack++) {
                _cleanup_node_ TestNode *t = node_new();
                _cleanup_(cleanup_plan_free) Plan *first = NULL, *second = NULL, *crowded = NULL;

                node_numa(t, 0, 0, 4, 1, 8 * GIB);
                for (int card = 0; card < 2; card++)
                        for (int i = 0; i < 4; i++) {
                                char path[32], pf[16];

                                (void) snprintf(path, sizeof(path), "pci0000:00/0000:%02x:00.%d", card + 1, i);
                                (void) snprintf(pf, sizeof(pf), "0000:%02x:00.0", card + 1);
                                if (i == 0)
                                        node_nic(t, path, 0, card * 4)->total_vfs = 3;
                                else
                                        node_vf(t, path, pf, 0, card * 4 + i);
                        }
                node_ready(t, pack ? "[Pool vf]\nMatch=type=vf\nVfPlacement=pack\n" : "[Pool vf]\nMatch=type=vf\n");
                assert_int_equal(node_allocate(t, "begun", ASK(.pools = "vf=1", .cpus = 1), NULL), VERDICT_NONE);
                assert_int_equal(node_plan(t, ASK(.pools = "vf=1", .cpus = 1), &first, NULL), VERDICT_NONE);
                assert_devices(first->allocation, pack ? "vf0=0000:01:00.2" : "vf0=0000:02:00.1");
                assert_int_equal(node_plan(t, ASK(.pools = "vf=2", .cpus = 1), &second, NULL), VERDICT_NONE);
                assert_devices(second->allocation,
                               pack ? "vf0=0000:01:00.2 vf1=0000:01:00.3" : "vf0=0000:01:00.2 vf1=0000:02:00.1");
                assert_int_equal(second->score.vf_left, 0);
                assert_int_equal(second->score.vf_load, pack ? 0 : 1);
                /* Files of the ledger may claim any number of VFs. */
                t->ledger->pf_uses[0].vfs = ~0U;
                assert_int_equal(node_plan(t, ASK(.pools = "vf=2", .cpus = 1), &crowded, NULL), VERDICT_NONE);
        }
}

/* Free VFs of other pools on the PF count too. */
TEST(test_packing_counts_all_vfs_of_a_pf) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;

        node_numa(t, 0, 0, 4, 1, 8 * GIB);
        node_bridge(t, "pci0000:00/0000:00:01.0", 0, 10);
        node_nic(t, "pci0000:00/0000:00:01.0/0000:01:00.0", 0, 1)->total_vfs = 8;
        node_vf(t, "pci0000:00/0000:00:01.0/0000:01:00.1", "0000:01:00.0", 0, 2);
        node_vf(t, "pci0000:00/0000:00:01.0/0000:01:00.2", "0000:01:00.0", 0, 3);
        node_nic(t, "pci0000:00/0000:00:01.0/0000:01:01.0", 0, 4)->total_vfs = 8;
        node_vf(t, "pci0000:00/0000:00:01.0/0000:01:01.1", "0000:01:01.0", 0, 5);
        node_ready(t, "[Pool odd]\nMatch=type=vf address=*.1\nVfPlacement=pack\n[Pool even]\nMatch=type=vf\n");
        assert_int_equal(node_plan(t, ASK(.pools = "odd=1", .cpus = 1), &plan, NULL), VERDICT_NONE);
        assert_devices(plan->allocation, "odd0=0000:01:01.1");
}

/* Two switches, each with two GPUs, a disk and a NIC; a third disk and a third GPU elsewhere on the node. */
static TestNode *three_kinds(void) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, 16, 1, 64 * GIB);
        for (int s = 0; s < 2; s++) {
                char port[48], path[96];
                int bus = 0x10 * s + 0x10;

                (void) snprintf(port, sizeof(port), "pci0000:00/0000:00:%02x.0", s + 1);
                node_bridge(t, port, 0, bus);
                for (int i = 0; i < 4; i++) {
                        (void) snprintf(path, sizeof(path), "%s/0000:%02x:%02x.0", port, bus, i);
                        node_device(t, path, i < 2 ? 0x030200 : i == 2 ? 0x010802 : 0x020000, 0, bus + i + 1);
                }
        }
        node_device(t, "pci0000:00/0000:00:08.0", 0x010802, 0, 8);
        node_gpu(t, "pci0000:00/0000:00:09.0", 0, 9);
        node_ready(t, BOTH_POOLS "[Pool disk]\nMatch=class=01\n");
        return t;
}

/* Limits between pairs of pools, and within one pool. */
TEST(test_limits_between_pools) {
        _cleanup_node_ TestNode *t = three_kinds();
        static const struct {
                const char *pools, *proximity;
                Verdict expected;
        } table[] = {
                { "gpu=2 disk=2", "gpu:disk=switch", VERDICT_NONE },
                { "gpu=3 disk=3", "gpu:disk=switch", VERDICT_PROXIMITY }, /* no disk is near the third GPU */
                { "gpu=3 disk=3", "gpu:disk=root-complex", VERDICT_NONE },
                { "gpu=4 disk=2", "disk:gpu=switch", VERDICT_NONE }, /* two GPUs for each disk */
                { "gpu=5 disk=2", "disk:gpu=switch", VERDICT_PROXIMITY },
                { "gpu=2 disk=2 nic=2", "gpu:disk=switch,gpu:nic=switch,disk:nic=switch", VERDICT_NONE },
                { "gpu=2", "gpu:gpu=switch", VERDICT_NONE },
                { "gpu=3", "gpu:gpu=switch", VERDICT_PROXIMITY },
                { "gpu=2 nic=2", "gpu:gpu=switch,gpu:nic=switch", VERDICT_PROXIMITY }, /* one or the other */
                { "gpu=2 nic=1 disk=1", "switch,gpu:gpu=switch,gpu:disk=switch", VERDICT_NONE },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(cleanup_plan_free) Plan *plan = NULL;
                Verdict v = node_plan(t, ASK(.pools = table[i].pools, .proximity = table[i].proximity), &plan, NULL);

                if (v != table[i].expected)
                        fail_msg("row %zu: %s", i, verdict_to_string(v));
        }
}

TEST(test_plan_tells_of_limits) {
        _cleanup_node_ TestNode *t = three_kinds();
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;

        assert_int_equal(node_plan(t, ASK(.pools = "gpu=3 disk=1", .proximity = "disk:gpu=root-complex,gpu:gpu=node"),
                                   &plan, NULL),
                         VERDICT_NONE);
        assert_int_equal(plan->n_limits, 2);
        assert_string_equal(plan->limits[0].pools[0], "disk");
        assert_int_equal(plan->limits[0].n_pairs, 3);
        for (size_t i = 0; i < 3; i++) {
                const PciDevice *disk = inventory_find(t->inventory, plan->limits[0].pairs[i].devices[0]);
                const PciDevice *gpu = inventory_find(t->inventory, plan->limits[0].pairs[i].devices[1]);

                assert_true(disk->class == 0x010802 && gpu->class == 0x030200);
                assert_true(i == 0 || plan->limits[0].pairs[i].distance >= plan->limits[0].pairs[i - 1].distance);
        }
        assert_int_equal(plan->limits[0].worst, DISTANCE_PHB);
        assert_int_equal(plan->limits[1].n_pairs, 0);
        assert_int_equal(plan->limits[1].worst, DISTANCE_PHB);
}

/* The refusal names the limit in question. */
TEST(test_refusal_names_the_limit) {
        _cleanup_node_ TestNode *t = three_kinds();
        static const struct {
                const char *pools, *proximity;
        } table[] = {
                { "gpu=3 disk=3", "disk:gpu=switch" },
                { "gpu=5 disk=2", "disk:gpu=switch" },
                { "gpu=3 nic=1", "node,gpu:gpu=switch" },
                { "gpu=5 nic=2", "switch,gpu:gpu=node" },
                { "gpu=3 nic=1 disk=1", "switch,gpu:gpu=switch" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_refusal_ Refusal why = { 0 };

                assert_int_equal(
                        node_plan(t, ASK(.pools = table[i].pools, .proximity = table[i].proximity), NULL, &why),
                        VERDICT_PROXIMITY);
                assert_says(&why, "switch");
                record(table[i].pools, why.message);
        }
}

/* The policy of the pool, of the request, or both. */
TEST(test_refusal_names_the_policy) {
        static const struct {
                const char *config;
                NumaPolicy request;
                const char *policy;
        } table[] = {
                { "", NUMA_POLICY_REQUIRED, "'required'" },
                { "NumaPolicy=required\n", NUMA_POLICY_PREFERRED, "'required'" },
                { "NumaPolicy=legacy\n", NUMA_POLICY_REQUIRED, "'legacy'" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_free_ char *config = NULL;
                _cleanup_node_ TestNode *t = NULL;
                _cleanup_refusal_ Refusal why = { 0 };

                assert_int_equal(string_replace(&config, "HousekeepingCpus=0-3\n" GPU_POOL "%s", table[i].config), 0);
                t = nova_host(0, config);
                assert_int_equal(node_plan(t, ASK(.pools = "gpu=1", .cpus = 2, .numa = table[i].request), NULL, &why),
                                 VERDICT_NUMA);
                assert_says(&why, table[i].policy);
                assert_int_equal(strstr(why.message, "'gpu'") != NULL, i > 0);
                record(config, why.message);
                assert_int_equal(why.nearest == NULL, i > 0);
        }
}

TEST(test_B4_three_devices_two_guests) {
        _cleanup_node_ TestNode *t = node_new();

        node_numa(t, 0, 0, 8, 1, 8 * GIB);
        for (int i = 0; i < 3; i++) {
                char path[32];

                (void) snprintf(path, sizeof(path), "pci0000:00/0000:00:0%d.0", i + 1);
                node_gpu(t, path, 0, i);
        }
        node_ready(t, GPU_POOL);
        assert_int_equal(node_allocate(t, "vm1", ASK(.pools = "gpu=1", .cpus = 2), NULL), VERDICT_NONE);
        assert_int_equal(node_allocate(t, "vm2", ASK(.pools = "gpu=1", .cpus = 2), NULL), VERDICT_NONE);
        assert_devices(ledger_find(t->ledger, "vm1"), "gpu0=0000:00:01.0");
        assert_devices(ledger_find(t->ledger, "vm2"), "gpu0=0000:00:02.0");
        assert_int_equal(node_available(t, "gpu"), 1);
}

TEST(test_B9_vfs_of_two_pfs) {
        _cleanup_node_ TestNode *t = node_new();

        node_numa(t, 0, 0, 8, 1, 8 * GIB);
        for (int i = 0; i < 2; i++) {
                char pf[48], vf[48];

                (void) snprintf(pf, sizeof(pf), "pci0000:00/0000:00:0%d.0/0000:0%d:00.0", i + 1, i + 1);
                node_nic(t, pf, 0, i * 10);
                for (int j = 1; j < 3; j++) {
                        (void) snprintf(vf, sizeof(vf), "pci0000:00/0000:00:0%d.0/0000:0%d:00.%d", i + 1, i + 1, j);
                        node_vf(t, vf, strrchr(pf, '/') + 1, 0, i * 10 + j);
                }
        }
        node_ready(t, "[Pool vf]\nMatch=type=vf\n");
        assert_int_equal(node_allocate(t, "vm1", ASK(.pools = "vf=1"), NULL), VERDICT_NONE);
        assert_devices(ledger_find(t->ledger, "vm1"), "vf0=0000:01:00.1");
        assert_int_equal(node_allocate(t, "vm2", ASK(.pools = "vf=2"), NULL), VERDICT_NONE);
        assert_devices(ledger_find(t->ledger, "vm2"), "vf0=0000:01:00.2 vf1=0000:02:00.1");
        assert_int_equal(node_available(t, "vf"), 1);

        /* With one free VF left on each PF, both PFs must be used. */
        assert_int_equal(node_allocate(t, "vm3", ASK(.pools = "vf=1"), NULL), VERDICT_NONE);
        assert_devices(ledger_find(t->ledger, "vm3"), "vf0=0000:02:00.2");
        node_release(t, "vm2");
        assert_int_equal(node_allocate(t, "split", ASK(.pools = "vf=2"), NULL), VERDICT_NONE);
        assert_devices(ledger_find(t->ledger, "split"), "vf0=0000:01:00.2 vf1=0000:02:00.1");
        assert_int_equal(node_available(t, "vf"), 0);
}

/* Two sockets, each a GPU and a NIC below one switch. */
static TestNode *two_switches(const char *config) {
        TestNode *t = node_new();

        for (int i = 0; i < 2; i++) {
                char root[32], path[64];
                int bus = 0x40 * i + 1;

                node_numa(t, i, (unsigned) i * 16, 16, 2, 32 * GIB);
                (void) snprintf(root, sizeof(root), "pci0000:%02x/0000:%02x:01.0", 0x40 * i, 0x40 * i);
                node_bridge(t, root, i, 100 + i);
                (void) snprintf(path, sizeof(path), "%s/0000:%02x:00.0", root, bus);
                node_gpu(t, path, i, bus);
                (void) snprintf(path, sizeof(path), "%s/0000:%02x:01.0", root, bus);
                node_nic(t, path, i, bus + 1);
        }
        node_ready(t, config);
        return t;
}

TEST(test_gpu_and_nic_below_one_switch) {
        _cleanup_node_ TestNode *t = two_switches(BOTH_POOLS);
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;

        assert_int_equal(node_plan(t, ASK(.pools = "gpu=1 nic=1", .cpus = 4, .proximity = "switch"), &plan, NULL),
                         VERDICT_NONE);
        assert_devices(plan->allocation, "gpu0=0000:01:00.0 nic0=0000:01:01.0");
        assert_cpus(&plan->allocation->cpus, "0-3");
        assert_int_equal(plan->n_pairs, 1);
        assert_int_equal(plan->pairs[0].distance, DISTANCE_PIX);
        assert_true(plan->has_runner_up);
        assert_int_equal(plan->runner_up_nodes[0], 1);
        assert_int_equal(score_compare(&plan->score, &plan->runner_up), 0);
}

/* The index of a NIC is that of its GPU. */
TEST(test_slots_follow_the_pairs) {
        _cleanup_node_ TestNode *t = two_switches("[Pool gpu]\nMatch=class=0302\n[Pool nic]\nMatch=class=02\n");
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;

        assert_int_equal(node_plan(t, ASK(.pools = "nic=2 gpu=2", .cpus = 20), &plan, NULL), VERDICT_NONE);
        assert_devices(plan->allocation, "nic0=0000:01:01.0 nic1=0000:41:01.0 gpu0=0000:01:00.0 gpu1=0000:41:00.0");
        assert_int_equal(plan->score.numa_nodes, 2);
        assert_int_equal(plan->score.worst_distance, DISTANCE_PIX);
        assert_int_equal(plan->score.gpu_distance, DISTANCE_SYS);
        assert_int_equal(plan->allocation->n_cells, 2);
        assert_int_equal(plan->allocation->n_pins, 20);
        assert_cpus(&plan->allocation->cells[0].vcpus, "0-9");
        assert_cpus(&plan->allocation->cells[1].vcpus, "10-19");
        assert_int_equal(plan->allocation->cells[0].memory, 10 * GIB);
}

/* Without CPUs the guest is on no node, so devices of both sockets are available, except under policies that require a
 * node. */
TEST(test_devices_of_both_nodes_without_cpus) {
        _cleanup_node_ TestNode *t = two_switches(BOTH_POOLS);
        _cleanup_refusal_ Refusal why = { 0 };
        Verdict v = node_allocate(t, "vm", ASK(.pools = "gpu=2 nic=2"), &why);

        if (v != VERDICT_NONE)
                fail_msg("%s", why.message);
}

/* Two cells, two vCPUs, SMT: a core of each node. request_check() accepts this, so a plan must exist. */
TEST(test_a_vcpu_for_each_cell) {
        _cleanup_node_ TestNode *t = two_switches(BOTH_POOLS);
        _cleanup_refusal_ Refusal why = { 0 };
        Verdict v = node_allocate(t, "vm", ASK(.cpus = 2, .cells = 2), &why);

        if (v != VERDICT_NONE)
                fail_msg("%s", why.message);
}

TEST(test_two_devices_of_one_group_hold_nothing) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;

        node_numa(t, 0, 0, 4, 1, 8 * GIB);
        node_nic(t, "pci0000:00/0000:01:00.0", 0, 1);
        node_nic(t, "pci0000:00/0000:01:00.1", 0, 1);
        node_ready(t, "[Pool nic]\nMatch=class=02\n");
        assert_int_equal(node_plan(t, ASK(.pools = "nic=2"), &plan, NULL), VERDICT_NONE);
        assert_devices(plan->allocation, "nic0=0000:01:00.0 nic1=0000:01:00.1");
        assert_int_equal(plan->score.held, 0);
}

/* Cards whose two ports share a group: two ports of one card waste less than half of two cards. */
TEST(test_two_ports_are_one_card) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;

        node_numa(t, 0, 0, 4, 1, 8 * GIB);
        node_nic(t, "pci0000:00/0000:00:01.0/0000:01:00.0", 0, 1); /* a card with one port */
        node_nic(t, "pci0000:00/0000:00:02.0/0000:02:00.0", 0, 2);
        node_device(t, "pci0000:00/0000:00:02.0/0000:02:00.1", 0x010802, 0, 2); /* in another pool */
        node_nic(t, "pci0000:00/0000:00:03.0/0000:03:00.0", 0, 3);
        node_nic(t, "pci0000:00/0000:00:03.0/0000:03:00.1", 0, 3);
        node_ready(t, "[Pool nic]\nMatch=class=02\n[Pool disk]\nMatch=class=01\n");
        assert_int_equal(node_plan(t, ASK(.pools = "nic=2", .cpus = 1), &plan, NULL), VERDICT_NONE);
        assert_devices(plan->allocation, "nic0=0000:03:00.0 nic1=0000:03:00.1");
}

/* Takes the lone GPU first, so that the devices below the other switch stay together. */
TEST(test_takes_from_where_least_is_left) {
        static const uint32_t companions[] = { 0x030200, 0x020000 };

        for (size_t i = 0; i < ELEMENTSOF(companions); i++) {
                _cleanup_node_ TestNode *t = node_new();
                _cleanup_(cleanup_plan_free) Plan *plan = NULL;

                node_numa(t, 0, 0, 4, 1, 8 * GIB);
                node_bridge(t, "pci0000:00/0000:00:01.0", 0, 10);
                node_gpu(t, "pci0000:00/0000:00:01.0/0000:01:00.0", 0, 1);
                node_device(t, "pci0000:00/0000:00:01.0/0000:01:01.0", companions[i], 0, 2);
                node_bridge(t, "pci0000:00/0000:00:02.0", 0, 11);
                node_gpu(t, "pci0000:00/0000:00:02.0/0000:02:00.0", 0, 3);
                node_ready(t, BOTH_POOLS);
                assert_int_equal(node_plan(t, ASK(.pools = "gpu=1", .cpus = 1), &plan, NULL), VERDICT_NONE);
                assert_devices(plan->allocation, "gpu0=0000:02:00.0");
        }
}

/* Slot 0 of pool "gpu1" is not slot 10 of pool "gpu". */
TEST(test_slots_are_unique) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;

        node_numa(t, 0, 0, 4, 1, 8 * GIB);
        for (int i = 0; i < 12; i++) {
                char path[32];

                (void) snprintf(path, sizeof(path), "pci0000:00/0000:00:%02x.0", i + 1);
                node_gpu(t, path, 0, i);
        }
        node_ready(t, "[Pool gpu1]\nMatch=address=0000:00:01.0\n[Pool gpu]\nMatch=address=0000:00:0[2-9a-c].0\n");
        assert_int_equal(node_plan(t, ASK(.pools = "gpu=11 gpu1=1"), &plan, NULL), VERDICT_NONE);
        for (size_t i = 0; i < plan->allocation->n_devices; i++)
                for (size_t j = 0; j < i; j++)
                        if (streq(plan->allocation->devices[i].slot, plan->allocation->devices[j].slot))
                                fail_msg("two devices are '%s'", plan->allocation->devices[i].slot);
}

/* --- refusals --- */

static void assert_refused(TestNode *t, const Ask *ask, Verdict expected, const char *names) {
        _cleanup_refusal_ Refusal why = { 0 };
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        Verdict v = node_plan(t, ask, &plan, &why);

        if (v != expected)
                fail_msg("%s, not %s: %s", verdict_to_string(v), verdict_to_string(expected), why.message ?: "");
        assert_null(plan);
        assert_int_equal(why.verdict, expected);
        assert_says(&why, names);
        assert_non_null(why.remedy);
        record(why.remedy, why.message);
}

TEST(test_refusals) {
        _cleanup_node_ TestNode *t = two_switches(BOTH_POOLS);

        node_hugepages(&t->inventory->nodes[0], GIB, 8, 8);
        assert_refused(t, ASK(.pools = "fpga=1"), VERDICT_NO_SUCH_POOL, "'fpga'");
        assert_refused(t, ASK(.pools = "gpu=3"), VERDICT_INSUFFICIENT_DEVICES, "'gpu'");
        assert_refused(t, ASK(.cpus = 40), VERDICT_INSUFFICIENT_CPUS, "40 ");
        assert_refused(t, ASK(.cpus = 40), VERDICT_INSUFFICIENT_CPUS, "16, node 1");
        assert_refused(t, ASK(.cpus = 40), VERDICT_INSUFFICIENT_CPUS, "at most 2 nodes"); /* there are only two */
        assert_refused(t, ASK(.cpus = 2, .memory = 100 * GIB), VERDICT_INSUFFICIENT_MEMORY, "100 GiB");
        assert_refused(t, ASK(.cpus = 2, .memory = 100 * GIB), VERDICT_INSUFFICIENT_MEMORY, "24 GiB, node 1");
        assert_refused(t, ASK(.cpus = 2, .memory = 9 * GIB, .page_size = GIB), VERDICT_INSUFFICIENT_MEMORY,
                       "8 GiB, node 1");
        assert_refused(t, ASK(.cpus = 4, .cells = 3), VERDICT_NUMA, "3 ");
}

/* Following the remedy helps. */
TEST(test_refusal_advice) {
        _cleanup_node_ TestNode *t = two_switches(BOTH_POOLS "[Exclude]\nMatch=address=0000:01:00.0\n");
        _cleanup_refusal_ Refusal some = { 0 }, held = { 0 }, both = { 0 }, none = { 0 };
        _cleanup_node_ TestNode *excluded = two_switches(BOTH_POOLS "[Exclude]\nMatch=class=0302\n");

        assert_int_equal(node_plan(t, ASK(.pools = "gpu=2"), &(Plan *) { NULL }, &some), VERDICT_INSUFFICIENT_DEVICES);
        record("another is excluded", some.remedy);
        assert_int_equal(node_allocate(t, "vm7", ASK(.pools = "gpu=1", .cpus = 2), NULL), VERDICT_NONE);
        assert_int_equal(node_plan(t, ASK(.pools = "gpu=1"), &(Plan *) { NULL }, &held), VERDICT_INSUFFICIENT_DEVICES);
        record("another is held", held.remedy);
        assert_int_equal(node_plan(t, ASK(.pools = "gpu=2"), &(Plan *) { NULL }, &both), VERDICT_INSUFFICIENT_DEVICES);
        record("one is held, one excluded", both.remedy);
        assert_int_equal(node_plan(excluded, ASK(.pools = "gpu=1"), &(Plan *) { NULL }, &none),
                         VERDICT_INSUFFICIENT_DEVICES);
        assert_non_null(strstr(none.remedy, "passthroughctl explain"));
}

/* A pool with a device is not empty: fewer are available. */
TEST(test_refusal_of_a_pool_of_one) {
        _cleanup_node_ TestNode *one = nova_host(1, GPU_POOL), *none = nova_host(1, "[Pool gpu]\nMatch=class=02\n");
        _cleanup_refusal_ Refusal few = { 0 }, empty = { 0 };

        assert_int_equal(node_plan(one, ASK(.pools = "gpu=2"), &(Plan *) { NULL }, &few), VERDICT_INSUFFICIENT_DEVICES);
        assert_int_equal(node_plan(none, ASK(.pools = "gpu=2"), &(Plan *) { NULL }, &empty),
                         VERDICT_INSUFFICIENT_DEVICES);
        assert_null(strstr(few.remedy, "Match="));
        assert_non_null(strstr(empty.remedy, "Match="));
}

/* A refusal lists the free CPUs only if the request wants CPUs. */
TEST(test_refusal_lists_what_is_wanted) {
        for (unsigned cpus = 0; cpus <= 2; cpus += 2) {
                _cleanup_node_ TestNode *t = nova_host(-1, GPU_POOL);
                _cleanup_refusal_ Refusal why = { 0 };

                assert_int_equal(node_plan(t, ASK(.pools = "gpu=1", .cpus = cpus, .numa = NUMA_POLICY_REQUIRED),
                                           &(Plan *) { NULL }, &why),
                                 VERDICT_NUMA);
                assert_int_equal(!!strstr(why.message, "Free CPUs"), cpus > 0);
        }
}

TEST(test_refusal_names_who_has_it) {
        _cleanup_node_ TestNode *t = two_switches(BOTH_POOLS);

        assert_int_equal(node_allocate(t, "vm7", ASK(.pools = "gpu=2", .cpus = 20), NULL), VERDICT_NONE);
        assert_refused(t, ASK(.pools = "gpu=1"), VERDICT_INSUFFICIENT_DEVICES, "'vm7'");
}

/* One pair is close enough, a second is not. The sentence must not deny the first. */
TEST(test_proximity_refusal_with_one_pair) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_refusal_ Refusal why = { 0 };

        node_numa(t, 0, 0, 4, 1, 8 * GIB);
        node_bridge(t, "pci0000:00/0000:00:01.0", 0, 10);
        node_gpu(t, "pci0000:00/0000:00:01.0/0000:01:00.0", 0, 1);
        node_nic(t, "pci0000:00/0000:00:01.0/0000:01:01.0", 0, 2);
        node_gpu(t, "pci0000:00/0000:00:02.0", 0, 3);
        node_nic(t, "pci0000:00/0000:00:03.0", 0, 4);
        node_ready(t, BOTH_POOLS);
        assert_int_equal(node_plan(t, ASK(.pools = "gpu=2 nic=2", .cpus = 1, .proximity = "switch"), NULL, &why),
                         VERDICT_PROXIMITY);
        assert_says(&why, "'switch'");
        record("one pair is close enough", why.message);
}

/* No single change helps here, so the remedy must name both. */
TEST(test_numa_and_proximity_together) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_refusal_ Refusal why = { 0 };

        node_numa(t, 0, 0, 4, 1, 8 * GIB);
        node_numa(t, 1, 4, 4, 1, 8 * GIB);
        node_gpu(t, "pci0000:00/0000:00:02.0", 0, 3);
        node_nic(t, "pci0000:80/0000:80:03.0", 1, 4);
        node_ready(t, BOTH_POOLS);
        assert_int_equal(
                node_plan(t,
                          ASK(.pools = "gpu=1 nic=1", .cpus = 1, .numa = NUMA_POLICY_PREFERRED, .proximity = "switch"),
                          NULL, NULL),
                VERDICT_PROXIMITY);
        assert_int_equal(node_plan(t,
                                   ASK(.pools = "gpu=1 nic=1", .cpus = 1, .cells = 1, .numa = NUMA_POLICY_REQUIRED,
                                       .proximity = "switch"),
                                   NULL, &why),
                         VERDICT_NUMA);
        assert_says(&why, "'switch'");
}

/* Remedies must be able to help: a release does not enlarge a pool, and more cells were already tried. */
TEST(test_remedies_could_help) {
        _cleanup_node_ TestNode *t = two_switches(BOTH_POOLS);
        _cleanup_refusal_ Refusal devices = { 0 }, cpus = { 0 };

        assert_int_equal(node_plan(t, ASK(.pools = "gpu=3"), NULL, &devices), VERDICT_INSUFFICIENT_DEVICES);
        record("more than the pool has", devices.remedy);
        assert_int_equal(node_plan(t, ASK(.cpus = 40), NULL, &cpus), VERDICT_INSUFFICIENT_CPUS);
        record("more than the node has", cpus.remedy);
}

/* 32 nodes with a GPU each. */
static TestNode *make_many_nodes(const char *config) {
        TestNode *t = node_new();

        for (int i = 0; i < 32; i++) {
                char path[32];

                node_numa(t, i, (unsigned) i * 4, 4, 1, 8 * GIB);
                (void) snprintf(path, sizeof(path), "pci0000:%02x/0000:%02x:01.0", i * 4, i * 4);
                node_gpu(t, path, i, i);
        }
        node_ready(t, config);
        return t;
}

/* Eight nodes would do. A search that gave up must not say that there is no plan. */
TEST(test_giving_up_is_not_a_numa_refusal) {
        _cleanup_node_ TestNode *t = make_many_nodes(GPU_POOL);
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        Verdict v = node_plan(t, ASK(.pools = "gpu=8", .cpus = 8, .numa = NUMA_POLICY_REQUIRED), &plan, NULL);

        assert_true(v == VERDICT_NONE || v == VERDICT_LIMIT);
}

/* No eight nodes have nine GPUs. Whether eight nodes have the memory is unknown: there are too many sets to try. */
TEST(test_unknown_room_is_not_a_numa_refusal) {
        _cleanup_node_ TestNode *t = make_many_nodes(GPU_POOL "NumaPolicy=required\n");

        assert_int_equal(node_plan(t,
                                   ASK(.pools = "gpu=9", .cpus = 8, .cells = 8, .memory = 128 * GIB,
                                       .numa = NUMA_POLICY_REQUIRED),
                                   NULL, NULL),
                         VERDICT_LIMIT);
}

TEST(test_sentences) {
        assert_sentences("plan-refusals.txt");
}

/* Of equal nodes the first one is the best, the second one the runner-up. */
TEST(test_runner_up_of_equal_nodes) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;

        for (int node = 0; node < 4; node++)
                node_numa(t, node, (unsigned) node * 4, 4, 2, 8 * GIB);
        node_ready(t, "");
        assert_int_equal(node_plan(t, ASK(.cpus = 2), &plan, NULL), VERDICT_NONE);
        assert_int_equal(plan->allocation->cells[0].node, 0);
        assert_int_equal(plan->n_runner_up_nodes, 1);
        assert_int_equal(plan->runner_up_nodes[0], 1);
}
