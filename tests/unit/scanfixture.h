/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The small machine that the tests of the scan damage. Include after cmocka.h. */

#include "host/scan.h"
#include "tmptree.h"

#define NIC "pci0000:00/0000:00:01.0/0000:01:00.0"

typedef struct Fixture {
        char *root;
        Sysfs *fs;
        Inventory *inv;
} Fixture;

/* A root port with a NIC on one node with two CPUs. */
static inline int setup(void **state) {
        Fixture *f = calloc(1, sizeof(*f));

        assert_non_null(f);
        f->root = tree_new();
        tree_device(f->root, "pci0000:00/0000:00:01.0", "0x8086", "0x2030", "0x060400");
        tree_device(f->root, NIC, "0x8086", "0x10c9", "0x020000");
        tree_file(f->root, "sys/devices/system/cpu/online", "0-1");
        tree_file(f->root, "sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0-1");
        tree_file(f->root, "sys/devices/system/cpu/cpu0/topology/physical_package_id", "0");
        tree_file(f->root, "sys/devices/system/cpu/cpu1/topology/core_cpus_list", "0-1");
        tree_file(f->root, "sys/devices/system/cpu/cpu1/topology/physical_package_id", "0");
        tree_file(f->root, "sys/devices/system/node/online", "0");
        tree_file(f->root, "sys/devices/system/node/node0/cpulist", "0-1");
        tree_file(f->root, "sys/devices/system/node/node0/distance", "10");
        tree_file(f->root, "sys/devices/system/node/node0/meminfo",
                  "Node 0 MemTotal:       16777216 kB\nNode 0 MemFree: 1 kB");
        assert_int_equal(sysfs_new(f->root, &f->fs), 0);
        *state = f;
        return 0;
}

static inline int teardown(void **state) {
        Fixture *f = *state;

        (void) inventory_free(f->inv);
        (void) sysfs_free(f->fs);
        tree_done(f->root);
        free(f);
        return 0;
}

static inline void scan(Fixture *f) {
        f->inv = inventory_free(f->inv);
        assert_int_equal(scan_inventory(f->fs, &f->inv), 0);
}

static inline const PciDevice *find(const Fixture *f, const char *address) {
        PciAddress a;

        assert_int_equal(pci_address_parse(address, &a), 0);
        return inventory_find(f->inv, a);
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
