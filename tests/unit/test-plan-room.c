/* SPDX-License-Identifier: GPL-2.0-or-later */

/* CPUs, pages and guest cells of plans: whole cores, pages by size and node, the wanted number of cells. */

#include <stdio.h>

#include "unit.h"

#include "nodefixture.h"

#define MIB (1ULL << 20)

/* Nodes of eight CPUs, two for each core, and 16 GiB, of which 4 GiB are 1 GiB pages and 2 GiB are 2 MiB pages. */
static TestNode *node_of(unsigned n, const char *config) {
        TestNode *t = node_new();

        for (unsigned i = 0; i < n; i++) {
                NumaNode *node = node_numa(t, (int) i, i * 8, 8, 2, 16 * GIB);

                node_hugepages(node, GIB, 4, 4);
                node_hugepages(node, 2 * MIB, 1024, 1024);
        }
        node_gpu(t, "pci0000:00/0000:00:02.0", 0, 1);
        node_ready(t, config);
        return t;
}

#define GPUS "[Pool gpu]\nMatch=class=03\n"

static void assert_allocated(TestNode *t, const char *name, const Ask *ask, const char *cpus) {
        _cleanup_refusal_ Refusal why = { 0 };

        if (node_allocate(t, name, ask, &why) != VERDICT_NONE)
                fail_msg("%s: %s", name, why.message);
        assert_cpus(&ledger_find(t->ledger, name)->cpus, cpus);
}

static void assert_verdict(TestNode *t, const Ask *ask, Verdict expected) {
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        Verdict v = node_plan(t, ask, &plan, NULL);

        if (v != expected)
                fail_msg("%s, not %s", verdict_to_string(v), verdict_to_string(expected));
}

/* A partly used core has no free thread for other guests. */
TEST(test_whole_cores) {
        _cleanup_node_ TestNode *t = node_of(1, GPUS);

        assert_allocated(t, "three", ASK(.cpus = 3), "0-3");
        assert_int_equal(ledger_find(t->ledger, "three")->n_pins, 3);
        assert_allocated(t, "one", ASK(.cpus = 1), "4-5");
        assert_verdict(t, ASK(.cpus = 3), VERDICT_INSUFFICIENT_CPUS);
        assert_allocated(t, "two", ASK(.cpus = 2), "6-7");
        assert_verdict(t, ASK(.cpus = 1), VERDICT_INSUFFICIENT_CPUS);
}

/* A core with a housekeeping CPU has no thread for guests. */
TEST(test_housekeeping_keeps_the_core) {
        _cleanup_node_ TestNode *t = node_of(1, "HousekeepingCpus=1,4\n" GPUS);

        assert_allocated(t, "vm", ASK(.cpus = 4), "2-3,6-7");
        assert_verdict(t, ASK(.cpus = 1), VERDICT_INSUFFICIENT_CPUS);
}

/* Allocated pages of one size do not reduce those of another. */
TEST(test_page_sizes_are_counted_apart) {
        _cleanup_node_ TestNode *t = node_of(1, GPUS);

        assert_allocated(t, "large", ASK(.cpus = 2, .memory = 3 * GIB, .page_size = GIB), "0-1");
        assert_verdict(t, ASK(.cpus = 2, .memory = 2 * GIB, .page_size = GIB), VERDICT_INSUFFICIENT_MEMORY);
        assert_allocated(t, "small", ASK(.cpus = 2, .memory = 2 * GIB, .page_size = 2 * MIB), "2-3");
        assert_verdict(t, ASK(.cpus = 2, .memory = 2 * MIB, .page_size = 2 * MIB), VERDICT_INSUFFICIENT_MEMORY);
        assert_verdict(t, ASK(.cpus = 2, .memory = GIB, .page_size = GIB), VERDICT_NONE);
        /* 16 GiB without the 4 and the 2 GiB reserved as hugepages, used or not */
        assert_verdict(t, ASK(.cpus = 2, .memory = 10 * GIB + 4096), VERDICT_INSUFFICIENT_MEMORY);
        assert_allocated(t, "rest", ASK(.cpus = 2, .memory = 10 * GIB), "4-5");
}

/* A cell needs pages of one node: pages of two nodes do not add up. */
TEST(test_pages_are_counted_by_node) {
        _cleanup_node_ TestNode *t = node_of(2, GPUS);
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;

        assert_verdict(t, ASK(.cpus = 2, .memory = 6 * GIB, .page_size = GIB, .cells = 1), VERDICT_INSUFFICIENT_MEMORY);
        assert_int_equal(node_plan(t, ASK(.cpus = 2, .memory = 7 * GIB, .page_size = GIB), &plan, NULL), VERDICT_NONE);
        assert_int_equal(plan->allocation->n_cells, 2);
        assert_int_equal(plan->allocation->cells[0].memory, 4 * GIB); /* the odd page is the first cell's */
        assert_int_equal(plan->allocation->cells[1].memory, 3 * GIB);
        assert_allocated(t, "half", ASK(.cpus = 2, .memory = 2 * GIB, .page_size = GIB), "8-9");
        assert_verdict(t, ASK(.cpus = 2, .memory = 7 * GIB, .page_size = GIB), VERDICT_INSUFFICIENT_MEMORY);
}

