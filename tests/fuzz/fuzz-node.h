/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The node for requests, configurations and templates, made once: a GPU with its audio function and a NIC with VFs on
 * NUMA node 0, a GPU and a NIC below one switch on node 1, and a GPU without a known node.
 */

#include "fuzz.h"

#include "../unit/nodefixture.h"

#define FUZZ_NODE_CONFIG                                                                                               \
        "[Pool gpu]\nMatch=class=0302\n[Pool vf]\nMatch=vendor=15b3 type=vf\n[Pool nic]\nMatch=address=0000:84:00.0\n"

static inline void fuzz_add_devices(TestNode *t) {
        node_bridge(t, "pci0000:00/0000:00:01.0", 0, 1);
        node_gpu(t, "pci0000:00/0000:00:01.0/0000:01:00.0", 0, 10)->bar_size[1] = 16 * GIB;
        node_device(t, "pci0000:00/0000:00:01.0/0000:01:00.1", 0x040300, 0, 10);
        node_bridge(t, "pci0000:00/0000:00:02.0", 0, 2);
        node_nic(t, "pci0000:00/0000:00:02.0/0000:02:00.0", 0, 11);
        node_vf(t, "pci0000:00/0000:00:02.0/0000:02:00.1", "0000:02:00.0", 0, 12);
        node_vf(t, "pci0000:00/0000:00:02.0/0000:02:00.2", "0000:02:00.0", 0, 13);
        node_vf(t, "pci0000:00/0000:00:02.0/0000:02:00.3", "0000:02:00.0", 0, 14);
        node_bridge(t, "pci0000:80/0000:80:01.0", 1, 20);
        node_bridge(t, "pci0000:80/0000:80:01.0/0000:81:00.0", 1, 21);
        node_bridge(t, "pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:00.0", 1, 22);
        node_gpu(t, "pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:00.0/0000:83:00.0", 1, 23)->bar_size[1] = 64 * GIB;
        node_bridge(t, "pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:01.0", 1, 24);
        node_nic(t, "pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:01.0/0000:84:00.0", 1, 25);
        node_bridge(t, "pci0000:c0/0000:c0:01.0", -1, 30);
        node_gpu(t, "pci0000:c0/0000:c0:01.0/0000:c1:00.0", -1, 31);
}

static inline TestNode *fuzz_node(void) {
        static TestNode *node;

        if (node)
                return node;
        node = node_new();
        node_hugepages(node_numa(node, 0, 0, 16, 2, 64 * GIB), 2ULL << 20, 4096, 4096);
        node_hugepages(node_numa(node, 1, 16, 16, 2, 64 * GIB), GIB, 16, 16);
        fuzz_add_devices(node);
        node_ready(node, FUZZ_NODE_CONFIG);
        return node;
}
