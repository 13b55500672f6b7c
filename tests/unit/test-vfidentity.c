/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The attributes of an allocation's VFs: merged from pool and request, and otherwise generated. */

#include <stdio.h>

#include "unit.h"

#include "nodefixture.h"
#include "plan/vfidentity.h"
#include "sentences.h"

#define BIT(a) VF_ATTRIBUTE_BIT(a)
#define NODE   "00112233 machine"
#define ID     "01234567-89ab-cdef-0123-456789abcdef"

/* Two Ethernet VFs of one PF, two InfiniBand VFs of another, two of mlx4 that may be either, and a GPU. */
static TestNode *new_node(const char *eth, const char *ib) {
        TestNode *t = node_new();
        _cleanup_free_ char *config = NULL;
        static const uint32_t classes[] = { 0x020000, 0x020700, 0x028000 };

        node_numa(t, 0, 0, 8, 1, 16 * GIB);
        for (unsigned pf = 0; pf < 3; pf++) {
                char address[] = "0000:0x:00.0", path[32], text[32];

                (void) snprintf(address, sizeof(address), "0000:%02x:00.0", pf + 1);
                (void) snprintf(path, sizeof(path), "pci0000:00/%s", address);
                (void) snprintf(text, sizeof(text), "pci0000:00/0000:%02x:00.1", pf + 1);
                PciDevice *dev = node_nic(t, path, 0, (int) (10 * pf));
                dev->type = PCI_TYPE_PF;
                dev->class = classes[pf];
                dev->sets_guids = true;
                assert_int_equal(string_copy(&dev->driver, pf == 2 ? "mlx4_core" : "mlx5_core"), 0);
                for (unsigned i = 1; i <= 2; i++) {
                        text[strlen(text) - 1] = (char) ('0' + i);
                        dev = node_vf(t, text, address, 0, (int) (10 * pf + i));
                        dev->class = classes[pf];
                        dev = (PciDevice *) &t->inventory->devices[3 * pf];
                        assert_int_equal(pci_address_append(&dev->linked, &dev->n_linked,
                                                            t->inventory->devices[3 * pf + i].address),
                                         0);
                        dev->n_virtfns = dev->n_linked;
                }
        }
        (void) node_gpu(t, "pci0000:00/0000:09:00.0", 0, 90);
        assert_int_equal(
                string_replace(&config,
                               "[Pool eth]\nMatch=type=vf class=0200\n%s\n[Pool ib]\nMatch=type=vf class=0207\n%s\n"
                               "[Pool vpi]\nMatch=type=vf class=0280\n[Pool gpu]\nMatch=class=03\n",
                               eth, ib),
                0);
        node_ready(t, config);
        return t;
}

/* slots: attributes by slot or pool, "eth0 vlan=100;eth trust=on". */
static Verdict plan(TestNode *t, const char *pools, const char *slots, Plan **ret, Refusal *ret_refusal) {
        _cleanup_request_ Request r = { 0 };
        _cleanup_free_ char *copy = strdup(slots ?: "");
        char *at = NULL;

        assert_non_null(copy);
        ask_request(ASK(.pools = pools), &r);
        for (char *entry = strtok_r(copy, ";", &at); entry; entry = strtok_r(NULL, ";", &at)) {
                _cleanup_free_ char *problem = NULL;
                char *text = strchr(entry, ' ');
                VfAttributes v;

                *text++ = '\0';
                assert_int_equal(vf_attributes_parse_wanted(text, &v, &problem), 0);
                assert_int_equal(request_add_attributes(&r, entry, &v), 0);
        }
        return plan_make(&t->context, &r, ret, ret_refusal);
}

static Verdict assign(TestNode *t, Allocation *a, Refusal *ret) {
        _cleanup_(cleanup_vf_identities_free) VfIdentities *l = NULL;

        assert_int_equal(vf_identities_new(t->inventory, t->policy, NODE, &l), 0);
        return vf_identity_assign(a, &t->context, l, ret);
}