/* Plans on nodes with these numbers of free CPUs and 2 MiB pages, and compares the shares. No shares: refused. */
static void assert_shares(const unsigned cpus[3], const unsigned pages[3], const Ask *ask, const unsigned share[3],
                          const unsigned page_share[3]) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;

        for (unsigned i = 0; i < 3; i++)
                if (cpus[i] > 0)
                        node_hugepages(node_numa(t, (int) i, i * 16, cpus[i], 1, GIB), 2 * MIB, pages[i], pages[i]);
        node_ready(t, GPUS);
        if (node_plan(t, ask, &plan, NULL) != VERDICT_NONE) {
                assert_null(share);
                return;
        }
        assert_non_null(share);
        for (size_t i = 0; i < plan->allocation->n_cells; i++) {
                assert_int_equal(cpuset_count(&plan->allocation->cells[i].vcpus), share[i]);
                assert_int_equal(plan->allocation->cells[i].memory, page_share[i] * 2 * MIB);
        }
}

#define SHARES(...)       ((const unsigned[3]) { __VA_ARGS__ })
#define ASK_PAGES(n, ...) ASK(.memory = (n) * 2 * MIB, .page_size = 2 * MIB, __VA_ARGS__)

/* The lowest node with room for the larger share gets it. */
TEST(test_any_node_has_the_larger_share) {
        static const unsigned many[] = { 99, 99, 99 };

        assert_shares(SHARES(4, 8), many, ASK_PAGES(8, .cpus = 9), SHARES(4, 5), SHARES(4, 4));
        assert_shares(SHARES(8, 4), many, ASK_PAGES(8, .cpus = 9), SHARES(5, 4), SHARES(4, 4));
        assert_shares(SHARES(8, 8), many, ASK_PAGES(8, .cpus = 9), SHARES(5, 4), SHARES(4, 4));
        assert_shares(SHARES(3, 9), many, ASK_PAGES(8, .cpus = 9, .cells = 2), NULL, NULL);
        assert_shares(SHARES(2, 3, 3), many, ASK_PAGES(9, .cpus = 8), SHARES(2, 3, 3), SHARES(3, 3, 3));
        assert_shares(SHARES(3, 2, 3), many, ASK_PAGES(9, .cpus = 8), SHARES(3, 2, 3), SHARES(3, 3, 3));
        /* Pages are shared likewise, and not by the number of CPUs. */
        assert_shares(SHARES(8, 8), SHARES(4, 5), ASK_PAGES(9, .cpus = 9), SHARES(5, 4), SHARES(4, 5));
        assert_shares(SHARES(4, 8), SHARES(5, 4), ASK_PAGES(9, .cpus = 9), SHARES(4, 5), SHARES(5, 4));
        assert_shares(SHARES(8, 8, 8), SHARES(3, 4, 4), ASK_PAGES(11, .cpus = 6), SHARES(2, 2, 2), SHARES(3, 4, 4));
        assert_shares(SHARES(8, 8), SHARES(3, 9), ASK_PAGES(9, .cpus = 8, .cells = 2), NULL, NULL);
        /* Shared memory reduces the pages of a node. */
        assert_shares(SHARES(8, 8), SHARES(3, 2),
                      ASK_PAGES(3, .cpus = 8, .cells = 2, .shared = 4 * MIB, .shared_pages = 2 * MIB), SHARES(4, 4),
                      SHARES(1, 2));
}

/* Any number of guest cells up to the limit, each on a node of its own, with even shares. */
TEST(test_guest_cells) {
        _cleanup_node_ TestNode *t = node_of(ALLOCATION_CELLS_MAX, GPUS);

        for (unsigned cells = 1; cells <= ALLOCATION_CELLS_MAX; cells++) {
                _cleanup_(cleanup_plan_free) Plan *plan = NULL;
                uint64_t memory = 0;
                unsigned cpus = 0;

                assert_int_equal(node_plan(t, ASK(.cpus = 8, .memory = 8 * GIB + 4096, .cells = cells), &plan, NULL),
                                 VERDICT_NONE);
                assert_int_equal(plan->allocation->n_cells, cells);
                for (unsigned i = 0; i < cells; i++) {
                        const Cell *c = &plan->allocation->cells[i];

                        assert_true(i == 0 || c->node > plan->allocation->cells[i - 1].node);
                        assert_true(c->memory / GIB == 8 / cells && c->memory % 4096 == 0);
                        memory += c->memory;
                        cpus += cpuset_count(&c->vcpus);
                }
                assert_int_equal(memory, 8 * GIB + 4096);
                assert_int_equal(cpus, 8);
        }
}

/* Without a number of cells, the smallest number that fits. */
TEST(test_as_few_cells_as_fit) {
        _cleanup_node_ TestNode *t = node_of(4, GPUS);

        for (unsigned k = 1; k <= 4; k++) {
                _cleanup_(cleanup_plan_free) Plan *plan = NULL;

                assert_int_equal(node_plan(t, ASK(.cpus = 8 * k, .memory = GIB), &plan, NULL), VERDICT_NONE);
                assert_int_equal(plan->allocation->n_cells, k);
        }
        assert_verdict(t, ASK(.cpus = 33, .memory = GIB), VERDICT_INSUFFICIENT_CPUS);
}

/* A guest without devices avoids nodes with free GPUs while others have room. Allocated GPUs do not matter. */
TEST(test_without_devices_away_from_devices) {
        _cleanup_node_ TestNode *t = node_of(2, GPUS);

        assert_allocated(t, "a", ASK(.cpus = 4), "8-11");
        assert_allocated(t, "b", ASK(.cpus = 4), "12-15");
        assert_allocated(t, "c", ASK(.cpus = 2), "0-1");
        node_release(t, "a");
        node_release(t, "c");
        assert_allocated(t, "gpu", ASK("gpu=1", .cpus = 2), "0-1");
        assert_allocated(t, "d", ASK(.cpus = 2), "2-3");
}
