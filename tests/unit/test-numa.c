/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>

#include "unit.h"

#include "host/numa.h"
#include "scanfixture.h"

static void node0_has_pages(const Fixture *f, unsigned size_kb, const char *total, const char *unused) {
        char name[64];

        (void) snprintf(name, sizeof(name), "node0/hugepages/hugepages-%ukB/nr_hugepages", size_kb);
        nodes_have(f, name, total);
        (void) snprintf(name, sizeof(name), "node0/hugepages/hugepages-%ukB/free_hugepages", size_kb);
        nodes_have(f, name, unused);
}

TEST_WITH(test_nodes, setup, teardown) {
        Fixture *f = *state;
        const NumaNode *node;

        nodes_have(f, "online", "0,4");
        nodes_have(f, "node0/distance", "10 17");
        node0_has_pages(f, 1048576, "4", "3");
        node0_has_pages(f, 2048, "512", "512");
        nodes_have(f, "node4/cpulist", "");
        nodes_have(f, "node4/distance", "17 10");
        nodes_have(f, "node4/meminfo", "Node 4 MemTotal:       0 kB");
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

TEST_WITH(test_available_memory, setup, teardown) {
        Fixture *f = *state;
        const NumaNode *node;

        scan(f);
        node = inventory_find_node(f->inv, 0);
        assert_true(node->available_known);
        assert_int_equal(node->available, 15ULL << 30);
        nodes_have(f, "node0/meminfo",
                   "Node 0 MemTotal: 8388608 kB\nNode 0 MemFree: 1024 kB\nNode 0 Active(anon): 1 kB\n"
                   "Node 0 Active(file): 2048 kB\nNode 0 Inactive(file): 4096 kB\nNode 0 SReclaimable: 512 kB\n"
                   "Node 0 SUnreclaim: 1 kB");
        assert_int_equal(numa_refresh(f->fs, f->inv), 0);
        assert_int_equal(node->available, (1024 + 2048 + 4096 + 512) << 10);
        nodes_have(f, "node0/meminfo", "Node 0 MemTotal: 8388608 kB\nNode 0 Active(file): 2048 kB");
        assert_int_equal(numa_refresh(f->fs, f->inv), 0);
        assert_false(node->available_known);
        nodes_have(f, "node0/meminfo",
                   "Node 0 MemTotal: 8 kB\nNode 0 MemFree: 18014398509481983 kB\nNode 0 Active(file): 2048 kB");
        assert_int_equal(numa_refresh(f->fs, f->inv), 0);
        assert_true(node->available == UINT64_MAX);
}

TEST_WITH(test_offline_sibling, setup, teardown) {
        Fixture *f = *state;

        cpus_have(f, "online", "1");
        scan(f);
        assert_int_equal(f->inv->n_cpus, 1);
        assert_int_equal(f->inv->cpus[0].core, 1);
        assert_false(cpuset_has(&f->inv->nodes[0].cpus, 0));
}

TEST_WITH(test_dies, setup, teardown) {
        Fixture *f = *state;

        scan(f);
        assert_int_equal(f->inv->cpus[1].die, 0); /* not in sysfs */
        cpus_have(f, "cpu0/topology/die_cpus_list", "0");
        cpus_have(f, "cpu1/topology/die_cpus_list", "1");
        scan(f);
        assert_int_equal(f->inv->cpus[0].die, 0);
        assert_int_equal(f->inv->cpus[1].die, 1);
        cpus_have(f, "cpu0/topology/die_cpus_list", "0-1"); /* not read again */
        scan(f);
        assert_int_equal(f->inv->cpus[1].die, 0);
        cpus_have(f, "online", "1");
        cpus_have(f, "cpu1/topology/die_cpus_list", "0-1");
        scan(f);
        assert_int_equal(f->inv->cpus[0].die, 1); /* the first online CPU */
}

/* A die with several L3 caches, as AMD has one for each core complex. */
TEST_WITH(test_core_complexes, setup, teardown) {
        Fixture *f = *state;

        cpus_have(f, "cpu0/topology/die_cpus_list", "0-1");
        cpus_have(f, "cpu1/topology/die_cpus_list", "0-1");
        cpus_have(f, "cpu0/cache/index3/shared_cpu_list", "0,8");
        cpus_have(f, "cpu1/cache/index3/shared_cpu_list", "1,9");
        scan(f);
        assert_int_equal(f->inv->cpus[0].die, 0);
        assert_int_equal(f->inv->cpus[1].die, 1);
        cpus_have(f, "cpu0/cache/index3/shared_cpu_list", "0-1");
        scan(f);
        assert_int_equal(f->inv->cpus[1].die, 0);
}

TEST_WITH(test_hybrid, setup, teardown) {
        Fixture *f = *state;

        scan(f);
        assert_int_equal(f->inv->cpus[1].kind, CORE_PERFORMANCE);
        tree_file(f->root, "sys/devices/cpu_core/cpus", "0");
        tree_file(f->root, "sys/devices/cpu_atom/cpus", "1");
        scan(f);
        assert_int_equal(f->inv->cpus[0].kind, CORE_PERFORMANCE);
        assert_int_equal(f->inv->cpus[1].kind, CORE_EFFICIENT);
        tree_file(f->root, "sys/devices/cpu_atom/cpus", "");
        tree_file(f->root, "sys/devices/cpu_lowpower/cpus", "1,5");
        scan(f);
        assert_int_equal(f->inv->cpus[1].kind, CORE_LOW_POWER);
}

TEST_WITH(test_without_nodes, setup, teardown) {
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

TEST_WITH(test_damaged_nodes, setup, teardown) {
        Fixture *f = *state;

        nodes_have(f, "node0/meminfo", "nothing");
        nodes_have(f, "node0/distance", "near far");
        nodes_have(f, "node0/cpulist", "all");
        cpus_have(f, "cpu0/topology/thread_siblings_list", "1");
        node0_has_pages(f, 0, "1", "1"); /* available memory is rounded to the page size */
        scan(f);
        assert_int_equal(f->inv->n_nodes, 1);
        assert_int_equal(f->inv->nodes[0].n_pages, 0);
        assert_int_equal(f->inv->nodes[0].memory, 0);
        assert_int_equal(f->inv->nodes[0].distance[0], 0);
        assert_note(f->inv, "meminfo", true);
        assert_note(f->inv, "distance", true);
        assert_note(f->inv, "cpulist", true);
        assert_note(f->inv, "CPU 0", true);
        assert_int_equal(f->inv->cpus[0].node, -1);
}

/* A recording of another tool, without the kernel's lists. */
TEST_WITH(test_without_lists, setup, teardown) {
        Fixture *f = *state;

        tree_unlink(f->root, "sys/devices/system/cpu/online");
        tree_unlink(f->root, "sys/devices/system/node/online");
        nodes_have(f, "node0/cpulist", "0-7");
        nodes_have(f, "node2/meminfo", "Node 2 MemTotal: 1024 kB");
        nodes_have(f, "node2/cpulist", "");
        nodes_have(f, "node2/distance", "20 10");
        tree_dir(f->root, "sys/devices/system/node/power");
        cpus_have(f, "cpu2/topology/thread_siblings_list", "2");
        cpus_have(f, "cpu3/topology/thread_siblings_list", "3");
        cpus_have(f, "cpu4/online", "0");
        cpus_have(f, "cpu5/online", "1");
        tree_dir(f->root, "sys/devices/system/cpu/cpufreq");
        cpus_have(f, "offline", "2,6-7");
        scan(f);
        assert_int_equal(f->inv->n_cpus, 4);
        assert_int_equal(f->inv->cpus[2].id, 3);
        assert_int_equal(f->inv->cpus[3].id, 5);
        assert_int_equal(cpuset_count(&f->inv->nodes[0].cpus), 4);
        assert_int_equal(f->inv->n_nodes, 2);
        assert_int_equal(f->inv->nodes[1].id, 2);
        assert_int_equal(f->inv->nodes[1].distance[0], 20);
        assert_note(f->inv, "online CPUs", true);
        assert_note(f->inv, "online NUMA nodes", true);
        assert_int_equal(numa_refresh(f->fs, f->inv), 0);
        assert_int_equal(f->inv->n_cpus, 4);
}

/* Without files of CPUs, the nodes list the online CPUs. */
TEST_WITH(test_cpus_of_nodes, setup, teardown) {
        Fixture *f = *state;
        _cleanup_free_ char *path = tree_path(f->root, "sys/devices/system/cpu"),
                            *away = tree_path(f->root, "sys/away");

        assert_int_equal(rename(path, away), 0);
        nodes_have(f, "node0/cpulist", "0-2,9");
        scan(f);
        assert_int_equal(f->inv->n_cpus, 4);
        assert_int_equal(f->inv->cpus[3].id, 9);
        assert_int_equal(f->inv->cpus[3].core, 9);
        assert_int_equal(f->inv->cpus[3].node, 0);
        assert_note(f->inv, "CPU 0 and 3 more", true);
        tree_unlink(f->root, "sys/devices/system/node/node0/cpulist");
        scan(f);
        assert_int_equal(f->inv->n_cpus, 0);
        assert_note(f->inv, "online CPUs", true);
}

TEST_WITH(test_refresh, setup, teardown) {
        Fixture *f = *state;
        const NumaNode *node;

        node0_has_pages(f, 2048, "512", "512");
        scan(f);
        node = inventory_find_node(f->inv, 0);
        assert_int_equal(numa_refresh(f->fs, f->inv), 0);
        assert_int_equal(cpuset_count(&node->cpus), 2);
        assert_int_equal(node->distance[0], 10);
        assert_int_equal(f->inv->cpus[1].core, 0);
        assert_int_equal(f->inv->cpus[1].node, 0);

        node0_has_pages(f, 2048, "600", "7");
        nodes_have(f, "node0/meminfo", "Node 0 MemTotal: 8388608 kB");
        cpus_have(f, "online", "1");
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

        cpus_have(f, "online", "0-1");
        assert_int_equal(numa_refresh(f->fs, f->inv), 0);
        assert_int_equal(f->inv->n_cpus, 2);
        assert_int_equal(f->inv->cpus[1].core, 0);
}

TEST_WITH(test_refresh_other_nodes, setup, teardown) {
        Fixture *f = *state;

        scan(f);
        nodes_have(f, "node0/meminfo", "Node 0 MemTotal: 1 kB");
        nodes_have(f, "online", "0-1");
        assert_int_equal(numa_refresh(f->fs, f->inv), -ESTALE);
        nodes_have(f, "online", "1");
        assert_int_equal(numa_refresh(f->fs, f->inv), -ESTALE);
        assert_int_equal(f->inv->nodes[0].memory, 16ULL << 30);
}
