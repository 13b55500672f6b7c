/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The state of a device for schedulers, alone and as JSON; and round trips of the enum tables. */

#include "unit.h"

#include "bus/json.h"
#include "model/json-parse.h"
#include "nodefixture.h"

#define GPU "0000:01:00.0"

static TestNode *make_node(void) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, 4, 1, 8 * GIB);
        node_gpu(t, "pci0000:00/0000:00:01.0/" GPU, -1, 1);
        node_device(t, "pci0000:00/0000:00:01.0/0000:01:00.1", 0x040300, -1, 1);
        node_nic(t, "pci0000:00/0000:00:02.0/0000:02:00.0", 0, 2);
        node_vf(t, "pci0000:00/0000:00:02.0/0000:02:00.1", "0000:02:00.0", 0, 3);
        node_ready(t, "[Pool gpu]\nMatch=vendor=10de\n[Pool vf]\nMatch=type=vf\n");
        return t;
}

static void assert_state(const TestNode *t, const char *address, DeviceState expected, const char *words) {
        _cleanup_refusal_ Refusal why = { 0 };
        DeviceState s = device_state(&t->context, node_find(t, address), &why);

        if (s != expected)
                fail_msg("%s is %s, not %s", address, device_state_to_string(s), device_state_to_string(expected));
        if (words)
                assert_says(&why, words);
        else
                assert_null(why.message);
        assert_int_equal(device_state(&t->context, node_find(t, address), NULL), expected);
}

TEST(test_states) {
        _cleanup_node_ TestNode *t = make_node();

        assert_state(t, GPU, DEVICE_STATE_AVAILABLE, NULL);
        assert_state(t, "0000:02:00.0", DEVICE_STATE_HOST, "'vf'");
        assert_int_equal(node_allocate(t, "vm7", ASK(.pools = "gpu=1 vf=1"), NULL), VERDICT_NONE);
        assert_state(t, GPU, DEVICE_STATE_ALLOCATED, "'vm7'");
        assert_state(t, "0000:01:00.1", DEVICE_STATE_ALLOCATED, "'vm7'");
        assert_state(t, "0000:02:00.0", DEVICE_STATE_HOST, "'vf'");
        node_release(t, "vm7");
        assert_int_equal(device_status_set(&t->status, address_of(GPU), DEVICE_STUCK, "It is stuck."), 0);
        assert_state(t, GPU, DEVICE_STATE_STUCK, "It is stuck.");
}

TEST(test_blocked) {
        _cleanup_node_ TestNode *t = make_node();

        assert_int_equal(device_status_set(&t->status, address_of(GPU), DEVICE_BUSY, "A job works on it."), 0);
        assert_state(t, GPU, DEVICE_STATE_HOST, "A job works on it.");
        /* Its neighbour in the group is unavailable too. */
        assert_state(t, "0000:01:00.1", DEVICE_STATE_HOST, "A job works on it.");
        assert_int_equal(node_available(t, "gpu"), 0);
        assert_int_equal(device_status_set(&t->status, address_of(GPU), DEVICE_BUSY, NULL), 0);
        assert_int_equal(device_status_set(&t->status, address_of("0000:01:00.1"), DEVICE_STUCK, "It is stuck."), 0);
        assert_state(t, GPU, DEVICE_STATE_STUCK, "It is stuck.");
        assert_int_equal(node_available(t, "gpu"), 0);
        assert_int_equal(device_status_set(&t->status, address_of("0000:01:00.1"), DEVICE_STUCK, NULL), 0);
        assert_int_equal(node_allocate(t, "vm7", ASK(.pools = "gpu=1"), NULL), VERDICT_NONE);
        assert_int_equal(device_status_set(&t->status, address_of(GPU), DEVICE_STUCK, "It is stuck."), 0);
        assert_state(t, GPU, DEVICE_STATE_STUCK, "It is stuck.");
        assert_state(t, "0000:01:00.1", DEVICE_STATE_ALLOCATED, "'vm7'");
}

/* The planner skips a device in use and the other members of its IOMMU group, but its state is unchanged. */
TEST(test_in_use) {
        const PciAddress used[] = { address_of("0000:01:00.1") };
        _cleanup_node_ TestNode *t = make_node();

        t->context.in_use = used;
        t->context.n_in_use = ELEMENTSOF(used);
        assert_int_equal(node_allocate(t, "vm7", ASK(.pools = "gpu=1"), NULL), VERDICT_INSUFFICIENT_DEVICES);
        assert_int_equal(node_allocate(t, "vm7", ASK(.pools = "vf=1"), NULL), VERDICT_NONE);
        assert_state(t, GPU, DEVICE_STATE_AVAILABLE, NULL);
}

