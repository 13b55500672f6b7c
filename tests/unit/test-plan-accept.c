/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Which cards an allocation may accept in place of its own. */

#include "unit.h"

#include "nodefixture.h"

#define GPU   "0000:01:00.0"
#define AUDIO "0000:01:00.1"
#define OTHER "0000:02:00.0"

/* A GPU with its audio function, and a GPU of another pool. */
static TestNode *make_node_with(const char *keys) {
        _cleanup_free_ char *config = string_format("[Pool gpu]\nMatch=class=0302 id=10de:0001\nMatch=class=0302 "
                                                    "id=10de:0003\n%s[Pool other]\nMatch=class=0302 id=10de:0002\n",
                                                    keys);
        TestNode *t = node_new();

        node_numa(t, 0, 0, 8, 1, 64 * GIB);
        node_gpu(t, "pci0000:00/0000:00:01.0/" GPU, 0, 1)->device = 1;
        node_device(t, "pci0000:00/0000:00:01.0/" AUDIO, 0x040300, 0, 1);
        node_gpu(t, "pci0000:00/0000:00:02.0/" OTHER, 0, 2)->device = 2;
        assert_non_null(config);
        node_ready(t, config);
        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "gpu=1"), NULL), VERDICT_NONE);
        return t;
}

static TestNode *make_node(void) {
        return make_node_with("");
}

static PciDevice *device(TestNode *t, const char *address) {
        return &t->inventory->devices[inventory_device_index(t->inventory, node_find(t, address))];
}

/* Replaces a card by another one, with the new card's policy. */
static void swap(TestNode *t, const char *address, uint16_t id) {
        device(t, address)->device = id;
        policy_free(t->policy);
        assert_int_equal(policy_new(t->config, t->inventory, &t->policy), 0);
        t->context.policy = t->policy;
}

static Allocation *vm(TestNode *t) {
        return ledger_find(t->ledger, "vm");
}

static void assert_refused(TestNode *t, Verdict expected, const char *words) {
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(plan_check_accept(&t->context, vm(t), &why), expected);
        assert_says(&why, words);
}

TEST(test_none_was_replaced) {
        _cleanup_node_ TestNode *t = make_node();

        assert_refused(t, VERDICT_WRONG_STATE, "vm");
        assert_null(plan_find_replacement(&t->context, &vm(t)->devices[0]));
}

TEST(test_missing) {
        _cleanup_node_ TestNode *t = make_node();

        vm(t)->devices[0].lost = true;
        assert_refused(t, VERDICT_MISSING, GPU);
}

TEST(test_another_model_of_the_pool) {
        _cleanup_node_ TestNode *t = make_node();
        AllocationDevice *d = &vm(t)->devices[0];

        swap(t, GPU, 3);
        assert_int_equal(plan_check_accept(&t->context, vm(t), NULL), VERDICT_NONE);
        assert_ptr_equal(plan_find_replacement(&t->context, d), node_find(t, GPU));
        device(t, GPU)->runtime_pm = true;
        d->prior_persistence = d->has_baseline = true;
        d->serial = 7;
        assert_int_equal(plan_accept(&t->context, vm(t)), 0);
        assert_int_equal(d->device, 3);
        assert_true(d->prior_runtime_pm && !d->prior_persistence && !d->has_baseline && d->serial == 0);
        assert_string_equal(d->prior_driver, "nvidia");
        assert_refused(t, VERDICT_WRONG_STATE, "vm");
}

/* A release restores the reset methods of the new card. */
TEST(test_reset_methods) {
        _cleanup_node_ TestNode *t = make_node_with("ResetMethod=flr\n");
        AllocationDevice *d = &vm(t)->devices[0];

        assert_string_equal(d->prior_reset, "flr");
        swap(t, GPU, 3);
        assert_int_equal(string_copy(&device(t, GPU)->reset_methods, "bus flr"), 0);
        assert_int_equal(plan_check_accept(&t->context, vm(t), NULL), VERDICT_NONE);
        assert_int_equal(plan_accept(&t->context, vm(t)), 0);
        assert_string_equal(d->prior_reset, "bus flr");
}

TEST(test_another_pool) {
        _cleanup_node_ TestNode *t = make_node();

        swap(t, GPU, 2);
        assert_refused(t, VERDICT_NOT_IN_POOL, "other");
}

TEST(test_vf) {
        _cleanup_node_ TestNode *t = make_node();

        swap(t, GPU, 3);
        vm(t)->devices[0].is_vf = true;
        assert_refused(t, VERDICT_HARDWARE_CHANGED, GPU);
}

/* Devices that an assigned device needs from its group must be in the allocation. */
TEST(test_group_has_grown) {
        _cleanup_node_ TestNode *t = make_node();

        swap(t, GPU, 3);
        vm(t)->n_devices = 1;
        assert_refused(t, VERDICT_GROUP_NOT_VIABLE, AUDIO);
        vm(t)->n_devices = 2;
}

/* A companion of a GPU is now in another IOMMU group. */
TEST(test_other_role) {
        _cleanup_node_ TestNode *t = make_node();

        device(t, AUDIO)->iommu_group = 9;
        swap(t, AUDIO, 2);
        assert_refused(t, VERDICT_GROUP_NOT_VIABLE, AUDIO);
}
