/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/numa.h"
#include "scanfixture.h"

static void test_nodes(void **state) {
        Fixture *f = *state;
        const NumaNode *node;

        tree_file(f->root, "sys/devices/system/node/online", "0,4");
        tree_file(f->root, "sys/devices/system/node/node0/distance", "10 17");
        tree_file(f->root, "sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages", "4");
        tree_file(f->root, "sys/devices/system/node/node0/hugepages/hugepages-1048576kB/free_hugepages", "3");
        tree_file(f->root, "sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "512");
        tree_file(f->root, "sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", "512");
        tree_file(f->root, "sys/devices/system/node/node4/cpulist", "");
        tree_file(f->root, "sys/devices/system/node/node4/distance", "17 10");
        tree_file(f->root, "sys/devices/system/node/node4/meminfo", "Node 4 MemTotal:       0 kB");
        scan(f);
        assert_int_equal(f->inv->n_nodes, 2);
        node = inventory_find_node(f->inv, 0);
        assert_int_equal(node->memory, 16ULL << 30);
        assert_int_equal(node->n_pages, 2);
        assert_int_equal(node->pages[0].size, 2 << 20);
        assert_int_equal(node->pages[1].free, 3);
        assert_int_equal(node->pages[1].total, 4);
        assert_int_equal(node->distance[1], 17);
        assert_int_equal(node->package, 0);
        assert_int_equal(numa_node_base_memory(node), 11ULL << 30);
        node = inventory_find_node(f->inv, 4);
        assert_int_equal(inventory_node_index(f->inv, 4), 1);
        assert_true(cpuset_is_empty(&node->cpus));
        assert_int_equal(node->package, -1);
        assert_int_equal(inventory_find_cpu(f->inv, 1)->core, 0);
        assert_int_equal(inventory_find_cpu(f->inv, 1)->node, 0);
}

static void test_offline_sibling(void **state) {
        Fixture *f = *state;

        tree_file(f->root, "sys/devices/system/cpu/online", "1");
        scan(f);
        assert_int_equal(f->inv->n_cpus, 1);
        assert_int_equal(f->inv->cpus[0].core, 1);
        assert_false(cpuset_has(&f->inv->nodes[0].cpus, 0));
}

static void test_without_nodes(void **state) {
        Fixture *f = *state;
        _cleanup_free_ char *path = tree_path(f->root, "sys/devices/system/node"),
                            *away = tree_path(f->root, "sys/away");

        assert_int_equal(rename(path, away), 0);
        tree_file(f->root, "proc/meminfo", "MemTotal:       8388608 kB\nMemFree:  1 kB");
        scan(f);
        assert_int_equal(f->inv->n_nodes, 1);
        assert_int_equal(f->inv->nodes[0].memory, 8ULL << 30);
        assert_int_equal(cpuset_count(&f->inv->nodes[0].cpus), 2);
        assert_int_equal(f->inv->nodes[0].distance[0], 10);
        assert_int_equal(f->inv->cpus[1].node, 0);
        tree_file(f->root, "proc/meminfo", "MemTotal:       4194304 kB");
        assert_int_equal(numa_refresh(f->fs, f->inv), 0);
        assert_int_equal(f->inv->nodes[0].memory, 4ULL << 30);
}

static void test_damaged_nodes(void **state) {
        Fixture *f = *state;

        tree_file(f->root, "sys/devices/system/node/node0/meminfo", "nothing");
        tree_file(f->root, "sys/devices/system/node/node0/distance", "near far");
        tree_file(f->root, "sys/devices/system/node/node0/cpulist", "all");
        tree_file(f->root, "sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "1");
        scan(f);
        assert_int_equal(f->inv->n_nodes, 1);
        assert_int_equal(f->inv->nodes[0].memory, 0);
        assert_int_equal(f->inv->nodes[0].distance[0], 0);
        assert_note(f->inv, "meminfo", true);
        assert_note(f->inv, "distance", true);
        assert_note(f->inv, "cpulist", true);
        assert_note(f->inv, "CPU 0", true);
        assert_int_equal(f->inv->cpus[0].node, -1);
}

static void test_refresh(void **state) {
        Fixture *f = *state;
        const NumaNode *node;

        tree_file(f->root, "sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "512");
        tree_file(f->root, "sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", "512");
        scan(f);
        node = inventory_find_node(f->inv, 0);
        assert_int_equal(numa_refresh(f->fs, f->inv), 0);
        assert_int_equal(cpuset_count(&node->cpus), 2);
        assert_int_equal(node->distance[0], 10);
        assert_int_equal(f->inv->cpus[1].core, 0);
        assert_int_equal(f->inv->cpus[1].node, 0);

        tree_file(f->root, "sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "600");
        tree_file(f->root, "sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", "7");
        tree_file(f->root, "sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8388608 kB");
        tree_file(f->root, "sys/devices/system/cpu/online", "1");
        assert_int_equal(numa_refresh(f->fs, f->inv), 0);
        assert_ptr_equal(node, inventory_find_node(f->inv, 0));
        assert_int_equal(node->pages[0].total, 600);
        assert_int_equal(node->pages[0].free, 7);
        assert_int_equal(node->memory, 8ULL << 30);
        assert_false(cpuset_has(&node->cpus, 0));
        assert_int_equal(f->inv->n_cpus, 1);
        assert_int_equal(f->inv->cpus[0].core, 1);
        assert_int_equal(f->inv->cpus[0].node, 0);
        assert_int_equal(node->package, 0);

        tree_file(f->root, "sys/devices/system/cpu/online", "0-1");
        assert_int_equal(numa_refresh(f->fs, f->inv), 0);
        assert_int_equal(f->inv->n_cpus, 2);
        assert_int_equal(f->inv->cpus[1].core, 0);
}

static void test_refresh_other_nodes(void **state) {
        Fixture *f = *state;

        scan(f);
        tree_file(f->root, "sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 1 kB");
        tree_file(f->root, "sys/devices/system/node/online", "0-1");
        assert_int_equal(numa_refresh(f->fs, f->inv), -ESTALE);
        tree_file(f->root, "sys/devices/system/node/online", "1");
        assert_int_equal(numa_refresh(f->fs, f->inv), -ESTALE);
        assert_int_equal(f->inv->nodes[0].memory, 16ULL << 30);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
                TEST(test_nodes),         TEST(test_offline_sibling), TEST(test_without_nodes),
                TEST(test_damaged_nodes), TEST(test_refresh),         TEST(test_refresh_other_nodes),
#undef TEST
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
