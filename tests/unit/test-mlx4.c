/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Module options of mlx4_core: their text, when there are none, and refusals while the driver runs with others. */

#include <stdio.h>

#include "unit.h"

#include "plan/device-state.h"
#include "plan/mlx4.h"
#include "policyfixture.h"
#include "sentences.h"

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

static void assert_problem(const TestNode *t) {
        const Mlx4 *m = &t->mlx4;

        assert_null(m->text);
        assert_non_null(m->problem);
        record("mlx4_core", m->problem);
        assert_int_equal(t->policy->n_problems, 1);
        assert_non_null(strstr(t->policy->problems[0], m->problem));
        assert_int_equal(strncmp(t->policy->problems[0], "test.conf:", strlen("test.conf:")), 0);
}

TEST(test_options) {
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

/* A card is recognized by its IDs or its driver: while the driver is reloaded, the card has none. */
TEST(test_cards) {
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

TEST(test_limits) {
        _cleanup_node_ TestNode *t = one_card(), *small = node_new();

        node_ready(t, POOL("VirtualFunctions=64\n"));
        assert_problem(t);
        add_card(small, "pci0000:00/" CARD, 8, 0);
        node_ready(small, POOL("VirtualFunctions=9\n"));
        assert_problem(small);
}

TEST(test_several_cards) {
        static const struct {
                const char *config;
                bool wrong;
        } cases[] = {
                { POOL("VirtualFunctions=4\n"), false },
                { SPLIT("VirtualFunctions=4\n", "VirtualFunctions=4\n"), false },
                { SPLIT("VirtualFunctions=4\nPortTypes=ib\n", "VirtualFunctions=4\nPortTypes=ib\n"), false },
                { SPLIT("VirtualFunctions=4\n", "VirtualFunctions=2\n"), true },
                { SPLIT("VirtualFunctions=4\n", ""), true },
                { SPLIT("", "VirtualFunctions=4\n"), true },
                { SPLIT("VirtualFunctions=4\n", "VirtualFunctions=external\n"), true },
                { SPLIT("VirtualFunctions=4\n", "") "[Exclude]\nMatch=address=" SECOND "\n", true },
                { SPLIT("VirtualFunctions=4\nPortTypes=ib\n", "VirtualFunctions=4\nPortTypes=eth\n"), true },
                { SPLIT("VirtualFunctions=4\nPortTypes=ib\n", "VirtualFunctions=4\n"), true },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = two_cards();

                node_ready(t, cases[i].config);
                if (cases[i].wrong) {
                        assert_problem(t);
                        continue;
                }
                assert_null(t->mlx4.problem);
                assert_int_equal(t->mlx4.num_vfs, 4);
        }
}

/* The refusal names the pool with VFs, and the line that excludes its cards. */
TEST(test_excluded_vfs) {
        static const char *const excludes[] = { "Match=type=vf pf=" SECOND "\n", "Match=type=vf pf=0000:06:*\n" };

        for (size_t i = 0; i < ELEMENTSOF(excludes); i++) {
                _cleanup_node_ TestNode *t = two_cards();
                _cleanup_free_ char *config = string_format(POOL("VirtualFunctions=4\n") "[Exclude]\n%s", excludes[i]);

                node_ready(t, config);
                assert_problem(t);
                assert_non_null(strstr(t->mlx4.problem, SECOND " for pool 'vf'"));
                assert_non_null(strstr(t->mlx4.problem, "test.conf:7"));
        }
}

/* The problem has the place of the wrong line. */
TEST(test_places) {
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

/* The options also apply to a card that the host needs. */
TEST(test_needed_by_the_host) {
        static const char *const configs[] = { POOL("VirtualFunctions=4\n"),
                                               SPLIT("VirtualFunctions=4\n", "VirtualFunctions=4\n"),
                                               SPLIT("VirtualFunctions=4\n", "") };

        for (size_t i = 0; i < ELEMENTSOF(configs); i++) {
                _cleanup_node_ TestNode *plain = two_cards(), *t = two_cards();

                assert_int_equal(string_copy(&t->inventory->devices[1].critical, "eth0"), 0);
                node_ready(plain, configs[i]);
                node_ready(t, configs[i]);
                assert_true(streq_ptr(t->mlx4.text, plain->mlx4.text));
                assert_true(streq_ptr(t->mlx4.problem, plain->mlx4.problem));
                assert_false(t->mlx4.unknown);
        }
}

/* For a card that the host needs, the missing VFs are told after the host's need, and the driver stays loaded. */
TEST(test_said_of_a_needed_card) {
        _cleanup_node_ TestNode *t = two_cards();
        _cleanup_refusal_ Refusal why = { 0 }, other = { 0 }, plan = { 0 };

        assert_int_equal(string_copy(&t->inventory->devices[1].critical, "eth0"), 0);
        node_ready(t, POOL("VirtualFunctions=4\n"));
        assert_int_equal(device_state(&t->context, node_find(t, SECOND), &why), DEVICE_STATE_HOST);
        assert_int_equal(why.verdict, VERDICT_HOST_CRITICAL);
        assert_says(&why, "eth0");
        assert_says(&why, "num_vfs=4");
        record("a card that the host needs", why.message);
        assert_int_equal(device_state(&t->context, node_find(t, CARD), &other), DEVICE_STATE_HOST);
        assert_int_equal(other.verdict, VERDICT_NOT_SUPPORTED);
        record("remedy beside it", other.remedy);
        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "vf=1", .cpus = 1), &plan), VERDICT_INSUFFICIENT_DEVICES);
        for (size_t i = 0; i < 3; i++) {
                const char *remedy = (const char *[]) { why.remedy, other.remedy, plan.remedy }[i];

                assert_null(strstr(remedy, "modprobe"));
                assert_non_null(strstr(remedy, "Reboot"));
        }
}

