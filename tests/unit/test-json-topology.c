/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The JSON of the node as a tree: order, places, free resources, distances. */

#include <stdio.h>

#include "unit.h"

#include "bus/json.h"
#include "nodefixture.h"

#define ROOT "pci0000:10/0000:10:01.0/0000:11:00.0"

/* Two nodes: on node 0 a switch with a GPU and a NIC that has two VFs, on node 1 a GPU of its own and a device of no
 * known node. */
static TestNode *make_node(const char *config) {
        TestNode *t = node_new();
        PciDevice *pf;

        node_numa(t, 0, 0, 8, 2, 64 * GIB);
        node_hugepages(node_numa(t, 1, 8, 8, 2, 64 * GIB), GIB, 8, 6);
        node_bridge(t, "pci0000:10/0000:10:01.0", 0, 1);
        node_bridge(t, ROOT, 0, 2);
        node_bridge(t, ROOT "/0000:12:00.0", 0, 3);
        node_bridge(t, ROOT "/0000:12:01.0", 0, 4);
        node_gpu(t, ROOT "/0000:12:00.0/0000:13:00.0", 0, 5);
        pf = node_nic(t, ROOT "/0000:12:01.0/0000:14:00.0", 0, 6);
        pf->type = PCI_TYPE_PF;
        pf->total_vfs = 2;
        node_vf(t, ROOT "/0000:12:01.0/0000:14:00.1", "0000:14:00.0", 0, 7);
        node_vf(t, ROOT "/0000:12:01.0/0000:14:00.2", "0000:14:00.0", 0, 8);
        node_gpu(t, "pci0000:20/0000:20:00.0", 1, 9);
        node_device(t, "pci0000:20/0000:20:1f.0", 0x060100, 1, 10)->is_bridge = false;
        node_device(t, "pci0000:20/0000:20:02.0", 0x010802, -1, 11);
        node_device(t, "pci0000:20/0000:20:1e.0", 0x130000, 1, 12);
        node_device(t, "pci0000:20/0000:20:1d.0", 0x110100, 1, 13);
        node_ready(t, config);
        return t;
}

#define POOLS "[Pool gpu]\nMatch=class=03\n[Pool vf]\nMatch=type=vf\n"

static json_object *member_of(json_object *o, const char *key) {
        json_object *value = NULL;

        assert_true(json_object_object_get_ex(o, key, &value));
        return value;
}

/* Returns the text of one member, without the printer's spaces, also for arrays and objects. */
static const char *text_of(json_object *o, const char *key) {
        json_object *value = member_of(o, key);

        return value ? json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN) : "null";
}

static json_object *find_device(json_object *topology, const char *address) {
        json_object *devices = member_of(topology, "devices");

        for (size_t i = 0; i < json_object_array_length(devices); i++) {
                json_object *o = json_object_array_get_idx(devices, i);

                if (streq(json_object_get_string(member_of(o, "address")), address))
                        return o;
        }
        fail_msg("%s is not there", address);
        return NULL;
}

static void assert_member(json_object *o, const char *key, const char *expected) {
        assert_string_equal(text_of(o, key), expected);
}

typedef struct DeviceMember {
        const char *address, *key, *expected;
} DeviceMember;

static void assert_device_members(json_object *topology, const DeviceMember *members, size_t n) {
        for (size_t i = 0; i < n; i++) {
                const char *text = text_of(find_device(topology, members[i].address), members[i].key);

                if (!streq(text, members[i].expected))
                        fail_msg("%s: %s is %s, not %s", members[i].address, members[i].key, text, members[i].expected);
        }
}

/* Each device follows its parent directly. */
TEST(test_order) {
        static const char *const expected[] = {
                "0000:10:01.0", "0000:11:00.0", "0000:12:00.0", "0000:13:00.0", "0000:12:01.0",
                "0000:14:00.0", "0000:14:00.1", "0000:14:00.2", "0000:20:00.0", "0000:20:02.0",
                "0000:20:1d.0", "0000:20:1e.0", "0000:20:1f.0",
        };
        _cleanup_node_ TestNode *t = make_node(POOLS);
        _cleanup_json_ json_object *topology = json_topology(&t->context);
        json_object *devices = member_of(topology, "devices");

        assert_int_equal(json_object_array_length(devices), ELEMENTSOF(expected));
        for (size_t i = 0; i < ELEMENTSOF(expected); i++)
                assert_string_equal(json_object_get_string(member_of(json_object_array_get_idx(devices, i), "address")),
                                    expected[i]);
}

