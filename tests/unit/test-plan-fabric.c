/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The GPUs of a guest are an NVLink partition. */

#include <errno.h>
#include <stdio.h>

#include "unit.h"

#include "nodefixture.h"
#include "sentences.h"

/* Module ids in the order of addresses. */
static const unsigned modules[] = { 5, 7, 6, 8, 1, 3, 2, 4 };

static void path_of(unsigned i, unsigned port, char path[static 96]) {
        (void) snprintf(path, 96, "pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/0000:%02x:%02x.0/0000:%02x:00.0", i * 16,
                        i * 16, i * 16 + 1, i * 16 + 2, port, i * 16 + 3 + port);
}

/* Returns the address of the GPU with this module id. */
static PciAddress gpu_of(unsigned module) {
        for (unsigned i = 0; i < ELEMENTSOF(modules); i++)
                if (modules[i] == module)
                        return (PciAddress) { .bus = (uint8_t) (i * 16 + 3) };
        fail();
        return (PciAddress) { 0 };
}

/* Two NUMA nodes, eight switches, each with a GPU and a NIC. more: further lines of [Fabric]. */
static TestNode *make_hgx(const char *more) {
        TestNode *t = node_new();
        _cleanup_free_ char *config = NULL;

        for (unsigned n = 0; n < 2; n++)
                node_numa(t, (int) n, n * 32, 32, 2, 512 * GIB);
        for (unsigned i = 0; i < ELEMENTSOF(modules); i++) {
                char path[96];
                int group = (int) i * 8;

                for (unsigned port = 0; port < 2; port++) {
                        path_of(i, port, path);
                        if (port == 0)
                                node_gpu(t, path, (int) (i / 4), group + 1);
                        else
                                node_nic(t, path, (int) (i / 4), group + 2);
                        *strrchr(path, '/') = '\0';
                        node_bridge(t, path, (int) (i / 4), group + 3 + (int) port);
                }
                *strrchr(path, '/') = '\0';
                node_bridge(t, path, (int) (i / 4), group + 5);
                *strrchr(path, '/') = '\0';
                node_bridge(t, path, (int) (i / 4), group + 6);
        }
        assert_int_equal(string_replace(&config, "[Fabric]\n%s", more), 0);
        for (unsigned i = 0; i < ELEMENTSOF(modules) && !strstr(more, "Module="); i++)
                assert_int_equal(string_append(&config, "\n", "Module=0000:%02x:00.0=%u", i * 16 + 3, modules[i]), 0);
        assert_int_equal(
                string_append(&config, "\n", "[Pool gpu]\nMatch=class=03\nFabric=yes\n[Pool nic]\nMatch=class=02\n"),
                0);
        node_ready(t, config);
        return t;
}

/* Allocates the GPU with this module id alone. */
static void take(TestNode *t, const char *name, unsigned module) {
        Allocation *a = allocation_new(name);

        assert_non_null(a);
        assert_non_null(allocation_add_device(a, gpu_of(module), DEVICE_ROLE_ASSIGNED));
        assert_int_equal(ledger_claim(t->ledger, t->inventory, t->config, a, NULL), VERDICT_NONE);
}

static void assert_plan(TestNode *t, const char *pools, int partition, unsigned broken) {
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_refusal_ Refusal why = { 0 };
        const FabricPartition *p = fabric_table_find(&t->config->fabric, (unsigned) partition);

        if (node_plan(t, ASK(.pools = pools), &plan, &why) != VERDICT_NONE)
                fail_msg("%s: %s", pools, why.message);
        assert_int_equal(plan->allocation->partition, partition);
        assert_int_equal(plan->score.broken, broken);
        assert_non_null(p);
        for (unsigned m = 1; m <= 8; m++)
                assert_int_equal(!!(p->modules & fabric_bit(m)), !!allocation_find_device(plan->allocation, gpu_of(m)));
}

TEST(test_machines) {
        static const struct {
                const char *name;
                size_t n;
                unsigned whole, pair;
                uint64_t pair_modules;
        } machines[] = { { "hgx-a100", 35, 1, 12, 0x18 },
                         { "hgx-h100", 15, 0, 4, 0x14 },
                         { "hgx-b200", 15, 1, 5, 0x18 } };

        for (size_t i = 0; i < ELEMENTSOF(machines); i++) {
                FabricTable table;

                assert_int_equal(fabric_table_of(machines[i].name, &table), 0);
                assert_int_equal(table.n, machines[i].n);
                assert_true(fabric_table_find(&table, machines[i].whole)->modules == 0x1fe);
                assert_true(fabric_table_find(&table, machines[i].pair)->modules == machines[i].pair_modules);
                assert_int_equal(fabric_count(table.partitions[table.n - 1].modules), 1);
                assert_true(fabric_table_joins(&table, 1, 8));
                assert_false(fabric_table_joins(&table, 0, 8));
        }
        assert_int_equal(fabric_table_of("hgx", &(FabricTable) { 0 }), -EINVAL);
}

