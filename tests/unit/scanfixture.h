/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The small machine that the tests of the scan damage. Include after unit.h. */

#include "treefixture.h"
#include "util/strings.h"

#define NIC "pci0000:00/0000:00:01.0/0000:01:00.0"

/* Writes facts of CPUs and NUMA nodes: "node0/distance", "cpu0/topology/core_cpus_list". */
static inline void nodes_have(const Fixture *f, const char *name, const char *value) {
        _cleanup_free_ char *path = NULL;

        assert_int_equal(string_replace(&path, "sys/devices/system/node/%s", name), 0);
        tree_file(f->root, path, value);
}

static inline void cpus_have(const Fixture *f, const char *name, const char *value) {
        _cleanup_free_ char *path = NULL;

        assert_int_equal(string_replace(&path, "sys/devices/system/cpu/%s", name), 0);
        tree_file(f->root, path, value);
}

/* A root port with a NIC on one node with two CPUs. */
static inline int setup(void **state) {
        Fixture *f = fixture_new(state);

        tree_device(f->root, "pci0000:00/0000:00:01.0", "0x8086", "0x2030", "0x060400");
        tree_device(f->root, NIC, "0x8086", "0x10c9", "0x020000");
        cpus_have(f, "online", "0-1");
        cpus_have(f, "cpu0/topology/thread_siblings_list", "0-1");
        cpus_have(f, "cpu0/topology/physical_package_id", "0");
        cpus_have(f, "cpu1/topology/core_cpus_list", "0-1");
        cpus_have(f, "cpu1/topology/physical_package_id", "0");
        nodes_have(f, "online", "0");
        nodes_have(f, "node0/cpulist", "0-1");
        nodes_have(f, "node0/distance", "10");
        nodes_have(f, "node0/meminfo", "Node 0 MemTotal:       16777216 kB\nNode 0 MemFree: 15728640 kB");
        return 0;
}

/* With a second node, the node of a device may be unknown. */
static inline void add_node(const Fixture *f) {
        nodes_have(f, "online", "0-1");
        nodes_have(f, "node0/distance", "10 20");
        nodes_have(f, "node1/cpulist", "");
        nodes_have(f, "node1/distance", "20 10");
        nodes_have(f, "node1/meminfo", "Node 1 MemTotal:       16777216 kB\nNode 1 MemFree: 15728640 kB");
}

static inline const PciDevice *scan_nic(Fixture *f) {
        const PciDevice *nic;

        scan(f);
        nic = find(f, "0000:01:00.0");
        assert_non_null(nic);
        return nic;
}

static inline void nic_has(const Fixture *f, const char *name, const char *value) {
        tree_attribute(f->root, "0000:01:00.0", name, value);
}

static inline void assert_fault(const PciDevice *dev, const char *attribute) {
        assert_non_null(dev->fault);
        assert_non_null(strstr(dev->fault, attribute));
}

static inline void assert_note(const Inventory *inv, const char *part, bool expected) {
        bool found = false;

        for (size_t i = 0; i < inv->n_notes; i++)
                found = found || strstr(inv->notes[i], part);
        assert_int_equal(found, expected);
}
