/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A refusal names the nearest request that would succeed. That request succeeds, and none between the two does. */

#include <stdio.h>

#include "unit.h"

#include "nodefixture.h"
#include "sentences.h"

/* Node 0: two GPUs and two NICs below a switch, a GPU and a disk elsewhere. Node 1: a NIC and a disk. */
static TestNode *small_node(const char *config) {
        TestNode *t = node_new();

        node_hugepages(node_numa(t, 0, 0, 16, 2, 24 * GIB), GIB, 4, 4);
        node_numa(t, 1, 16, 8, 2, 16 * GIB);
        node_bridge(t, "pci0000:00/0000:00:01.0", 0, 10);
        node_gpu(t, "pci0000:00/0000:00:01.0/0000:01:00.0", 0, 11);
        node_gpu(t, "pci0000:00/0000:00:01.0/0000:01:01.0", 0, 12);
        node_nic(t, "pci0000:00/0000:00:01.0/0000:01:02.0", 0, 13);
        node_nic(t, "pci0000:00/0000:00:01.0/0000:01:03.0", 0, 14);
        node_gpu(t, "pci0000:00/0000:00:02.0", 0, 15);
        node_device(t, "pci0000:00/0000:00:03.0", 0x010802, 0, 16);
        node_nic(t, "pci0000:80/0000:80:02.0", 1, 17);
        node_device(t, "pci0000:80/0000:80:03.0", 0x010802, 1, 18);
        node_ready(t, config);
        return t;
}

#define POOLS "[Pool gpu]\nMatch=class=03\n[Pool nic]\nMatch=class=02\n[Pool disk]\nMatch=class=01\n"
#define REQUIRED_POOLS                                                                                                 \
        "[Pool gpu]\nMatch=class=03\nNumaPolicy=required\n[Pool nic]\nMatch=class=02\nNumaPolicy=required\n"

typedef struct Row {
        Ask ask;
        Ask does;     /* the request that the refusal suggests */
        Ask does_not; /* a nearer request, which must fail; without pools and CPUs: none */
} Row;

static void check_row(size_t i, const Row *row) {
        _cleanup_node_ TestNode *t = small_node(POOLS);
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_refusal_ Refusal why = { 0 };

        if (node_plan(t, &row->ask, &plan, &why) == VERDICT_NONE)
                fail_msg("row %zu is not refused", i);
        record(why.message, why.nearest);
        if (node_plan(t, &row->does, &plan, NULL) != VERDICT_NONE)
                fail_msg("row %zu does not tell the truth", i);
        if ((row->does_not.pools || row->does_not.cpus) && node_plan(t, &row->does_not, &plan, NULL) == VERDICT_NONE)
                fail_msg("row %zu does not tell the nearest", i);
}

#define DO(...) { __VA_ARGS__ }

