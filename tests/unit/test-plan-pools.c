/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Requests for devices of the largest number of pools. */

#include <stdio.h>

#include "unit.h"

#include "nodefixture.h"

#define SWITCHES 4U /* of each of two nodes */

/* Formats a path: a host bridge with a switch, the device below its port. */
static void path_below(unsigned which, unsigned port, unsigned function, char path[static 128]) {
        (void) snprintf(path, 128, "pci%04x:00/%04x:00:01.0/%04x:01:00.0/%04x:02:%02x.0/%04x:%02x:00.%u", which, which,
                        which, which, port, which, port + 3, function);
}

static int next_group(const TestNode *t) {
        return (int) t->inventory->n_devices;
}

static void add_port(TestNode *t, unsigned which, unsigned port) {
        char path[128];

        path_below(which, port, 0, path);
        *strrchr(path, '/') = '\0';
        node_bridge(t, path, (int) (which / SWITCHES), next_group(t));
}

static void add_switch(TestNode *t, unsigned which) {
        char path[64];

        (void) snprintf(path, sizeof(path), "pci%04x:00/%04x:00:01.0", which, which);
        node_bridge(t, path, (int) (which / SWITCHES), next_group(t));
        (void) snprintf(path, sizeof(path), "pci%04x:00/%04x:00:01.0/%04x:01:00.0", which, which, which);
        node_bridge(t, path, (int) (which / SWITCHES), next_group(t));
}

static TestNode *two_nodes(void) {
        TestNode *t = node_new();

        for (unsigned i = 0; i < 2; i++)
                node_numa(t, (int) i, i * 8, 8, 1, 64 * GIB);
        for (unsigned i = 0; i < 2 * SWITCHES; i++)
                add_switch(t, i);
        return t;
}

/* The pool of a device is chosen by its ID. */
static void ready(TestNode *t) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        for (unsigned pool = 0; pool < REQUEST_POOLS_MAX; pool++)
                (void) fprintf(f, "[Pool p%u]\nMatch=id=10de:%04x\nMatch=id=15b3:%04x type=vf\n", pool, pool, pool);
        assert_int_equal(fclose(f), 0);
        node_ready(t, text);
}

/* Plans this number of devices from each of the first pools. */
static Verdict plan_pools(TestNode *t, unsigned pools, unsigned each, unsigned cells, const char *proximity, Plan **ret,
                          Refusal *ret_refusal) {
        char text[256];
        size_t n = 0;

        for (unsigned pool = 0; pool < pools; pool++)
                n += (size_t) snprintf(text + n, sizeof(text) - n, "p%u=%u ", pool, each);
        return node_plan(t, ASK(.pools = text, .cpus = 8, .cells = cells, .proximity = proximity), ret, ret_refusal);
}

/* A PF below each switch. The VFs of each PF are a pool. */
static TestNode *pool_of_each_pf(void) {
        TestNode *t = two_nodes();

        for (unsigned pf = 0; pf < REQUEST_POOLS_MAX; pf++) {
                char path[128], address[16];

                add_port(t, pf, 0);
                path_below(pf, 0, 0, path);
                (void) snprintf(address, sizeof(address), "%s", strrchr(path, '/') + 1);
                node_nic(t, path, (int) (pf / SWITCHES), next_group(t))->total_vfs = 4;
                for (unsigned vf = 1; vf <= 4; vf++) {
                        path_below(pf, 0, vf, path);
                        node_vf(t, path, address, (int) (pf / SWITCHES), next_group(t))->device = (uint16_t) pf;
                }
        }
        ready(t);
        return t;
}

/* A device of each pool below each switch. */
static TestNode *all_pools_everywhere(void) {
        TestNode *t = two_nodes();

        for (unsigned which = 0; which < 2 * SWITCHES; which++)
                for (unsigned pool = 0; pool < REQUEST_POOLS_MAX; pool++) {
                        char path[128];

                        add_port(t, which, pool);
                        path_below(which, pool, 0, path);
                        node_device(t, path, 0x010802, (int) (which / SWITCHES), next_group(t))->device =
                                (uint16_t) pool;
                }
        ready(t);
        return t;
}

TEST(test_two_vfs_of_each_pf) {
        _cleanup_node_ TestNode *t = pool_of_each_pf();
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;

        assert_int_equal(plan_pools(t, REQUEST_POOLS_MAX, 2, 0, NULL, &plan, NULL), VERDICT_NONE);
        assert_int_equal(plan->score.numa_nodes, 2);
        assert_int_equal(plan->score.off_node, 0);
        assert_int_equal(plan->allocation->n_devices, 2 * REQUEST_POOLS_MAX);
        for (unsigned i = 0; i < 2 * REQUEST_POOLS_MAX; i++)
                assert_int_equal(plan->allocation->devices[i].address.function, 1 + i % 2);
}

TEST(test_all_devices_of_a_node) {
        _cleanup_node_ TestNode *t = all_pools_everywhere();
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;

        assert_int_equal(plan_pools(t, REQUEST_POOLS_MAX, SWITCHES, 1, NULL, &plan, NULL), VERDICT_NONE);
        assert_int_equal(plan->score.numa_nodes, 1);
        assert_int_equal(plan->score.off_node, 0);
        assert_int_equal(plan->score.left_over, 0);
}

/* Uses as few switches as possible. */
TEST(test_a_choice_for_each_pool) {
        _cleanup_node_ TestNode *t = all_pools_everywhere();
        static const struct {
                unsigned pools, each, cells;
        } cases[] = {
                { 5, 2, 1 }, { 8, 1, 1 }, { 8, 2, 1 }, { 8, 3, 1 }, { 8, 2, 2 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(cleanup_plan_free) Plan *plan = NULL;
                unsigned each = cases[i].each, wanted = cases[i].pools * each;

                assert_int_equal(plan_pools(t, cases[i].pools, each, cases[i].cells, NULL, &plan, NULL), VERDICT_NONE);
                assert_int_equal(plan->score.left_over,
                                 each * REQUEST_POOLS_MAX - wanted + (SWITCHES * REQUEST_POOLS_MAX - wanted));
        }
}

TEST(test_too_many_choices) {
        _cleanup_node_ TestNode *t = all_pools_everywhere();
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(plan_pools(t, 6, SWITCHES, 2, NULL, NULL, &why), VERDICT_LIMIT);
        assert_says(&why, "too many");
        assert_int_equal(node_available(t, "p0"), 2 * SWITCHES);
}

/* The devices of one node can be compared. Those of both nodes are too many. */
TEST(test_limit) {
        _cleanup_node_ TestNode *t = all_pools_everywhere();
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;

        assert_int_equal(plan_pools(t, REQUEST_POOLS_MAX, 3, 1, "p0:p0=node", &plan, NULL), VERDICT_NONE);
        assert_int_equal(plan->score.numa_nodes, 1);
}
