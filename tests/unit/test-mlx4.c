/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Module options of mlx4_core: what they are, when there can be none, and what is said while it runs with others. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "plan/device-state.h"
#include "plan/mlx4.h"
#include "policyfixture.h"

#define CARD   "0000:05:00.0"
#define SECOND "0000:06:00.0"
#define HEAD                                                                                                           \
        "# Written by passthroughd(8), which writes it anew or removes it: do not edit.\n"                             \
        "# It counts when mlx4_core is loaded, and for all of its cards.\n"
#define POOL(keys)  "[Pool vf]\nMatch=vendor=15b3 type=vf\n" keys
#define SPLIT(a, b) "[Pool a]\nMatch=type=vf pf=0000:05:00.0\n" a "[Pool b]\nMatch=type=vf pf=0000:06:00.0\n" b

static PciDevice *add_card(TestNode *t, const char *path, unsigned total, size_t vfs) {
        PciDevice *pf = node_nic(t, path, 0, (int) t->inventory->n_devices + 1);

        pf->device = 0x1003;
        pf->vf_device = 0x1004;
        pf->total_vfs = total;
        pf->n_virtfns = vfs;
        assert_int_equal(string_copy(&pf->driver, "mlx4_core"), 0);
        return pf;
}

static TestNode *one_card(void) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, 8, 1, 64 * GIB);
        add_card(t, "pci0000:00/" CARD, 126, 0);
        return t;
}

static TestNode *two_cards(void) {
        TestNode *t = one_card();

        add_card(t, "pci0000:00/" SECOND, 126, 0);
        return t;
}

static void assert_problem(const TestNode *t, const char *words) {
        const Mlx4 *m = &t->mlx4;

        assert_null(m->text);
        assert_non_null(m->problem);
        if (!strstr(m->problem, words))
                fail_msg("\"%s\" does not say \"%s\"", m->problem, words);
        assert_int_equal(t->policy->n_problems, 1);
        assert_non_null(strstr(t->policy->problems[0], m->problem));
        assert_int_equal(strncmp(t->policy->problems[0], "test.conf:", strlen("test.conf:")), 0);
}

static void test_options(void **state _unused_) {
        static const struct {
                const char *config, *text;
        } cases[] = {
                { POOL(""), NULL },
                { POOL("VirtualFunctions=external\n"), NULL },
                { POOL("VirtualFunctions=0\n"), NULL },
                { "", NULL },
                { POOL("VirtualFunctions=4\n"), HEAD "# Pool 'vf': VirtualFunctions=4 (test.conf:5).\n"
                                                     "options mlx4_core num_vfs=4 probe_vf=0\n" },
                { POOL("VirtualFunctions=63\nPortTypes=ib\n"),
                  HEAD "# Pool 'vf': VirtualFunctions=63 (test.conf:5), PortTypes=ib (test.conf:6).\n"
                       "options mlx4_core num_vfs=63 probe_vf=0 port_type_array=1\n" },
                { POOL("PortTypes=auto,eth\nVirtualFunctions=1\n"),
                  HEAD "# Pool 'vf': VirtualFunctions=1 (test.conf:6), PortTypes=auto,eth (test.conf:5).\n"
                       "options mlx4_core num_vfs=1 probe_vf=0 port_type_array=0,2\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = one_card();

                node_ready(t, cases[i].config);
                assert_null(t->mlx4.problem);
                assert_false(t->mlx4.unknown);
                assert_int_equal(t->policy->n_problems, 0);
                if (cases[i].text)
                        assert_string_equal(t->mlx4.text, cases[i].text);
                else
                        assert_null(t->mlx4.text);
        }
}

/* While the driver is loaded again its cards have none. */
static void test_cards(void **state _unused_) {
        static const struct {
                uint16_t device;
                const char *driver;
                bool is;
        } cases[] = { { 0x1003, NULL, true },       { 0x1007, NULL, true },  { 0x673c, "vfio-pci", true },
                      { 0x1013, NULL, false },      { 0x6282, NULL, false }, { 0x1013, "mlx5_core", false },
                      { 0x1fff, "mlx4_core", true } };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_new();
                PciDevice *pf = add_card(t, "pci0000:00/" CARD, 8, 0);

                pf->device = cases[i].device;
                assert_int_equal(string_copy(&pf->driver, cases[i].driver), 0);
                node_ready(t, POOL("VirtualFunctions=4\n"));
                assert_int_equal(pci_device_is_mlx4_pf(node_find(t, CARD)), cases[i].is);
                assert_int_equal(t->mlx4.num_vfs, cases[i].is ? 4 : 0);
        }
}