/* One that does not answer is nobody's, whoever has it may keep it, and its neighbour goes with it. */
TEST(test_unhealthy) {
        static const char pf[] = "0000:02:00.0", vf[] = "0000:02:00.1";
        _cleanup_node_ TestNode *t = make_node();

        assert_int_equal(device_status_set(&t->status, address_of(GPU), DEVICE_UNHEALTHY, "It is dead."), 0);
        assert_int_equal(device_status_set(&t->status, address_of(GPU), DEVICE_UNHEALTHY, "It is quite dead."), 0);
        assert_state(t, GPU, DEVICE_STATE_UNHEALTHY, "It is quite dead.");
        assert_state(t, "0000:01:00.1", DEVICE_STATE_UNHEALTHY, "It is quite dead.");
        assert_state(t, vf, DEVICE_STATE_AVAILABLE, NULL);
        assert_int_equal(node_available(t, "gpu"), 0);
        assert_int_equal(device_status_check_blocked(&t->status, address_of(GPU), NULL), VERDICT_NONE);
        assert_int_equal(device_status_set(&t->status, address_of(GPU), DEVICE_UNHEALTHY, NULL), 0);
        assert_null(device_status_get(&t->status, address_of(GPU), DEVICE_UNHEALTHY));
        assert_state(t, GPU, DEVICE_STATE_AVAILABLE, NULL);
        assert_int_equal(device_status_set(&t->status, address_of(pf), DEVICE_UNHEALTHY, "It is dead."), 0);
        assert_state(t, vf, DEVICE_STATE_UNHEALTHY, "It is dead.");
        assert_int_equal(device_status_set(&t->status, address_of(pf), DEVICE_UNHEALTHY, NULL), 0);
        assert_int_equal(node_allocate(t, "vm7", ASK(.pools = "gpu=1"), NULL), VERDICT_NONE);
        assert_int_equal(device_status_set(&t->status, address_of(GPU), DEVICE_UNHEALTHY, "It is dead."), 0);
        assert_state(t, GPU, DEVICE_STATE_UNHEALTHY, "It is dead.");
        assert_state(t, "0000:01:00.1", DEVICE_STATE_ALLOCATED, "'vm7'");
        assert_int_equal(device_status_set(&t->status, address_of(GPU), DEVICE_STUCK, "It is stuck."), 0);
        assert_state(t, GPU, DEVICE_STATE_STUCK, "It is stuck.");
}

/* Only a PF whose VFs a pool wants can be contested. */
TEST(test_contested) {
        static const char pf[] = "0000:02:00.0";

        for (int wanted = 0; wanted < 2; wanted++) {
                _cleanup_node_ TestNode *t = node_new();

                node_numa(t, 0, 0, 4, 1, 8 * GIB);
                node_nic(t, "pci0000:00/0000:00:02.0/0000:02:00.0", 0, 2)->total_vfs = 8;
                node_vf(t, "pci0000:00/0000:00:02.0/0000:02:00.1", pf, 0, 3);
                node_ready(t, wanted ? "[Pool vf]\nMatch=type=vf\nVirtualFunctions=4\n" : "[Pool vf]\nMatch=type=vf\n");
                assert_int_equal(device_status_set_contested(&t->status, address_of(pf), 4, "Somebody did it."), 0);
                assert_int_equal(device_status_set_contested(&t->status, address_of(pf), 4, "Somebody else did it."),
                                 0);
                assert_int_equal(device_status_find(&t->status, address_of(pf))->n_vfs, 4);
                if (wanted)
                        assert_state(t, pf, DEVICE_STATE_CONTESTED, "Somebody else did it.");
                else
                        assert_state(t, pf, DEVICE_STATE_HOST, "'vf'");
                assert_state(t, "0000:02:00.1", DEVICE_STATE_AVAILABLE, NULL);
                assert_int_equal(device_status_set(&t->status, address_of(pf), DEVICE_CONTESTED, NULL), 0);
                assert_state(t, pf, DEVICE_STATE_HOST, "'vf'");
        }
}

static const char *text_of(json_object *o, const char *key) {
        json_object *v = NULL;

        if (!json_object_object_get_ex(o, key, &v))
                fail_msg("no member %s", key);
        return v ? json_object_get_string(v) : NULL;
}

TEST(test_json_device) {
        _cleanup_node_ TestNode *t = make_node();
        const PciDevice *gpu = node_find(t, GPU);
        _cleanup_json_ json_object *o = NULL;

        t->inventory->devices[inventory_device_index(t->inventory, gpu)].numa_node = -1;
        o = json_device(&t->context, gpu);
        assert_string_equal(text_of(o, "address"), GPU);
        assert_string_equal(text_of(o, "vendor"), "10de");
        assert_string_equal(text_of(o, "class"), "030200");
        assert_string_equal(text_of(o, "pool"), "gpu");
        assert_string_equal(text_of(o, "state"), "available");
        assert_string_equal(text_of(o, "driver"), "nvidia");
        assert_null(text_of(o, "numa_node")); /* unknown is not zero */
        assert_null(text_of(o, "allocation"));
        assert_string_equal(text_of(o, "verdict"), "none");
}

