/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Guest cells from pins (scenarios F1, F2, F5, F6). The host has nodes 0, 4 and 5: ids are sparse. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/placement.h"

#define MIB (1ULL << 20)

static Inventory *make_host(size_t n_nodes, const NumaNode *nodes, size_t n_cpus, const Cpu *cpus) {
        Inventory *inv = inventory_new();

        assert_non_null(inv);
        inv->nodes = calloc(n_nodes, sizeof(NumaNode));
        inv->cpus = calloc(n_cpus, sizeof(Cpu));
        assert_non_null(inv->nodes);
        assert_non_null(inv->cpus);
        memcpy(inv->nodes, nodes, n_nodes * sizeof(NumaNode));
        memcpy(inv->cpus, cpus, n_cpus * sizeof(Cpu));
        inv->n_nodes = n_nodes;
        inv->n_cpus = n_cpus;
        assert_int_equal(inventory_finish(inv), 0);
        return inv;
}

/* CPUs 10, 20 on node 0; 30, 50 on node 4; 40 on node 5; 60 on none. */
static Inventory *make_sparse_host(void) {
        const NumaNode nodes[] = { { .id = 0 }, { .id = 4 }, { .id = 5 } };
        const Cpu cpus[] = {
                { .id = 10, .node = 0, .core = 10 }, { .id = 20, .node = 0, .core = 20 },
                { .id = 30, .node = 4, .core = 30 }, { .id = 40, .node = 5, .core = 40 },
                { .id = 50, .node = 4, .core = 50 }, { .id = 60, .node = -1, .core = 60 },
        };

        return make_host(ELEMENTSOF(nodes), nodes, ELEMENTSOF(cpus), cpus);
}

static Allocation *make_pins(size_t n, const Pin *pins) {
        Allocation *a = allocation_new("vm1");

        assert_non_null(a);
        a->pins = calloc(n + 1, sizeof(Pin));
        assert_non_null(a->pins);
        memcpy(a->pins, pins, n * sizeof(Pin));
        a->n_pins = n;
        return a;
}

static void assert_cell(const Cell *cell, int node, uint64_t memory, const char *vcpus) {
        _cleanup_free_ char *s = cpuset_format(&cell->vcpus);

        assert_int_equal(cell->node, node);
        assert_int_equal(cell->memory, memory);
        assert_string_equal(s, vcpus);
}

static void assert_refused(uint64_t memory, uint64_t page_size, size_t n, const Pin *pins, const char *word) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_sparse_host();
        _cleanup_(cleanup_allocation_free) Allocation *a = make_pins(n, pins);
        _cleanup_refusal_ Refusal refusal = { 0 };

        a->n_cells = 1;
        a->cells[0].memory = 7;
        assert_int_equal(placement_cells(inv, memory, page_size, a, &refusal), VERDICT_INVALID_REQUEST);
        assert_int_equal(refusal.verdict, VERDICT_INVALID_REQUEST);
        assert_non_null(strstr(refusal.message, word));
        assert_int_equal(a->n_cells, 1); /* a refusal changes nothing */
        assert_int_equal(a->cells[0].memory, 7);
}

static void test_F1_two_cells_on_sparse_nodes(void **state) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_sparse_host();
        const Pin pins[] = { { 0, 10 }, { 1, 20 }, { 3, 30 } };
        _cleanup_(cleanup_allocation_free) Allocation *a = make_pins(ELEMENTSOF(pins), pins);

        assert_int_equal(placement_cells(inv, 64 * MIB, 2 * MIB, a, NULL), VERDICT_NONE);
        assert_int_equal(a->n_cells, 2);
        assert_cell(&a->cells[0], 0, 32 * MIB, "0-1");
        assert_cell(&a->cells[1], 4, 32 * MIB, "3");
}

/* 32 pages on three cells do not go evenly: the first two have one more, and the sum is exact. */
static void test_F2_remainder_goes_to_first_cells(void **state) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_sparse_host();
        const Pin pins[] = { { 0, 10 }, { 1, 20 }, { 3, 30 }, { 4, 40 } };
        _cleanup_(cleanup_allocation_free) Allocation *a = make_pins(ELEMENTSOF(pins), pins);

        assert_int_equal(placement_cells(inv, 64 * MIB, 2 * MIB, a, NULL), VERDICT_NONE);
        assert_int_equal(a->n_cells, 3);
        assert_cell(&a->cells[0], 0, 22 * MIB, "0-1");
        assert_cell(&a->cells[1], 4, 22 * MIB, "3");
        assert_cell(&a->cells[2], 5, 20 * MIB, "4");
        assert_int_equal(allocation_memory(a), 64 * MIB);

        assert_int_equal(placement_cells(inv, 66 * MIB, 2 * MIB, a, NULL), VERDICT_NONE);
        assert_int_equal(allocation_memory(a), 66 * MIB);
        assert_int_equal(a->cells[2].memory, 22 * MIB);
}