static void test_limits(void **state _unused_) {
        _cleanup_node_ TestNode *t = one_card(), *small = node_new();

        node_ready(t, POOL("VirtualFunctions=64\n"));
        assert_problem(t, "Pool 'vf' wants 64 VFs on " CARD ", and mlx4_core makes at most 63.");
        add_card(small, "pci0000:00/" CARD, 8, 0);
        node_ready(small, POOL("VirtualFunctions=9\n"));
        assert_problem(small, "wants 9 VFs on " CARD ", which can have 8; asked for more, mlx4_core makes none.");
}

static void test_several_cards(void **state _unused_) {
        static const struct {
                const char *config, *problem;
        } cases[] = {
                { POOL("VirtualFunctions=4\n"), NULL },
                { SPLIT("VirtualFunctions=4\n", "VirtualFunctions=4\n"), NULL },
                { SPLIT("VirtualFunctions=4\nPortTypes=ib\n", "VirtualFunctions=4\nPortTypes=ib\n"), NULL },
                { SPLIT("VirtualFunctions=4\n", "VirtualFunctions=2\n"),
                  "pool 'b' wants 2 on " SECOND ", pool 'a' (test.conf:5) wants 4 on " CARD },
                { SPLIT("VirtualFunctions=4\n", ""), "pool 'a' wants 4 on " CARD ", and no pool wants any on " SECOND },
                { SPLIT("", "VirtualFunctions=4\n"), "pool 'b' wants 4 on " SECOND ", and no pool wants any on " CARD },
                { SPLIT("VirtualFunctions=4\n", "VirtualFunctions=external\n"),
                  "wants 4 on " CARD ", and pool 'b' (test.conf:8) leaves those on " SECOND " to others. Let it want" },
                { SPLIT("VirtualFunctions=4\n", "") "[Exclude]\nMatch=address=" SECOND "\n",
                  "wants 4 on " CARD ", and " SECOND " is excluded. Take it out of [Exclude], or set" },
                { SPLIT("VirtualFunctions=4\nPortTypes=ib\n", "VirtualFunctions=4\nPortTypes=eth\n"),
                  "same PortTypes= for all its cards: pool 'b' wants others for " SECOND " than pool 'a' for " CARD },
                { SPLIT("VirtualFunctions=4\nPortTypes=ib\n", "VirtualFunctions=4\n"), "same PortTypes=" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = two_cards();

                node_ready(t, cases[i].config);
                if (cases[i].problem) {
                        assert_problem(t, cases[i].problem);
                        continue;
                }
                assert_null(t->mlx4.problem);
                assert_int_equal(t->mlx4.num_vfs, 4);
        }
}

/* At the line that is wrong. */
static void test_places(void **state _unused_) {
        static const struct {
                const char *config;
                unsigned line;
        } cases[] = {
                { SPLIT("VirtualFunctions=4\nPortTypes=ib\n", "VirtualFunctions=4\nPortTypes=eth\n"), 10 },
                { SPLIT("VirtualFunctions=4\nPortTypes=ib\n", "VirtualFunctions=4\n"), 6 },
                { SPLIT("VirtualFunctions=4\n", "VirtualFunctions=4\nPortTypes=eth\n"), 9 },
                { SPLIT("PortTypes=ib\nVirtualFunctions=4\n", "PortTypes=eth\nVirtualFunctions=2\n"), 10 },
                { SPLIT("", "VirtualFunctions=4\n"), 7 },
                { SPLIT("", "VirtualFunctions=64\n"), 7 },
                { SPLIT("VirtualFunctions=4\n", "VirtualFunctions=4\n"), 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = two_cards();

                node_ready(t, cases[i].config);
                assert_int_equal(t->mlx4.place.line, cases[i].line);
        }
}

/* What the host needs for a while is wanted all the same: the options that are there stay. */
static void test_withheld(void **state _unused_) {
        static const struct {
                const char *config, *problem;
                bool unknown;
        } cases[] = {
                { POOL("VirtualFunctions=4\n"),
                  "Pool 'vf' wants 4 VFs on " SECOND ", and the host needs that card: eth0. The options of mlx4_core "
                  "stay as they are",
                  true },
                { SPLIT("", "VirtualFunctions=4\n"), "Pool 'b' wants 4 VFs on " SECOND, true },
                { SPLIT("VirtualFunctions=4\n", ""), "wants 4 on " CARD ", and the host needs " SECOND ": eth0. For",
                  false },
                { SPLIT("VirtualFunctions=4\n", "VirtualFunctions=external\n"), "leaves those on " SECOND, false },
                { POOL("VirtualFunctions=4\n") "[Exclude]\nMatch=address=" SECOND "\n", SECOND " is excluded", false },
                { SPLIT("", "VirtualFunctions=4\n") "[Exclude]\nMatch=address=" SECOND "\n", NULL, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = two_cards();

                assert_int_equal(string_copy(&t->inventory->devices[1].critical, "eth0"), 0);
                node_ready(t, cases[i].config);
                assert_int_equal(t->mlx4.unknown, cases[i].unknown);
                assert_null(t->mlx4.text);
                if (cases[i].problem)
                        assert_problem(t, cases[i].problem);
                else
                        assert_null(t->mlx4.problem);
        }
}

static void test_said_of_a_withheld_card(void **state _unused_) {
        _cleanup_node_ TestNode *t = two_cards();
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(string_copy(&t->inventory->devices[1].critical, "eth0"), 0);
        node_ready(t, POOL("VirtualFunctions=4\n"));
        assert_int_equal(device_state(&t->context, node_find(t, CARD), &why), DEVICE_STATE_HOST);
        assert_says(&why, "makes VFs only when it is loaded. Pool 'vf' wants 4 VFs on " SECOND
                          ", and the host needs that card: eth0.");
        assert_null(why.remedy);
}

static void test_sources(void **state _unused_) {
        _cleanup_node_ TestNode *t = two_cards();

        node_ready(t, SPLIT("VirtualFunctions=4\n", "VirtualFunctions=4\n"));
        assert_string_equal(t->mlx4.text, HEAD "# Pool 'a': VirtualFunctions=4 (test.conf:5).\n"
                                               "# Pool 'b': VirtualFunctions=4 (test.conf:8).\n"
                                               "options mlx4_core num_vfs=4 probe_vf=0\n");
}

/* Then the options that are there stay. */
static void test_unknown(void **state _unused_) {
        _cleanup_node_ TestNode *out = node_new(), *none = node_new(), *twice = one_card();

        node_ready(out, POOL("VirtualFunctions=4\n"));
        assert_true(out->mlx4.unknown);
        node_ready(none, POOL(""));
        assert_false(none->mlx4.unknown);
        assert_null(none->mlx4.text);
        node_ready(twice, POOL("VirtualFunctions=4\n") "[Pool pf]\nMatch=type=pf\n");
        assert_int_equal(twice->policy->conflict.verdict, VERDICT_INVALID_REQUEST);
        assert_true(twice->mlx4.unknown);
}

static void test_held_back(void **state _unused_) {
        static const char config[] = POOL("VirtualFunctions=4\n") "[Exclude]\nMatch=where=0000:05:00.0\n";
        _cleanup_node_ TestNode *t = one_card();

        assert_int_equal(inventory_finish(t->inventory), 0);
        assert_int_equal(config_parse("test.conf", config, strlen(config), &t->config), 0);
        assert_int_equal(policy_new(t->config, t->inventory, &t->policy), 0);
        assert_int_equal(mlx4_decide(t->policy, &t->mlx4), 0);
        assert_true(t->mlx4.unknown);
}

static TestNode *card_with_vfs(const char *keys) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, 8, 1, 64 * GIB);
        add_card(t, "pci0000:00/" CARD, 8, 2);
        node_vf(t, "pci0000:00/0000:05:00.1", CARD, 0, 21)->device = 0x1004;
        node_vf(t, "pci0000:00/0000:05:00.2", CARD, 0, 22)->device = 0x1004;
        node_ready(t, keys);
        return t;
}

static void test_said(void **state _unused_) {
        _cleanup_node_ TestNode *t = card_with_vfs(POOL("VirtualFunctions=4\n"));
        _cleanup_refusal_ Refusal why = { 0 };
        const PciDevice *pf = node_find(t, CARD);

        assert_int_equal(device_state(&t->context, pf, &why), DEVICE_STATE_HOST);
        assert_int_equal(why.verdict, VERDICT_NOT_SUPPORTED);
        assert_string_equal(why.message, CARD " has 2 VFs, 4 are wanted; its driver mlx4_core makes VFs only when it "
                                              "is loaded, with its option num_vfs=4.");
        assert_non_null(strstr(why.remedy, "modprobe -r mlx4_ib mlx4_en mlx4_core, modprobe mlx4_core"));
        assert_non_null(strstr(why.remedy, "initramfs"));
        assert_null(strstr(why.remedy, "Not while"));

        assert_int_equal(string_copy(&t->mlx4.file, "/etc/modprobe.d/passthroughd.conf"), 0);
        assert_int_equal(node_allocate(t, "vm7", ASK(.pools = "vf=1", .cpus = 1), NULL), VERDICT_NONE);
        assert_int_equal(device_state(&t->context, pf, &why), DEVICE_STATE_HOST);
        assert_says(&why, "and /etc/modprobe.d/passthroughd.conf asks for num_vfs=4.");
        assert_non_null(strstr(why.remedy, " Not while 'vm7' holds 0000:05:00.1."));
        assert_int_equal(node_allocate(t, "vm8", ASK(.pools = "vf=1", .cpus = 1), NULL), VERDICT_NONE);
        assert_int_equal(device_state(&t->context, pf, &why), DEVICE_STATE_HOST);
        assert_non_null(strstr(why.remedy, "'vm7' holds 0000:05:00.1, and 1 more of its VFs are held."));

        /* By hand another number than the pool wants. */
        assert_int_equal(mlx4_refuse(&t->mlx4, t->policy, t->ledger, pf, 3, &why), VERDICT_NOT_SUPPORTED);
        assert_says(&why, "3 are wanted");
        assert_non_null(strstr(why.remedy, "Set VirtualFunctions="));
        assert_int_equal(mlx4_refuse(&t->mlx4, t->policy, t->ledger, pf, 3, NULL), VERDICT_NOT_SUPPORTED);
}

static void test_said_of_a_problem(void **state _unused_) {
        _cleanup_node_ TestNode *t = card_with_vfs(POOL("VirtualFunctions=9\n"));
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(device_state(&t->context, node_find(t, CARD), &why), DEVICE_STATE_HOST);
        assert_says(&why, "its option num_vfs is not written: Pool 'vf' wants 9 VFs");
        assert_string_equal(why.remedy, "When that is mended, reload the configuration.");
}

static void test_nothing_to_say(void **state _unused_) {
        _cleanup_node_ TestNode *t = card_with_vfs(POOL("VirtualFunctions=2\n"));
        _cleanup_refusal_ Refusal why = { 0 };

        assert_false(mlx4_is_due(t->policy, node_find(t, CARD)));
        assert_int_equal(device_state(&t->context, node_find(t, CARD), &why), DEVICE_STATE_HOST);
        assert_int_equal(why.verdict, VERDICT_NOT_IN_POOL);
        assert_int_equal(node_available(t, "vf"), 2);
}

static void test_port_types(void **state _unused_) {
        static const struct {
                const char *value;
                size_t n;
        } cases[] = { { "ib", 1 },  { "ib,eth", 2 }, { "auto,auto", 2 }, { "", 0 },    { "ib,", 0 },
                      { ",ib", 0 }, { "IB", 0 },     { "ib,eth,ib", 0 }, { "1,2", 0 }, { "ib, eth", 0 } };

        for (int i = 0; i < _PORT_TYPE_MAX; i++)
                assert_int_equal(port_type_from_string(port_type_to_string((PortType) i)), i);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = NULL;
                _cleanup_(cleanup_config_free) Config *c = NULL;

                assert_int_equal(string_replace(&text, POOL("VirtualFunctions=1\nPortTypes=%s\n"), cases[i].value), 0);
                assert_int_equal(config_parse("test.conf", text, strlen(text), &c), 0);
                assert_int_equal(c->pools[0].n_port_types, cases[i].n);
                assert_int_equal(c->n_problems, cases[i].n == 0 && *cases[i].value ? 1 : 0);
                if (c->n_problems)
                        assert_non_null(strstr(c->problems[0].message, "expected ib, eth or auto, or two of them"));
        }
}

static void test_port_types_alone(void **state _unused_) {
        static const char config[] = POOL("PortTypes=ib\n");
        _cleanup_(cleanup_config_free) Config *c = NULL;

        assert_int_equal(config_parse("test.conf", config, strlen(config), &c), 0);
        assert_int_equal(c->n_problems, 1);
        assert_int_equal(c->problems[0].line, 3);
        assert_non_null(strstr(c->problems[0].message, "PortTypes= is ignored"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_options),
                cmocka_unit_test(test_cards),
                cmocka_unit_test(test_limits),
                cmocka_unit_test(test_several_cards),
                cmocka_unit_test(test_places),
                cmocka_unit_test(test_withheld),
                cmocka_unit_test(test_said_of_a_withheld_card),
                cmocka_unit_test(test_sources),
                cmocka_unit_test(test_unknown),
                cmocka_unit_test(test_held_back),
                cmocka_unit_test(test_said),
                cmocka_unit_test(test_said_of_a_problem),
                cmocka_unit_test(test_nothing_to_say),
                cmocka_unit_test(test_port_types),
                cmocka_unit_test(test_port_types_alone),
        };

        return cmocka_run_group_tests_name("mlx4", tests, NULL, NULL);
}