TEST(test_sources) {
        _cleanup_node_ TestNode *t = two_cards();

        node_ready(t, SPLIT("VirtualFunctions=4\n", "VirtualFunctions=4\n"));
        assert_string_equal(t->mlx4.text, HEAD "# Pool 'a': VirtualFunctions=4 (test.conf:5).\n"
                                               "# Pool 'b': VirtualFunctions=4 (test.conf:8).\n"
                                               "options mlx4_core num_vfs=4 probe_vf=0\n");
}

/* While the hardware is unknown, the present options are kept. */
TEST(test_unknown) {
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

TEST(test_held_back) {
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

TEST(test_said) {
        _cleanup_node_ TestNode *t = card_with_vfs(POOL("VirtualFunctions=4\n"));
        _cleanup_refusal_ Refusal why = { 0 };
        const PciDevice *pf = node_find(t, CARD);

        assert_int_equal(device_state(&t->context, pf, &why), DEVICE_STATE_HOST);
        assert_int_equal(why.verdict, VERDICT_NOT_SUPPORTED);
        assert_says(&why, "num_vfs=4");
        record("device", why.message);
        record("remedy", why.remedy);
        assert_non_null(strstr(why.remedy, "modprobe -r mlx4_ib mlx4_en mlx4_core, modprobe mlx4_core"));
        assert_non_null(strstr(why.remedy, "initramfs"));
        assert_null(strstr(why.remedy, "vm7"));

        assert_int_equal(string_copy(&t->mlx4.file, "/etc/modprobe.d/passthroughd.conf"), 0);
        assert_int_equal(node_allocate(t, "vm7", ASK(.pools = "vf=1", .cpus = 1), NULL), VERDICT_NONE);
        assert_int_equal(device_state(&t->context, pf, &why), DEVICE_STATE_HOST);
        assert_says(&why, "/etc/modprobe.d/passthroughd.conf");
        assert_says(&why, "num_vfs=4");
        assert_non_null(strstr(why.remedy, "'vm7'"));
        assert_non_null(strstr(why.remedy, "0000:05:00.1"));
        assert_int_equal(node_allocate(t, "vm8", ASK(.pools = "vf=1", .cpus = 1), NULL), VERDICT_NONE);
        assert_int_equal(device_state(&t->context, pf, &why), DEVICE_STATE_HOST);
        assert_non_null(strstr(why.remedy, "0000:05:00.1"));
        record("remedy, two are held", why.remedy);

        /* Another number than the pool's, requested by hand. */
        assert_int_equal(mlx4_refuse(&t->mlx4, t->policy, t->ledger, pf, 3, &why), VERDICT_NOT_SUPPORTED);
        record("by hand", why.message);
        assert_non_null(strstr(why.remedy, "VirtualFunctions="));
        assert_int_equal(mlx4_refuse(&t->mlx4, t->policy, t->ledger, pf, 3, NULL), VERDICT_NOT_SUPPORTED);
}

TEST(test_said_of_a_problem) {
        _cleanup_node_ TestNode *t = card_with_vfs(POOL("VirtualFunctions=9\n"));
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(device_state(&t->context, node_find(t, CARD), &why), DEVICE_STATE_HOST);
        assert_says(&why, "'vf'");
        assert_says(&why, "num_vfs");
        record("device", why.message);
        record("remedy", why.remedy);
}

TEST(test_nothing_to_say) {
        _cleanup_node_ TestNode *t = card_with_vfs(POOL("VirtualFunctions=2\n"));
        _cleanup_refusal_ Refusal why = { 0 };

        assert_false(mlx4_needs_options(t->policy, node_find(t, CARD)));
        assert_int_equal(device_state(&t->context, node_find(t, CARD), &why), DEVICE_STATE_HOST);
        assert_int_equal(why.verdict, VERDICT_NOT_IN_POOL);
        assert_int_equal(node_available(t, "vf"), 2);
}

/* A plan is refused too, because the VFs need a reload of the driver. */
TEST(test_said_of_a_plan) {
        _cleanup_node_ TestNode *t = one_card();
        _cleanup_refusal_ Refusal why = { 0 };

        node_ready(t, POOL("VirtualFunctions=4\n"));
        assert_int_equal(node_allocate(t, "vm", ASK(.pools = "vf=1", .cpus = 1), &why), VERDICT_INSUFFICIENT_DEVICES);
        assert_says(&why, "mlx4_core");
        assert_non_null(strstr(why.remedy, "modprobe mlx4_core"));
}

TEST(test_port_types) {
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
                        assert_non_null(strstr(c->problems[0].message, "PortTypes="));
        }
}

TEST(test_port_types_alone) {
        static const char config[] = POOL("PortTypes=ib\n");
        _cleanup_(cleanup_config_free) Config *c = NULL;

        assert_int_equal(config_parse("test.conf", config, strlen(config), &c), 0);
        assert_int_equal(c->n_problems, 1);
        assert_int_equal(c->problems[0].line, 3);
        assert_non_null(strstr(c->problems[0].message, "PortTypes= is ignored"));
}

TEST(test_sentences) {
        assert_sentences("mlx4.txt");
}
