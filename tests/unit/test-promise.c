/* SPDX-License-Identifier: GPL-2.0-or-later */

/* What a configuration means for what was promised under an earlier one. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/device-state.h"
#include "core/promise.h"
#include "nodefixture.h"

#define GPU "0000:01:00.0"
#define PF  "0000:02:00.0"
#define VF  "0000:02:00.1"

static TestNode *make_node(bool with_vf) {
        TestNode *t = node_new();
        PciDevice *pf;

        node_numa(t, 0, 0, 4, 1, 8 * GIB);
        node_gpu(t, "pci0000:00/0000:00:01.0/" GPU, 0, 1);
        node_device(t, "pci0000:00/0000:00:01.0/0000:01:00.1", 0x040300, 0, 1);
        pf = node_nic(t, "pci0000:00/0000:00:02.0/" PF, 0, 2);
        pf->type = PCI_TYPE_PF;
        pf->total_vfs = 8;
        if (with_vf)
                node_vf(t, "pci0000:00/0000:00:02.0/" VF, PF, 0, 3);
        return t;
}

/* Another configuration for a node that is ready. */
static void reconfigure(TestNode *t, const char *text) {
        policy_free(t->policy);
        config_free(t->config);
        assert_int_equal(config_parse("new.conf", text, strlen(text), &t->config), 0);
        assert_int_equal(policy_new(t->config, t->inventory, &t->policy), 0);
        t->context.config = t->config;
        t->context.policy = t->policy;
}

/* Promised while it was in pool (NULL: it went along), whatever the configuration says now. */
static Allocation *promise(TestNode *t, const char *name, const char *address, const char *pool) {
        const PciDevice *dev = node_find(t, address);
        Allocation *a = allocation_new(name);
        AllocationDevice *d = allocation_add_device(a, dev->address, DEVICE_ROLE_ASSIGNED);

        assert_non_null(d);
        d->vendor = dev->vendor;
        d->device = dev->device;
        d->subsystem_vendor = dev->subsystem_vendor;
        d->subsystem_device = dev->subsystem_device;
        assert_int_equal(string_copy(&d->path, dev->path), 0);
        assert_int_equal(string_copy(&d->pool, pool), 0);
        assert_int_equal(ledger_adopt(t->ledger, a, NULL), VERDICT_NONE);
        return a;
}

static void assert_check(TestNode *t, const char *config, const char *sentence) {
        _cleanup_refusal_ Refusal why = { 0 };
        Verdict v;

        reconfigure(t, config);
        v = promise_check(t->policy, t->ledger, &why);
        if (!sentence) {
                if (v != VERDICT_NONE)
                        fail_msg("'%s' gives '%s'", config, why.message);
                return;
        }
        assert_int_equal(v, VERDICT_INVALID_REQUEST);
        assert_string_equal(why.message, sentence);
        assert_non_null(why.remedy);
        assert_true(why.has_device);
}

/* C6 */
static void test_vfs_of_an_allocated_pf(void **state) {
        _cleanup_node_ TestNode *t = make_node(false);
        Allocation *a;

        node_ready(t, "");
        assert_check(t, "[Pool vf]\nMatch=type=vf\nVirtualFunctions=2\n", NULL);
        a = promise(t, "vm1", PF, "nic");
        assert_check(t, "\n[Pool vf]\nMatch=type=vf\nVirtualFunctions=2\n",
                     "The PF " PF
                     " is held by 'vm1', and VirtualFunctions= of pool 'vf' (new.conf:2) would create VFs on "
                     "it: the same hardware twice.");
        assert_check(t, "[Pool vf]\nMatch=type=vf\n", NULL);
        assert_check(t, "[Pool nic]\nMatch=type=pf\n", NULL);
        assert_check(t, "[Pool vf]\nMatch=type=vf pf=0000:03:*\nVirtualFunctions=2\n", NULL);
        assert_check(t, "[Pool vf]\nMatch=type=vf\nVirtualFunctions=2\n[Exclude]\nMatch=address=" PF "\n", NULL);
        assert_check(t, "[Pool vf]\nMatch=type=vf\nVirtualFunctions=2\n[Exclude]\nMatch=oops\n", NULL);
        /* Another card is at its place. */
        a->devices[0].device ^= 1;
        assert_check(t, "[Pool vf]\nMatch=type=vf\nVirtualFunctions=2\n", NULL);
}