TEST(test_places) {
        static const DeviceMember members[] = {
                { "0000:14:00.2", "above", "\"0000:14:00.0\"" },
                { "0000:14:00.2", "root", "\"pci0000:10\"" },
                { "0000:14:00.2", "type", "\"vf\"" },
                { "0000:14:00.2", "pool", "\"vf\"" },
                { "0000:14:00.2", "state", "\"available\"" },
                { "0000:13:00.0", "above", "\"0000:12:00.0\"" },
                { "0000:13:00.0", "kind", "\"gpu\"" },
                { "0000:13:00.0", "numa_node", "0" },
                { "0000:12:00.0", "kind", "\"bridge\"" },
                { "0000:20:1f.0", "kind", "\"platform\"" },
                { "0000:20:1e.0", "kind", "\"platform\"" },
                { "0000:20:1d.0", "kind", "\"platform\"" },
                { "0000:20:02.0", "kind", "\"other\"" },
                { "0000:20:02.0", "numa_node", "null" },
                { "0000:20:02.0", "above", "null" },
                { "0000:20:02.0", "pool", "null" },
                { "0000:20:02.0", "state", "\"host\"" },
        };
        _cleanup_node_ TestNode *t = make_node(POOLS);
        _cleanup_json_ json_object *topology = json_topology(&t->context);

        assert_device_members(topology, members, ELEMENTSOF(members));
}

/* The root is the host bridge and its ancestors. Bridges outside of the inventory are skipped. */
TEST(test_roots) {
        static const DeviceMember members[] = {
                { "0000:10:00.0", "root", "\"platform\\/soc\\/pci0000:10\"" },
                { "0000:20:00.0", "root", "\"platform\\/soc\\/pci0000:20\"" },
                { "0000:31:00.0", "root", "\"pci0000:30\"" },
                { "0000:40:00.0", "root", "null" },
        };
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_json_ json_object *topology = NULL;

        node_numa(t, 0, 0, 4, 1, 8 * GIB);
        node_gpu(t, "platform/soc/pci0000:10/0000:10:00.0", 0, 1);
        node_gpu(t, "platform/soc/pci0000:20/0000:20:00.0", 0, 2);
        node_gpu(t, "pci0000:30/0000:30:01.0/0000:31:00.0", 0, 3);
        node_gpu(t, "elsewhere/0000:40:00.0", 0, 4);
        node_ready(t, "");
        topology = json_topology(&t->context);
        assert_device_members(topology, members, ELEMENTSOF(members));
}

/* A VF whose PF is elsewhere, or missing, is placed by its own path. */
TEST(test_stray_vf) {
        static const DeviceMember members[] = {
                { "0000:21:00.1", "above", "\"0000:20:01.0\"" },
                { "0000:21:00.2", "above", "\"0000:20:01.0\"" },
                { "0000:20:00.1", "above", "null" },
        };
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_json_ json_object *topology = NULL;

        node_numa(t, 0, 0, 4, 1, 8 * GIB);
        node_nic(t, "pci0000:10/0000:10:00.0", 0, 1)->type = PCI_TYPE_PF;
        node_bridge(t, "pci0000:20/0000:20:01.0", 0, 2);
        node_vf(t, "pci0000:20/0000:20:01.0/0000:21:00.1", "0000:10:00.0", 0, 3);
        node_vf(t, "pci0000:20/0000:20:01.0/0000:21:00.2", "0000:77:00.0", 0, 4);
        node_vf(t, "pci0000:20/0000:20:00.1", "0000:10:00.0", 0, 5);
        node_ready(t, "");
        topology = json_topology(&t->context);
        assert_int_equal(json_object_array_length(member_of(topology, "devices")), 5);
        assert_device_members(topology, members, ELEMENTSOF(members));
}