/* Makes an allocation as the daemon does, which the ledger then owns. */
static Allocation *allocate(TestNode *t, const char *name, const char *id, const char *pools, const char *slots) {
        _cleanup_(cleanup_plan_free) Plan *p = NULL;
        Allocation *a;

        assert_int_equal(plan(t, pools, slots, &p, NULL), VERDICT_NONE);
        a = p->allocation;
        assert_int_equal(string_copy(&a->name, name), 0);
        (void) snprintf(a->id, sizeof(a->id), "%s", id);
        assert_int_equal(assign(t, a, NULL), VERDICT_NONE);
        assert_int_equal(ledger_claim(t->ledger, t->inventory, t->config, a, NULL), VERDICT_NONE);
        p->allocation = NULL;
        return a;
}

static void assert_text(const VfAttributes *v, const char *expected) {
        _cleanup_free_ char *text = vf_attributes_format(v);

        assert_string_equal(text, expected);
}

TEST(test_make) {
        VfAttributes v, same, other;

        for (unsigned i = 0; i < 10000; i++) {
                char seed[16];

                (void) snprintf(seed, sizeof(seed), "%u", i);
                vf_identity_make(seed, i % 3, &v);
                assert_int_equal(v.set, VF_IDENTITY_BITS);
                assert_int_equal(v.value[VF_MAC] >> 40, 2);
                assert_int_equal(v.value[VF_NODE_GUID] >> 56, 2);
                assert_int_equal(v.value[VF_NODE_GUID] & 7, 0);
                assert_true(v.value[VF_PORT_GUID] == v.value[VF_NODE_GUID] + 1);
                assert_true(v.value[VF_SECOND_PORT_GUID] == v.value[VF_PORT_GUID] + 1);
        }
        vf_identity_make("a", 0, &v);
        vf_identity_make("a", 0, &same);
        assert_int_equal(vf_attributes_differ(&v, &same), 0);
        vf_identity_make("a", 1, &other);
        assert_int_equal(vf_attributes_differ(&v, &other), VF_IDENTITY_BITS);
        vf_identity_make("b", 0, &other);
        assert_int_equal(vf_attributes_differ(&v, &other), VF_IDENTITY_BITS);
}

static int compare(const void *a, const void *b) {
        const uint64_t *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

/* Very similar seeds: 40 bits are few enough to reveal a poor hash. */
TEST(test_make_spreads) {
        enum {
                N = 65536
        };
        _cleanup_free_ uint64_t *macs = calloc(N, sizeof(uint64_t)), *guids = calloc(N, sizeof(uint64_t));
        unsigned bits[40] = { 0 };

        assert_true(macs && guids);
        for (unsigned i = 0; i < N; i++) {
                char seed[64];
                VfAttributes v;

                (void) snprintf(seed, sizeof(seed), "fresh " ID " eth-vf%u", i);
                vf_identity_make(seed, 0, &v);
                macs[i] = v.value[VF_MAC];
                guids[i] = v.value[VF_NODE_GUID];
                for (unsigned b = 0; b < 40; b++)
                        bits[b] += macs[i] >> b & 1;
        }
        for (unsigned b = 0; b < 40; b++)
                assert_in_range(bits[b], N / 2 - N / 50, N / 2 + N / 50);
        qsort(macs, N, sizeof(*macs), compare);
        qsort(guids, N, sizeof(*guids), compare);
        for (unsigned i = 1; i < N; i++)
                assert_true(macs[i] != macs[i - 1] && guids[i] != guids[i - 1]);
}

TEST(test_merge) {
        static const char *const cases[][2] = {
                { NULL, "vlan=7 qos=3 trust=on max-rate=1000" },
                { "eth0 trust=off", "vlan=7 qos=3 trust=off max-rate=1000" },
                { "eth trust=off", "vlan=7 qos=3 trust=off max-rate=1000" },
                { "eth0 trust=off;eth trust=on spoof-check=on", "vlan=7 qos=3 trust=off spoof-check=on max-rate=1000" },
                { "eth1 trust=off", "vlan=7 qos=3 trust=on max-rate=1000" },
                { "eth0 vlan=8", "vlan=8 trust=on max-rate=1000" }, /* the pool's priority belonged to the other VLAN */
                { "eth0 vlan=0", "vlan=0 trust=on max-rate=1000" },
                { "eth0 vlan=8 qos=1 protocol=802.1ad", "vlan=8 qos=1 protocol=802.1ad trust=on max-rate=1000" },
                { "eth0 mac=00:11:22:33:44:55", "mac=00:11:22:33:44:55 vlan=7 qos=3 trust=on max-rate=1000" },
        };
        _cleanup_node_ TestNode *t = new_node("VfAttributes=vlan=7 qos=3 trust=on max-rate=1000", "");

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(cleanup_plan_free) Plan *p = NULL;

                assert_int_equal(plan(t, "gpu=1 eth=2 ib=1", cases[i][0], &p, NULL), VERDICT_NONE);
                assert_string_equal(p->allocation->devices[1].slot, "eth0");
                assert_text(&p->allocation->devices[1].attributes, cases[i][1]);
                assert_int_equal(p->allocation->devices[1].generated, 0);
                assert_text(&p->allocation->devices[0].attributes, "");
                assert_text(&p->allocation->devices[3].attributes, "");
        }
}