/* Partitions of every size on an empty machine. The plan takes the one that breaks the fewest larger partitions. */
TEST(test_partitions_are_kept_whole) {
        _cleanup_node_ TestNode *t = make_hgx("Partitions=hgx-h100");

        assert_plan(t, "gpu=8", 0, 0);
        assert_plan(t, "gpu=4", 2, 8);
        assert_plan(t, "gpu=2 nic=2", 5, 12);
        take(t, "one", 5);
        assert_plan(t, "gpu=4 nic=4", 1, 0);
        assert_plan(t, "gpu=2", 6, 0);
        assert_plan(t, "gpu=1", 13, 0);
}

/* Other wishes of the request precede the number of broken partitions. */
TEST(test_nodes_come_first) {
        _cleanup_node_ TestNode *t = make_hgx("Partition=7=1,3\nPartition=8=5,6\nPartition=9=5-8");
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_request_ Request r = { 0 };

        assert_plan(t, "gpu=2", 7, 0);
        ask_request(ASK(.pools = "gpu=2", .cpus = 2, .numa = NUMA_POLICY_REQUIRED), &r);
        assert_int_equal(request_add_host_node(&r, 0), 0);
        assert_int_equal(plan_make(&t->context, &r, &plan, NULL), VERDICT_NONE);
        assert_int_equal(plan->allocation->partition, 8);
        assert_int_equal(plan->score.broken, 4);
}

static void refuse_plan(TestNode *t, const char *about, const Ask *ask, const char *at) {
        _cleanup_request_ Request r = { 0 };
        _cleanup_refusal_ Refusal why = { 0 };
        _cleanup_free_ char *text = NULL;

        ask_request(ask, &r);
        if (at)
                assert_int_equal(request_add_device(&r, "gpu", address_of(at)), 0);
        assert_int_equal(plan_make(&t->context, &r, &(Plan *) { NULL }, &why), VERDICT_INSUFFICIENT_DEVICES);
        assert_non_null(why.message);
        assert_int_equal(string_replace(&text, "%s %s %s", why.message, why.remedy ?: "-", why.nearest ?: "-"), 0);
        record(about, text);
}

/* With fabric=off, any GPUs. */
TEST(test_off) {
        _cleanup_node_ TestNode *t = make_hgx("Partitions=hgx-h100");
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_request_ Request r = { 0 };

        ask_request(ASK(.pools = "gpu=3"), &r);
        r.no_fabric = true;
        assert_int_equal(plan_make(&t->context, &r, &plan, NULL), VERDICT_NONE);
        assert_int_equal(plan->allocation->partition, -1);
        assert_devices(plan->allocation, "gpu0=0000:03:00.0 gpu1=0000:13:00.0 gpu2=0000:23:00.0");
}

/* An attach takes no GPU of a partition. Devices of other pools can be attached and detached. */
TEST(test_attach) {
        _cleanup_node_ TestNode *t = make_hgx("Partitions=hgx-h100");
        _cleanup_request_ Request gpu = { 0 }, nic = { 0 };
        _cleanup_refusal_ Refusal why = { 0 };
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        Allocation *a;

        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "gpu=2"), NULL), VERDICT_NONE);
        a = ledger_find(t->ledger, "vm");
        ask_request(ASK(.pools = "gpu=1"), &gpu);
        ask_request(ASK(.pools = "nic=1"), &nic);
        assert_int_equal(plan_attach(&t->context, a, &gpu, &plan, &why), VERDICT_NOT_SUPPORTED);
        record("attach to a partition", why.message);
        gpu.no_fabric = true;
        assert_int_equal(plan_attach(&t->context, a, &gpu, &plan, NULL), VERDICT_NOT_SUPPORTED);
        assert_int_equal(plan_attach(&t->context, a, &nic, &plan, NULL), VERDICT_NONE);
}

TEST(test_refusals) {
        _cleanup_node_ TestNode *t = make_hgx("Partitions=hgx-h100"), *bare = make_hgx("Partitions=hgx-h100"),
                                *unknown = make_hgx("Partitions=hgx-h100\nModule=0000:03:00.0=5"),
                                *quads = make_hgx("Partition=1=1-4\nPartition=2=5-8");

        refuse_plan(t, "three of eight", ASK(.pools = "gpu=3"), NULL);
        take(t, "vm1", 2);
        take(t, "vm2", 8);
        take(t, "vm3", 7);
        refuse_plan(t, "both halves are broken", ASK(.pools = "gpu=4"), NULL);
        refuse_plan(t, "named GPUs of two partitions", ASK(.pools = "gpu=2", .cpus = 2), "0000:03:00.0");
        take(t, "vm4", 1);
        refuse_plan(t, "pairs are broken", ASK(.pools = "gpu=2"), NULL);
        bare->config->fabric.n = 0;
        refuse_plan(bare, "no partitions", ASK(.pools = "gpu=2"), NULL);
        refuse_plan(unknown, "one module is known", ASK(.pools = "gpu=2"), NULL);
        refuse_plan(quads, "a partition with another GPU", ASK(.pools = "gpu=1"), "0000:03:00.0");
        assert_sentences("fabric.txt");
}