/* Counts whole cores. Allocated resources are not free. */
TEST(test_node) {
        _cleanup_node_ TestNode *t = make_node("HousekeepingCpus=8\n" POOLS);
        _cleanup_json_ json_object *topology = NULL;
        json_object *node, *cpus;

        assert_int_equal(node_allocate(t, "vm",
                                       ASK(.pools = "gpu=1", .cpus = 3, .memory = 3 * GIB, .page_size = GIB,
                                           .numa = NUMA_POLICY_REQUIRED),
                                       NULL),
                         VERDICT_NONE);
        topology = json_topology(&t->context);
        node = json_object_array_get_idx(member_of(topology, "nodes"), 1);
        cpus = member_of(node, "cpus");
        assert_member(node, "id", "1");
        assert_member(node, "package", "1");
        assert_member(cpus, "total", "{\"cpus\":\"8-15\",\"cores\":4}");
        assert_member(cpus, "housekeeping", "{\"cpus\":\"8\",\"cores\":1}");
        assert_member(cpus, "allocated", "{\"cpus\":\"10-13\",\"cores\":2}");
        assert_member(cpus, "free", "{\"cpus\":\"14-15\",\"cores\":1}");
        assert_member(node, "memory_total", "68719476736");
        assert_member(node, "memory", "{\"total\":60129542144,\"free\":60129542144,\"allocated\":0}");
        /* Two of the pages are used by others, and the guest has not yet taken its three. */
        assert_member(node, "pages", "[{\"size\":1073741824,\"total\":8,\"free\":3,\"allocated\":3}]");
        assert_member(node, "distances", "{\"0\":20,\"1\":10}");
        assert_member(find_device(topology, "0000:20:00.0"), "allocation", "\"vm\"");
        assert_member(find_device(topology, "0000:20:00.0"), "state", "\"allocated\"");
        node = json_object_array_get_idx(member_of(topology, "nodes"), 0);
        assert_member(member_of(node, "cpus"), "allocated", "{\"cpus\":\"\",\"cores\":0}");
        assert_member(member_of(node, "cpus"), "housekeeping", "{\"cpus\":\"\",\"cores\":0}");
}

/* Ordinary memory: the free amount is the planner's, without the reserve. */
TEST(test_memory) {
        _cleanup_node_ TestNode *t = make_node("ReserveMemory=4G\n" POOLS);
        _cleanup_json_ json_object *topology = NULL;

        assert_int_equal(node_allocate(t, "vm", ASK(.cpus = 2, .memory = 10 * GIB), NULL), VERDICT_NONE);
        topology = json_topology(&t->context);
        assert_member(json_object_array_get_idx(member_of(topology, "nodes"), 0), "memory",
                      "{\"total\":68719476736,\"free\":64424509440,\"allocated\":0}");
        assert_member(json_object_array_get_idx(member_of(topology, "nodes"), 1), "memory",
                      "{\"total\":60129542144,\"free\":45097156608,\"allocated\":10737418240}");
}

/* GPUs precede NICs, VFs are left out, and the words are the planner's distances. */
TEST(test_matrix) {
        _cleanup_node_ TestNode *t = make_node(POOLS);
        _cleanup_json_ json_object *topology = json_topology(&t->context);
        json_object *matrix = member_of(topology, "matrix");

        assert_member(matrix, "devices", "[\"0000:13:00.0\",\"0000:20:00.0\",\"0000:14:00.0\"]");
        assert_member(matrix, "distances", "[[\"X\",\"SYS\",\"PIX\"],[\"SYS\",\"X\",\"SYS\"],[\"PIX\",\"SYS\",\"X\"]]");
}

/* In the order of nvidia-smi: without the display of a BMC, and before GPUs of other vendors. */
TEST(test_matrix_order) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_json_ json_object *topology = NULL;

        node_device(t, "pci0000:10/0000:10:00.0", 0x030000, 0, 1)->vendor = 0x1a03;
        node_gpu(t, "pci0000:10/0000:10:01.0", 0, 2)->vendor = 0x1002;
        node_nic(t, "pci0000:10/0000:10:02.0", 0, 3);
        node_gpu(t, "pci0000:10/0000:10:03.0", 0, 4);
        node_gpu(t, "pci0000:20/0000:20:00.0", 0, 5);
        node_ready(t, "");
        topology = json_topology(&t->context);
        assert_member(member_of(topology, "matrix"), "devices",
                      "[\"0000:10:03.0\",\"0000:20:00.0\",\"0000:10:01.0\",\"0000:10:02.0\"]");
        assert_member(find_device(topology, "0000:10:00.0"), "kind", "\"other\"");
}