TEST(test_json_bars) {
        _cleanup_node_ TestNode *t = node_new();
        _cleanup_json_ json_object *o = NULL;
        PciDevice *gpu = node_gpu(t, "pci0000:00/0000:00:01.0/" GPU, 0, 1);

        gpu->bar_size[0] = 16 << 20;
        gpu->bar_size[3] = 32 << 20;
        node_ready(t, "");
        o = json_device(&t->context, node_find(t, GPU));
        assert_string_equal(text_of(o, "bars"),
                            "[ { \"index\": 0, \"size\": 16777216 }, { \"index\": 3, \"size\": 33554432 } ]");
}

/* Characters that JSON escapes, one at a time, and characters that it does not escape. */
TEST(test_json_strings) {
        static const char *const names[] = { "a \"b\"", "a\\b", "a\tb", "\x01", "a/b \x7f", "\xc3\xa9", "" };
        _cleanup_node_ TestNode *t = node_new();
        PciDevice *gpu = node_gpu(t, "pci0000:00/0000:00:01.0/" GPU, 0, 1);

        assert_int_equal(string_copy(&gpu->reset_methods, "flr bus\n"), 0);
        gpu->bar_size[1] = UINT64_MAX;
        node_ready(t, "");
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                _cleanup_json_ json_object *o = NULL;

                assert_int_equal(string_copy(&t->inventory->devices[0].name, names[i]), 0);
                o = json_device(&t->context, &t->inventory->devices[0]);
                assert_string_equal(text_of(o, "name"), names[i]);
                assert_string_equal(text_of(o, "reset_methods"), "[ \"flr\", \"bus\" ]");
                assert_string_equal(text_of(o, "bars"), "[ { \"index\": 1, \"size\": 18446744073709551615 } ]");
        }
}

TEST(test_json_plan) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_json_ json_object *o = NULL;
        json_object *steps = NULL, *devices = NULL;

        assert_int_equal(node_plan(t, ASK(.pools = "gpu=1", .cpus = 2), &plan, NULL), VERDICT_NONE);
        o = json_plan(&t->context, plan);
        assert_null(text_of(o, "name"));
        assert_null(text_of(o, "generation"));
        assert_string_equal(text_of(o, "cpus"), "0-1");
        assert_true(json_object_object_get_ex(o, "steps", &steps) && json_object_object_get_ex(o, "devices", &devices));
        assert_int_equal(json_object_array_length(devices), 2);
        assert_int_equal(json_object_array_length(steps), 6);
        assert_string_equal(json_object_get_string(json_object_array_get_idx(steps, 0)),
                            "reserve " GPU " for driver vfio-pci");
}

TEST(test_json_describe_names_what_is_missing) {
        _cleanup_node_ TestNode *t = make_node();
        _cleanup_json_ json_object *o = NULL;
        _cleanup_free_ char *text = NULL;
        json_object *devices = NULL, *present, *missing;
        Allocation *a = allocation_new("vm1");
        AllocationDevice *d = allocation_add_device(a, address_of("0000:99:00.0"), DEVICE_ROLE_HELD);

        assert_non_null(d);
        d->vendor = 0x10de;
        assert_int_equal(ledger_adopt(t->ledger, a, NULL), VERDICT_NONE);
        assert_int_equal(string_copy(&t->inventory->devices[0].name, "a\nb"), 0);
        text = json_describe(&t->context, "0", 0);
        assert_non_null(text);
        assert_int_equal(json_parse(text, strlen(text), &o), 0);
        assert_true(json_object_object_get_ex(o, "devices", &devices));
        present = json_object_array_get_idx(devices, 0);
        missing = json_object_array_get_idx(devices, json_object_array_length(devices) - 1);
        assert_string_equal(text_of(missing, "address"), "0000:99:00.0");
        assert_string_equal(text_of(missing, "state"), "missing");
        assert_string_equal(text_of(missing, "allocation"), "vm1");
        assert_string_equal(text_of(missing, "vendor"), "10de");
        assert_null(text_of(missing, "class"));
        assert_null(text_of(missing, "isolated"));
        assert_int_equal(json_object_object_length(missing), json_object_object_length(present));
        json_object_object_foreach(present, key, value) {
                (void) value;
                (void) text_of(missing, key);
        }
        assert_null(strchr(text, '\n'));
}

#define assert_table(type, max, name)                                                                                  \
        for (int i = 0; i < (int) (max); i++)                                                                          \
                assert_int_equal(name##_from_string(name##_to_string((type) i)), i);                                   \
        assert_true((int) name##_from_string("no such") < 0)

TEST(test_tables) {
        assert_table(AllocationState, _ALLOCATION_STATE_MAX, allocation_state);
        assert_table(DeviceRole, _DEVICE_ROLE_MAX, device_role);
}