TEST(test_merge_refuses) {
        _cleanup_node_ TestNode *t = new_node("VfAttributes=max-rate=1000", "");
        static const struct {
                const char *slots;
                Verdict verdict;
                const char *names;
        } cases[] = {
                { "gpu0 vlan=1", VERDICT_NOT_SUPPORTED, "0000:09:00.0" },
                { "gpu vlan=1", VERDICT_NOT_SUPPORTED, "'gpu0'" },
                { "eth1 min-rate=2000", VERDICT_INVALID_REQUEST, "'eth1'" },
                { "ib0 vlan=1", VERDICT_INVALID_REQUEST, "gpu0, eth0, eth1" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(cleanup_plan_free) Plan *p = NULL;
                _cleanup_refusal_ Refusal refusal = { 0 };

                assert_int_equal(plan(t, "gpu=1 eth=2", cases[i].slots, &p, &refusal), cases[i].verdict);
                assert_null(p);
                assert_says(&refusal, cases[i].names);
                record(cases[i].slots, refusal.message);
        }
}

TEST(test_taken_is_refused) {
        static const char *const slots[] = {
                "eth0 mac=02:00:00:00:00:01",
                "ib0 node-guid=02:00:00:00:00:00:00:02",
                "ib0 port-guid=02:00:00:00:00:00:00:02",
                "ib0 node-guid=02:00:00:00:00:00:00:03",
                "ib0 port-guid=02:00:00:00:00:00:00:04",
                "ib0 second-port-guid=02:00:00:00:00:00:00:03",
        };
        _cleanup_node_ TestNode *t = new_node("", "");

        (void) allocate(t, "vm1", ID, "eth=1 ib=1",
                        "eth0 mac=02:00:00:00:00:01;ib0 node-guid=02:00:00:00:00:00:00:02 "
                        "port-guid=02:00:00:00:00:00:00:03 second-port-guid=02:00:00:00:00:00:00:04");
        for (size_t i = 0; i < ELEMENTSOF(slots); i++) {
                _cleanup_(cleanup_plan_free) Plan *p = NULL;
                _cleanup_refusal_ Refusal refusal = { 0 };

                assert_int_equal(plan(t, "eth=1 ib=1", slots[i], &p, &refusal), VERDICT_ALLOCATED);
                assert_says(&refusal, "'vm1'");
                record(slots[i], refusal.message);
        }
        node_release(t, "vm1");
        (void) allocate(t, "vm2", ID, "eth=1 ib=1", slots[0]);
}

TEST(test_assign) {
        _cleanup_node_ TestNode *t = new_node("VfAttributes=vlan=9", "");
        Allocation *a = allocate(t, "vm1", ID, "gpu=1 eth=2 ib=2 vpi=1",
                                 "eth1 mac=00:11:22:33:44:55;ib1 link=down node-guid=00:11:22:33:44:55:66:77");
        const unsigned guids = BIT(VF_NODE_GUID) | BIT(VF_PORT_GUID);
        const struct {
                const char *slot;
                unsigned set, generated;
        } expected[] = {
                { "gpu0", 0, 0 },
                { "eth0", BIT(VF_VLAN) | BIT(VF_MAC), BIT(VF_MAC) },
                { "eth1", BIT(VF_VLAN) | BIT(VF_MAC), 0 },
                { "ib0", guids | BIT(VF_LINK), 0 },
                { "ib1", guids | BIT(VF_LINK), 0 },
                { "vpi0", VF_IDENTITY_BITS | BIT(VF_LINK), VF_IDENTITY_BITS | BIT(VF_LINK) },
        };

        assert_int_equal(a->n_devices, ELEMENTSOF(expected));
        for (size_t i = 0; i < ELEMENTSOF(expected); i++) {
                assert_string_equal(a->devices[i].slot, expected[i].slot);
                assert_int_equal(a->devices[i].attributes.set, expected[i].set);
                assert_int_equal(a->devices[i].generated, expected[i].generated);
        }
        assert_true(a->devices[2].attributes.value[VF_MAC] == 0x001122334455);
        assert_true(a->devices[4].attributes.value[VF_NODE_GUID] == 0x0011223344556677);
        assert_int_equal(a->devices[3].attributes.value[VF_LINK], VF_LINK_AUTO);
        assert_int_equal(a->devices[4].attributes.value[VF_LINK], VF_LINK_DOWN);
        assert_true(a->devices[3].attributes.value[VF_NODE_GUID] != a->devices[5].attributes.value[VF_NODE_GUID]);
}

/* A stable identity depends on the VF, a generated one on the allocation. */
TEST(test_fresh_and_stable) {
        _cleanup_node_ TestNode *t = new_node("VfIdentity=stable", "");
        VfAttributes eth, ib, made;
        Allocation *a = allocate(t, "vm1", ID, "eth=1 ib=1", NULL);

        eth = a->devices[0].attributes;
        ib = a->devices[1].attributes;
        assert_int_equal(vf_identity_stable(NODE, node_find(t, "0000:01:00.0"), 0, &made), 0);
        assert_int_equal(vf_attributes_differ(&eth, &made) | vf_attributes_differ(&made, &eth), 0);
        assert_int_equal(vf_identity_stable(NODE, node_find(t, "0000:01:00.0"), 1, &made), 0);
        assert_int_equal(vf_attributes_differ(&eth, &made), BIT(VF_MAC));
        assert_int_equal(vf_identity_stable("another", node_find(t, "0000:01:00.0"), 0, &made), 0);
        assert_int_equal(vf_attributes_differ(&eth, &made), BIT(VF_MAC));
        assert_int_equal(vf_identity_stable(NODE, node_find(t, "0000:02:00.0"), 0, &made), 0);
        assert_int_equal(made.set, BIT(VF_NODE_GUID) | BIT(VF_PORT_GUID) | BIT(VF_LINK));
        assert_int_equal(vf_identity_stable(NODE, node_find(t, "0000:03:00.0"), 0, &made), 0);
        assert_int_equal(made.set, VF_IDENTITY_BITS | BIT(VF_LINK));
        assert_int_equal(vf_identity_stable(NODE, node_find(t, "0000:09:00.0"), 0, &made), 0);
        assert_int_equal(made.set, 0);
        node_release(t, "vm1");

        a = allocate(t, "vm2", "76543210-89ab-cdef-0123-456789abcdef", "eth=1 ib=1", NULL);
        assert_int_equal(vf_attributes_differ(&eth, &a->devices[0].attributes), 0);
        assert_int_equal(vf_attributes_differ(&ib, &a->devices[1].attributes), BIT(VF_NODE_GUID) | BIT(VF_PORT_GUID));
}

/* Skips generated identities that are in use, also by a port, or requested for another slot. */
TEST(test_taken_is_passed_over) {
        _cleanup_node_ TestNode *t = new_node("VfIdentity=stable", "VfIdentity=stable");
        _cleanup_free_ char *slots = NULL;
        char mac[VF_VALUE_MAX], guid[VF_VALUE_MAX];
        VfAttributes eth, ib;
        Allocation *a;

        assert_int_equal(vf_identity_stable(NODE, node_find(t, "0000:01:00.0"), 0, &eth), 0);
        assert_int_equal(vf_identity_stable(NODE, node_find(t, "0000:02:00.0"), 1, &ib), 0);
        assert_int_equal(string_replace(&slots, "eth1 mac=%s;ib0 second-port-guid=%s",
                                        vf_value_format(VF_MAC, eth.value[VF_MAC], mac),
                                        vf_value_format(VF_NODE_GUID, ib.value[VF_NODE_GUID] + 2, guid)),
                         0);
        a = allocate(t, "vm1", ID, "eth=2 ib=1", slots);
        assert_true(a->devices[0].attributes.value[VF_MAC] != eth.value[VF_MAC]);
        assert_int_equal(a->devices[0].attributes.value[VF_MAC] >> 40, 2);
        a = allocate(t, "vm2", ID, "ib=1", NULL);
        assert_devices(a, "ib0=0000:02:00.2");
        assert_int_equal(vf_attributes_differ(&ib, &a->devices[0].attributes), BIT(VF_NODE_GUID) | BIT(VF_PORT_GUID));
}

/* An identity of another VF would exist twice, at once or after a release. */
TEST(test_what_another_vf_has_is_refused) {
        _cleanup_node_ TestNode *t = new_node("", "");
        _cleanup_free_ char *eth_slots = NULL, *ib_slots = NULL;
        char mac[VF_VALUE_MAX], guid[VF_VALUE_MAX];
        VfAttributes eth, ib;
        const char *slots[2];

        assert_int_equal(vf_identity_stable(NODE, node_find(t, "0000:01:00.0"), 1, &eth), 0);
        assert_int_equal(vf_identity_stable(NODE, node_find(t, "0000:02:00.0"), 1, &ib), 0);
        assert_int_equal(string_replace(&eth_slots, "eth0 mac=%s", vf_value_format(VF_MAC, eth.value[VF_MAC], mac)), 0);
        assert_int_equal(string_replace(&ib_slots, "ib0 port-guid=%s",
                                        vf_value_format(VF_PORT_GUID, ib.value[VF_PORT_GUID], guid)),
                         0);
        slots[0] = eth_slots;
        slots[1] = ib_slots;
        for (size_t i = 0; i < ELEMENTSOF(slots); i++) {
                _cleanup_(cleanup_plan_free) Plan *p = NULL;
                _cleanup_refusal_ Refusal refusal = { 0 };

                assert_int_equal(plan(t, "eth=1 ib=1", slots[i], &p, NULL), VERDICT_NONE);
                assert_int_equal(assign(t, p->allocation, &refusal), VERDICT_ALLOCATED);
                assert_says(&refusal, i == 0 ? "0000:01:00.2" : "0000:02:00.2");
                record(slots[i], refusal.message);
        }
        /* The VF itself may have its own stable identity. */
        (void) allocate(t, "vm1", ID, "eth=1", NULL);
        (void) allocate(t, "vm2", "76543210-89ab-cdef-0123-456789abcdef", "eth=1", eth_slots);
        node_release(t, "vm1");
        node_release(t, "vm2");
}

TEST(test_external_gets_nothing) {
        _cleanup_node_ TestNode *t = new_node("VirtualFunctions=external\nVfAttributes=vlan=5", "");
        Allocation *a = allocate(t, "vm1", ID, "eth=2 ib=1", "eth1 mac=02:00:00:00:00:01");

        assert_text(&a->devices[0].attributes, "vlan=5");
        assert_text(&a->devices[1].attributes, "mac=02:00:00:00:00:01 vlan=5");
        assert_int_equal(a->devices[0].generated | a->devices[1].generated, 0);
        assert_int_not_equal(a->devices[2].attributes.set & VF_GUID_BITS, 0);
}

TEST(test_sentences) {
        assert_sentences("vf-identities.txt");
}