TEST(test_nearest) {
        static const Row rows[] = {
                /* Counts */
                { DO("gpu=5"), DO("gpu=3"), DO("gpu=4") },
                { DO("gpu=5 nic=9"), DO("gpu=3 nic=3"), DO("gpu=3 nic=4") },
                { DO("gpu=3 nic=3", .proximity = "switch"), DO("gpu=3 nic=3"), DO("gpu=3 nic=3", .proximity = "node") },
                /* CPUs, in whole cores, and with another number of guest cells */
                { DO(.cpus = 40, .memory = GIB), DO(.cpus = 18, .memory = GIB), DO(.cpus = 20, .memory = GIB) },
                { DO(.cpus = 2, .memory = 4 * GIB, .page_size = GIB, .cells = 2),
                  DO(.cpus = 2, .memory = 4 * GIB, .page_size = GIB, .cells = 1) },
                { DO(.cpus = 20, .memory = GIB, .cells = 1), DO(.cpus = 16, .memory = GIB, .cells = 1),
                  DO(.cpus = 18, .memory = GIB, .cells = 1) },
                { DO(.cpus = 40, .memory = GIB, .cells = 2), DO(.cpus = 18, .memory = GIB, .cells = 2),
                  DO(.cpus = 20, .memory = GIB, .cells = 2) },
                /* Memory */
                { DO("gpu=1", .cpus = 2, .memory = 100 * GIB), DO("gpu=1", .cpus = 2, .memory = 32 * GIB),
                  DO("gpu=1", .cpus = 2, .memory = 33 * GIB) },
                { DO(.cpus = 2, .memory = 9 * GIB, .page_size = GIB),
                  DO(.cpus = 2, .memory = 4 * GIB, .page_size = GIB),
                  DO(.cpus = 2, .memory = 5 * GIB, .page_size = GIB) },
                { DO(.cpus = 2, .memory = 8 << 20, .page_size = 2 << 20), DO(.cpus = 2, .memory = 8 << 20) },
                /* Shared memory */
                { DO(.cpus = 2, .cells = 1, .memory = GIB, .shared = 64 * GIB),
                  DO(.cpus = 2, .cells = 1, .memory = GIB, .shared = 16 * GIB),
                  DO(.cpus = 2, .cells = 1, .memory = GIB, .shared = 32 * GIB) },
                { DO(.cpus = 2, .memory = GIB, .shared = 8 * GIB, .shared_pages = 2 << 20),
                  DO(.cpus = 2, .memory = GIB, .shared = 8 * GIB) },
                { DO(.cpus = 2, .memory = 4 * GIB, .page_size = GIB, .shared = 2 * GIB, .shared_pages = GIB),
                  DO(.cpus = 2, .memory = 2 * GIB, .page_size = GIB, .shared = 2 * GIB, .shared_pages = GIB),
                  DO(.cpus = 2, .memory = 3 * GIB, .page_size = GIB, .shared = 2 * GIB, .shared_pages = GIB) },
                { DO("gpu=4", .cpus = 2, .memory = GIB, .shared = 64 * GIB),
                  DO("gpu=3", .cpus = 2, .memory = GIB, .shared = 16 * GIB),
                  DO("gpu=3", .cpus = 2, .memory = GIB, .shared = 32 * GIB) },
                /* Proximity and NUMA nodes */
                { DO("gpu=1 nic=3", .cpus = 2, .cells = 1, .numa = NUMA_POLICY_REQUIRED),
                  DO("gpu=1 nic=3", .cpus = 2, .cells = 1, .numa = NUMA_POLICY_PREFERRED),
                  DO("gpu=1 nic=3", .cpus = 2, .cells = 1, .numa = NUMA_POLICY_SOCKET) },
                { DO("gpu=3 disk=1", .proximity = "gpu:gpu=switch"),
                  DO("gpu=3 disk=1", .proximity = "gpu:gpu=root-complex") },
                { DO("gpu=2 nic=2 disk=1", .proximity = "switch,gpu:disk=switch"),
                  DO("gpu=2 nic=2 disk=1", .proximity = "switch,gpu:disk=root-complex") },
                /* Several changes at once */
                { DO("gpu=4", .cpus = 40, .memory = GIB), DO("gpu=3", .cpus = 18, .memory = GIB),
                  DO("gpu=3", .cpus = 20, .memory = GIB) },
                { DO("nic=3", .cpus = 20, .cells = 1, .memory = 100 * GIB, .numa = NUMA_POLICY_REQUIRED),
                  DO("nic=3", .cpus = 16, .cells = 1, .memory = 20 * GIB, .numa = NUMA_POLICY_PREFERRED),
                  DO("nic=3", .cpus = 16, .cells = 1, .memory = 20 * GIB, .numa = NUMA_POLICY_REQUIRED) },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                check_row(i, &rows[i]);
}

/* The weakest necessary change: a policy between 'required' and 'preferred' that suffices. */
TEST(test_nearest_policy) {
        static const struct {
                int numa; /* policy in the pool of the GPU */
                int package;
                NumaPolicy asked, nearest;
        } rows[] = {
                { -1, 1, NUMA_POLICY_REQUIRED, NUMA_POLICY_LEGACY },
                { 1, 0, NUMA_POLICY_REQUIRED, NUMA_POLICY_SOCKET },
                { 1, 1, NUMA_POLICY_REQUIRED, NUMA_POLICY_PREFERRED },
                { -1, 1, NUMA_POLICY_SOCKET, NUMA_POLICY_PREFERRED },
                { 1, 0, NUMA_POLICY_LEGACY, NUMA_POLICY_PREFERRED },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_node_ TestNode *t = node_new();
                _cleanup_refusal_ Refusal why = { 0 };

                node_numa(t, 0, 0, 4, 2, 8 * GIB);
                node_numa(t, 1, 4, 4, 2, 8 * GIB)->package = rows[i].package;
                node_gpu(t, "pci0000:80/0000:81:00.0", rows[i].numa, 1);
                node_ready(t, "HousekeepingCpus=4-7\n" POOLS);
                assert_int_equal(node_plan(t, ASK(.pools = "gpu=1", .cpus = 2, .memory = GIB, .numa = rows[i].asked),
                                           NULL, &why),
                                 VERDICT_NUMA);
                record(why.message, why.nearest);
                if (!why.nearest || !strstr(why.nearest, numa_policy_to_string(rows[i].nearest)))
                        fail_msg("row %zu: %s", i, why.nearest ?: "nothing");
        }
}

/* The guest is on node 0, which has four of the GPUs, and the policy is that of the pool. */
TEST(test_fewer_devices) {
        static const char *const rows[][2] = { { "gpu=5 nic=1", "4 of pool 'gpu'." },
                                               { "gpu=8 nic=2", "4 of pool 'gpu' and 1 of pool 'nic'." },
                                               { "gpu=7 nic=1", "4 of pool 'gpu'." } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_node_ TestNode *t = node_new();
                _cleanup_refusal_ Refusal why = { 0 };

                for (int node = 0; node < 2; node++) {
                        node_numa(t, node, (unsigned) node * 4, 4, 2, 8 * GIB);
                        for (unsigned gpu = 0; gpu < 4; gpu++) {
                                char path[32];

                                (void) snprintf(path, sizeof(path), "pci0000:%x0/0000:%x0:0%u.0", node * 8, node * 8,
                                                gpu);
                                node_gpu(t, path, node, node * 8 + (int) gpu);
                        }
                }
                node_nic(t, "pci0000:00/0000:00:08.0", 0, 20);
                node_nic(t, "pci0000:00/0000:00:09.0", 0, 21);
                node_ready(t, "HousekeepingCpus=4-7\n" REQUIRED_POOLS);
                assert_int_equal(node_plan(t, ASK(.pools = rows[i][0], .cpus = 2, .memory = GIB), NULL, &why),
                                 VERDICT_NUMA);
                record(why.message, why.nearest);
                if (!why.nearest || !strstr(why.nearest, rows[i][1]))
                        fail_msg("%s: %s", rows[i][0], why.nearest ?: "nothing");
        }
}

/* The NICs are on two nodes. */
TEST(test_more_cells) {
        _cleanup_node_ TestNode *t = small_node(REQUIRED_POOLS);
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(node_plan(t, ASK(.pools = "gpu=1 nic=3", .cells = 1, .cpus = 4, .memory = GIB), NULL, &why),
                         VERDICT_NUMA);
        record(why.message, why.nearest);
        assert_non_null(why.nearest);
        assert_non_null(strstr(why.nearest, "2 guest cells"));
}

/* Changes that no request can do without. */
TEST(test_nothing_is_near) {
        _cleanup_node_ TestNode *t = small_node(POOLS "[Exclude]\nMatch=class=03\n");
        _cleanup_refusal_ Refusal devices = { 0 }, invalid = { 0 }, pool = { 0 };

        assert_int_equal(node_plan(t, ASK("gpu=1 nic=1"), NULL, &devices), VERDICT_INSUFFICIENT_DEVICES);
        assert_null(devices.nearest);
        assert_int_equal(node_plan(t, ASK("nic=0"), NULL, &invalid), VERDICT_INVALID_REQUEST);
        assert_null(invalid.nearest);
        assert_int_equal(node_plan(t, ASK("fpga=1"), NULL, &pool), VERDICT_NO_SUCH_POOL);
        assert_null(pool.nearest);
}

/* The pool requires the node of its only GPU, and that node has no CPUs for guests. */
TEST(test_no_change_helps) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_refusal_ Refusal why = { 0 };

        node_numa(t, 0, 0, 4, 2, 8 * GIB);
        node_numa(t, 1, 4, 4, 2, 8 * GIB);
        node_gpu(t, "pci0000:80/0000:81:00.0", 1, 1);
        node_ready(t, "HousekeepingCpus=4-7\n" REQUIRED_POOLS);
        assert_int_equal(node_plan(t, ASK("gpu=1", .cpus = 2, .memory = GIB), NULL, &why), VERDICT_NUMA);
        assert_null(why.nearest);
}