static void test_vfs_that_are_there(void **state) {
        _cleanup_node_ TestNode *t = make_node(true);

        node_ready(t, "");
        promise(t, "vm1", PF, "nic");
        assert_check(t, "[Pool a]\nMatch=vendor=10de\n[Pool vf]\nMatch=type=vf\n",
                     "The PF " PF " is held by 'vm1', and pool 'vf' (new.conf:3) offers its own VF " VF
                     ": the same hardware twice.");
        assert_check(t, "[Pool vf]\nMatch=type=vf\n[Exclude]\nMatch=type=vf\n", NULL);
        assert_check(t, "[Pool a]\nMatch=vendor=10de\n", NULL);
}

static void assert_dropped(TestNode *t, const char *config, bool dropped) {
        const Allocation *a = ledger_find(t->ledger, "vm1");

        reconfigure(t, config);
        if (promise_is_dropped(t->policy, a, node_find(t, GPU)) != dropped)
                fail_msg("'%s' is taken wrongly", config);
        assert_int_equal(promise_has_dropped(t->policy, a), dropped);
}

/* Promised, and in no pool any more. */
static void test_dropped(void **state) {
        _cleanup_node_ TestNode *t = make_node(false);

        node_ready(t, "[Pool gpu]\nMatch=class=03\n");
        /* Its audio goes along, and no pool ever had that. */
        assert_int_equal(node_allocate(t, "vm1", ASK(.pools = "gpu=1"), NULL), VERDICT_NONE);
        assert_int_equal(ledger_find(t->ledger, "vm1")->n_devices, 2);
        assert_dropped(t, "[Pool gpu]\nMatch=class=03\n", false);
        assert_dropped(t, "[Pool other]\nMatch=class=03\n", false);
        assert_dropped(t, "[Pool nic]\nMatch=class=02\n", true);
        assert_dropped(t, "", true);
        assert_dropped(t, "[Pool gpu]\nMatch=class=03\n[Exclude]\nMatch=class=03\n", true);
        /* Nobody can tell. */
        assert_dropped(t, "[Pool gpu]\nMatch=class=03\n[Exclude]\nMatch=oops\n", false);
}

/* A device of the group that was held without being asked for is never dropped. */
static void test_not_asked_for(void **state) {
        _cleanup_node_ TestNode *t = make_node(false);

        node_ready(t, "");
        promise(t, "vm1", GPU, NULL);
        assert_dropped(t, "", false);
}

static void test_reason(void **state) {
        _cleanup_node_ TestNode *t = make_node(false);
        _cleanup_refusal_ Refusal why = { 0 };

        node_ready(t, "[Pool gpu]\nMatch=class=03\n");
        assert_int_equal(node_allocate(t, "vm1", ASK(.pools = "gpu=1"), NULL), VERDICT_NONE);
        assert_int_equal(device_state(&t->context, node_find(t, GPU), &why), DEVICE_STATE_ALLOCATED);
        assert_string_equal(why.message, GPU " is held by 'vm1'.");
        reconfigure(t, "");
        assert_int_equal(device_state(&t->context, node_find(t, GPU), &why), DEVICE_STATE_ALLOCATED);
        assert_int_equal(why.verdict, VERDICT_ALLOCATED);
        assert_string_equal(why.message, GPU " is held by 'vm1' and in no pool any more: it goes back to the host when "
                                             "'vm1' is released.");
        reconfigure(t, "[Pool gpu]\nMatch=class=03\n[Exclude]\nMatch=class=03\n");
        assert_int_equal(device_state(&t->context, node_find(t, GPU), &why), DEVICE_STATE_ALLOCATED);
        assert_non_null(strstr(why.message, "and excluded now: it goes back"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_vfs_of_an_allocated_pf),
                cmocka_unit_test(test_vfs_that_are_there),
                cmocka_unit_test(test_dropped),
                cmocka_unit_test(test_not_asked_for),
                cmocka_unit_test(test_reason),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