static void test_F5_cpu_on_no_node(void **state) {
        const Pin pins[] = { { 0, 10 }, { 4, 60 } };
        const Pin offline[] = { { 0, 11 } };

        assert_refused(64 * MIB, 2 * MIB, ELEMENTSOF(pins), pins, "CPU 60");
        assert_refused(64 * MIB, 2 * MIB, ELEMENTSOF(offline), offline, "not online");
}

static void test_F6_less_than_a_page_per_cell(void **state) {
        const Pin pins[] = { { 0, 10 }, { 1, 30 } };

        assert_refused(2 * MIB, 2 * MIB, ELEMENTSOF(pins), pins, "one page");
        assert_refused(0, 0, ELEMENTSOF(pins), pins, "one page");
        assert_refused(5 * MIB, 2 * MIB, ELEMENTSOF(pins), pins, "whole number");
        assert_refused(4096 + 1, 0, ELEMENTSOF(pins), pins, "whole number");
}

/* vCPU order does not follow node order: cells are by node, whatever comes first. */
static void test_cells_ascend_by_node(void **state) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_sparse_host();
        const Pin pins[] = { { 0, 40 }, { 1, 30 }, { 2, 10 }, { 3, 50 } };
        _cleanup_(cleanup_allocation_free) Allocation *a = make_pins(ELEMENTSOF(pins), pins);

        assert_int_equal(placement_cells(inv, 4 * 4096, 0, a, NULL), VERDICT_NONE);
        assert_int_equal(a->n_cells, 3);
        assert_cell(&a->cells[0], 0, 2 * 4096, "2");
        assert_cell(&a->cells[1], 4, 4096, "1,3");
        assert_cell(&a->cells[2], 5, 4096, "0");
}

static void test_devices_only(void **state) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_sparse_host();
        _cleanup_(cleanup_allocation_free) Allocation *a = make_pins(0, &(Pin) { 0 });

        assert_int_equal(placement_cells(inv, 0, 0, a, NULL), VERDICT_NONE);
        assert_int_equal(a->n_cells, 0);
        assert_int_equal(placement_cells(inv, MIB, 0, a, NULL), VERDICT_INVALID_REQUEST);
}

static void test_too_many_cells(void **state) {
        NumaNode nodes[ALLOCATION_CELLS_MAX + 1] = { 0 };
        Cpu cpus[ALLOCATION_CELLS_MAX + 1] = { 0 };
        Pin pins[ALLOCATION_CELLS_MAX + 1] = { 0 };
        _cleanup_(cleanup_inventory_free) Inventory *inv = NULL;
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;

        for (unsigned i = 0; i < ELEMENTSOF(nodes); i++) {
                nodes[i].id = (int) i;
                cpus[i] = (Cpu) { .id = i, .node = (int) i, .core = i };
                pins[i] = (Pin) { i, i };
        }
        inv = make_host(ELEMENTSOF(nodes), nodes, ELEMENTSOF(cpus), cpus);
        a = make_pins(ELEMENTSOF(pins), pins);

        assert_int_equal(placement_cells(inv, 1024 * MIB, 0, a, NULL), VERDICT_INVALID_REQUEST);
        a->n_pins--;
        assert_int_equal(placement_cells(inv, 1024 * MIB, 0, a, NULL), VERDICT_NONE);
        assert_int_equal(a->n_cells, ALLOCATION_CELLS_MAX);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_F1_two_cells_on_sparse_nodes),
                cmocka_unit_test(test_F2_remainder_goes_to_first_cells),
                cmocka_unit_test(test_F5_cpu_on_no_node),
                cmocka_unit_test(test_F6_less_than_a_page_per_cell),
                cmocka_unit_test(test_cells_ascend_by_node),
                cmocka_unit_test(test_devices_only),
                cmocka_unit_test(test_too_many_cells),
        };

        return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