/* Existing shared memory is not changed. */
TEST(test_region_that_is_there) {
        _cleanup_node_ TestNode *t = small_node(POOLS);
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(node_allocate(t, "first", ASK(.cpus = 2, .memory = GIB, .shared = 8 * GIB), NULL),
                         VERDICT_NONE);
        assert_int_equal(node_plan(t, ASK(.cpus = 2, .memory = 100 * GIB, .shared = 8 * GIB), NULL, &why),
                         VERDICT_INSUFFICIENT_MEMORY);
        assert_non_null(strstr(why.nearest, "20 GiB"));
        record(why.message, why.nearest);
}

/* The least memory is one page for each cell. */
TEST(test_last_page) {
        _cleanup_node_ TestNode *t = small_node(POOLS);
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(node_allocate(t, "first", ASK(.cpus = 2, .memory = 3 * GIB, .page_size = GIB), NULL),
                         VERDICT_NONE);
        assert_int_equal(node_plan(t, ASK(.cpus = 2, .memory = 4 * GIB, .page_size = GIB), NULL, &why),
                         VERDICT_INSUFFICIENT_MEMORY);
        assert_non_null(strstr(why.nearest, "1 GiB of memory"));
        assert_int_equal(node_plan(t, ASK(.cpus = 2, .memory = GIB, .page_size = GIB), &plan, NULL), VERDICT_NONE);
}

TEST(test_sentences) {
        assert_sentences("nearest-requests.txt");
}