/* Paths below a root port with a GPU have ACS and ATS of each device. */
TEST(test_paths) {
        _cleanup_node_ TestNode *t = make_node(POOLS);
        _cleanup_json_ json_object *topology = NULL;
        json_object *pairs, *path;
        PciAddress port;
        PciDevice *dev;

        assert_int_equal(pci_address_parse("0000:12:00.0", &port), 0);
        dev = t->inventory->devices + inventory_device_index(t->inventory, inventory_find(t->inventory, port));
        dev->acs = PCI_ACS_OPEN;
        dev->acs_capabilities = PCI_ACS_BIT(PCI_ACS_BIT_SV) | PCI_ACS_BIT(PCI_ACS_BIT_RR);
        dev->acs_enabled = PCI_ACS_BIT(PCI_ACS_BIT_RR);
        topology = json_topology(&t->context);
        assert_member(find_device(topology, "0000:12:00.0"), "acs_capability", "[\"SV\",\"RR\"]");
        assert_member(find_device(topology, "0000:12:00.0"), "acs_control", "[\"RR\"]");
        assert_member(find_device(topology, "0000:13:00.0"), "acs_control", "null");
        assert_member(find_device(topology, "0000:13:00.0"), "ats", "null");
        pairs = member_of(member_of(topology, "matrix"), "pairs");
        assert_int_equal(json_object_array_length(pairs), 1);
        assert_member(json_object_array_get_idx(pairs, 0), "gpu", "\"0000:13:00.0\"");
        assert_member(json_object_array_get_idx(pairs, 0), "peer", "\"0000:14:00.0\"");
        assert_member(json_object_array_get_idx(pairs, 0), "distance", "\"PIX\"");
        path = member_of(json_object_array_get_idx(pairs, 0), "path");
        assert_member(path, "peer_to_peer", "\"redirected\"");
        assert_member(path, "ats", "{\"0000:14:00.0\":null,\"0000:13:00.0\":null}");
}

/* Nodes above the size limit have no matrix. */
TEST(test_matrix_limit) {
        for (unsigned n = TOPOLOGY_MATRIX_MAX; n <= TOPOLOGY_MATRIX_MAX + 1; n++) {
                _cleanup_node_ TestNode *t = node_new();
                _cleanup_json_ json_object *topology = NULL;
                json_object *matrix;

                for (unsigned i = 0; i < n; i++) {
                        char path[64];

                        (void) snprintf(path, sizeof(path), "pci0000:%02x/0000:%02x:%02x.%x", i / 256, i / 256,
                                        i / 8 % 32, i % 8);
                        node_gpu(t, path, 0, (int) i);
                }
                node_ready(t, "");
                topology = json_topology(&t->context);
                matrix = member_of(topology, "matrix");
                assert_int_equal(matrix != NULL, n <= TOPOLOGY_MATRIX_MAX);
                if (matrix) {
                        assert_member(matrix, "pairs", "null");
                        assert_int_equal(json_object_array_length(member_of(matrix, "distances")), n);
                }
        }
}

/* An allocation whose device is gone is shown with its name. */
TEST(test_missing) {
        _cleanup_node_ TestNode *t = make_node(POOLS);
        _cleanup_node_ TestNode *without = node_new();
        _cleanup_json_ json_object *topology = NULL;
        json_object *o;

        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "gpu=1"), NULL), VERDICT_NONE);
        node_numa(without, 0, 0, 4, 1, 8 * GIB);
        node_ready(without, POOLS);
        without->context.ledger = t->ledger;
        topology = json_topology(&without->context);
        assert_int_equal(json_object_array_length(member_of(topology, "devices")), 1);
        o = json_object_array_get_idx(member_of(topology, "devices"), 0);
        assert_member(o, "state", "\"missing\"");
        assert_member(o, "allocation", "\"vm\"");
        assert_member(o, "pool", "\"gpu\"");
        assert_member(o, "vendor", "\"10de\"");
        assert_member(o, "numa_node", "null");
}
