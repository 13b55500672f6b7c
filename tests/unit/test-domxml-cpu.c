/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The guest's CPUs and cells. */

#include "unit.h"

#include "domxml-fixture.h"

/* Adjacent pins on sibling threads become threads of one core. Other orders do not. */
TEST(test_threads) {
        _cleanup_case_ Case c = case_new("vm14", 2, (int[]) { 0, 1 }, true);
        static const unsigned order[] = { 2, 10, 3, 11, 18, 26, 19, 27 };

        pin(&c, "2-3,10-11,18-19,26-27", 8 * GIB, 0);
        for (size_t i = 0; i < ELEMENTSOF(order); i++)
                c.a->pins[i].cpu = order[i];
        assert_golden(&c, NULL, "domxml-threads.xml");

        c.a->pins[0].cpu = 10; /* the reverse order works as well */
        c.a->pins[1].cpu = 2;
        _cleanup_free_ char *swapped = make(&c, NULL);
        assert_has(swapped, "<topology sockets=\"2\" dies=\"1\" cores=\"2\" threads=\"2\"/>");

        c.a->pins[1].cpu = 3;
        c.a->pins[2].cpu = 2;
        _cleanup_free_ char *mixed = make(&c, NULL);
        assert_has(mixed, "<topology sockets=\"2\" dies=\"1\" cores=\"4\" threads=\"1\"/>");
}

/* QEMU's caches for AMD fit the topology only when they are emulated, and topoext must be requested. */
TEST(test_amd) {
        _cleanup_case_ Case c = case_new("vm42", 2, (int[]) { 0, 1 }, true);
        static const unsigned order[] = { 2, 10, 3, 11, 18, 26, 19, 27 };
        _cleanup_free_ char *own = NULL, *emulated = NULL;

        pin(&c, "2-3,10-11,18-19,26-27", 8 * GIB, 0);
        for (size_t i = 0; i < ELEMENTSOF(order); i++)
                c.a->pins[i].cpu = order[i];
        c.inv->amd = true;
        assert_golden(&c, NULL, "domxml-amd.xml");
        own = make(&c, "<domain type='kvm'><cpu><feature policy='disable' name='topoext'/></cpu></domain>");
        assert_has(own, "<feature policy=\"disable\" name=\"topoext\"/>");
        assert_has_not(own, "require");
        emulated = make(&c, "<domain type='qemu'/>");
        assert_has_not(emulated, "topoext");
        assert_has_not(emulated, "hint-dedicated");
}

/* Only a guest on several kinds of cores has the comment. */
TEST(test_kinds_of_cores) {
        _cleanup_case_ Case c = one_node("vm43");
        _cleanup_free_ char *one = make(&c, NULL), *other = NULL, *two = NULL;

        assert_has_not(one, "kinds of cores");
        for (size_t i = 0; i < c.inv->n_cpus; i++)
                c.inv->cpus[i].kind = CORE_EFFICIENT;
        other = make(&c, NULL);
        assert_has_not(other, "kinds of cores");
        for (size_t i = 0; i < c.inv->n_cpus; i++)
                c.inv->cpus[i].kind = c.inv->cpus[i].id < 20 ? CORE_PERFORMANCE : CORE_LOW_POWER;
        two = make(&c, NULL);
        assert_has(two, "<!-- The guest does not see its kinds of cores: vCPUs 0-1 on performance cores, 2-7 on "
                        "low-power cores. -->");
}

static void set_dies(Case *c, unsigned cpus_each) {
        for (size_t i = 0; i < c->inv->n_cpus; i++)
                c->inv->cpus[i].die = c->inv->cpus[i].id / cpus_each * cpus_each;
}

/* The guest has dies if each has the same number of vCPUs. */
TEST(test_dies) {
        _cleanup_case_ Case c = case_new("vm16", 2, (int[]) { 0, 1 }, false);

        set_dies(&c, 8); /* two dies on a node */
        pin(&c, "4-11,20-27", 8 * GIB, 0);
        _cleanup_free_ char *even = make(&c, NULL);
        assert_has(even, "<topology sockets=\"2\" dies=\"2\" cores=\"4\" threads=\"1\"/>");

        set_dies(&c, 16);
        _cleanup_free_ char *one = make(&c, NULL);
        assert_has(one, "<topology sockets=\"2\" dies=\"1\" cores=\"8\" threads=\"1\"/>");

        set_dies(&c, 32); /* as when the NUMA nodes of a socket are clusters */
        _cleanup_free_ char *common = make(&c, NULL);
        assert_has(common, "<topology sockets=\"2\" dies=\"1\" cores=\"8\" threads=\"1\"/>");

        set_dies(&c, 8);
        c.a->pins[3].cpu = 12; /* three and five vCPUs */
        _cleanup_free_ char *uneven = make(&c, NULL);
        assert_has(uneven, "<topology sockets=\"2\" dies=\"1\" cores=\"8\" threads=\"1\"/>");

        c.a->pins[3].cpu = 7;
        c.a->pins[0].cpu = 11; /* the same number on each die, but not consecutive */
        c.a->pins[7].cpu = 4;
        _cleanup_free_ char *mixed = make(&c, NULL);
        assert_has(mixed, "<topology sockets=\"2\" dies=\"1\" cores=\"8\" threads=\"1\"/>");
}

/* Eight nodes with 16 CPUs, of which two threads share a core, in two packages. */
static Case subnuma(const char *name, const char *cpus, const int *packages) {
        static const int nodes[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
        Case c = case_new(name, ELEMENTSOF(nodes), nodes, true);

        for (size_t i = 0; i < ELEMENTSOF(nodes); i++)
                c.inv->nodes[i].package = packages[i];
        pin(&c, cpus, 64 * GIB, 0);
        return c;
}

TEST(test_sockets_are_packages) {
        static const struct {
                const char *cpus;
                int packages[8];
                const char *topology;
        } cases[] = {
                { "0-127", { 0, 0, 0, 0, 1, 1, 1, 1 }, "sockets=\"2\" dies=\"4\" cores=\"16\" threads=\"1\"" },
                { "0-63", { 0, 0, 0, 0, 1, 1, 1, 1 }, "sockets=\"1\" dies=\"4\" cores=\"16\" threads=\"1\"" },
                { "32-95", { 0, 0, 0, 0, 1, 1, 1, 1 }, "sockets=\"2\" dies=\"2\" cores=\"16\" threads=\"1\"" },
                { "48-111", { 0, 0, 0, 0, 1, 1, 1, 1 }, "sockets=\"1\" dies=\"4\" cores=\"16\" threads=\"1\"" },
                { "0-127", { 0, 1, 0, 1, 0, 1, 0, 1 }, "sockets=\"1\" dies=\"8\" cores=\"16\" threads=\"1\"" },
                { "0-127", { 0, 0, 1, 1, 2, 2, 3, 3 }, "sockets=\"4\" dies=\"2\" cores=\"16\" threads=\"1\"" },
                { "0-127", { -1, -1, -1, -1, -1, -1, -1, -1 }, "sockets=\"8\" dies=\"1\" cores=\"16\" threads=\"1\"" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_case_ Case c = subnuma("vm40", cases[i].cpus, cases[i].packages);
                _cleanup_free_ char *text = make(&c, NULL), *topology = NULL;

                assert_int_equal(string_replace(&topology, "<topology %s/>", cases[i].topology), 0);
                assert_has(text, topology);
        }
}

/* Two nodes, one of them with housekeeping CPUs. */
TEST(test_emulator_of_two_nodes) {
        static const int nodes[] = { 0, 1 };
        _cleanup_case_ Case c = case_new("vm41", ELEMENTSOF(nodes), nodes, false);
        _cleanup_free_ char *unknown = NULL, *old = NULL, *later = NULL, *none = NULL;

        pin(&c, "4-7,20-23", 16 * GIB, 0);
        assert_int_equal(cpuset_parse("0-1", &c.config->housekeeping), 0);
        unknown = make(&c, NULL);
        assert_has(unknown, "<emulatorpin cpuset=\"0-1\"/>");
        c.inv->libvirt = (LibvirtFeatures) { .known = true, .maxphysaddr = true };
        old = make(&c, NULL);
        assert_has(old, "<emulatorpin cpuset=\"0-1,20-23\"/>");
        c.inv->libvirt.driver_model = true;
        later = make(&c, NULL);
        assert_has(later, "<emulatorpin cpuset=\"0-1\"/>");
        c.config->housekeeping = (CpuSet) { 0 };
        none = make(&c, NULL);
        assert_has(none, "<emulatorpin cpuset=\"4-7,20-23\"/>");
}

TEST(test_uneven_cells) {
        _cleanup_case_ Case c = case_new("vm15", 2, (int[]) { 0, 1 }, false);

        pin(&c, "2-4,18-19", 8 * GIB, 0);
        _cleanup_free_ char *text = make(&c, NULL);
        assert_has(text, "<topology sockets=\"1\" dies=\"1\" cores=\"5\" threads=\"1\"/>");
        assert_has(text, "<emulatorpin cpuset=\"2-4,18-19\"/>"); /* no housekeeping CPUs there: the emulator shares
                                                                    those of the guest */
}

TEST(test_distances_within_bounds) {
        _cleanup_case_ Case c = case_new("vm16", 3, (int[]) { 0, 1, 2 }, false);

        c.inv->nodes[0].distance[1] = 0;   /* unknown */
        c.inv->nodes[0].distance[2] = 255; /* unreachable */
        c.inv->nodes[1].distance[2] = 10;  /* fake nodes of one real one */
        pin(&c, "2,18,34", 6 * GIB, 0);
        _cleanup_free_ char *text = make(&c, NULL);
        assert_has(text, "<sibling id=\"1\" value=\"20\"/>");
        assert_has(text, "<sibling id=\"2\" value=\"254\"/>");
        assert_has(text, "<sibling id=\"2\" value=\"11\"/>");
}

TEST(test_housekeeping_elsewhere) {
        _cleanup_case_ Case c = one_node("vm17");

        assert_int_equal(cpuset_parse("0-1,99", &c.config->housekeeping), 0); /* none on node 1; 99 is offline */
        _cleanup_free_ char *text = make(&c, NULL);
        /* The emulator's own memory is on these nodes. */
        assert_has(text, "<emulatorpin cpuset=\"18-25\"/>");
}

/* One node with 272 CPUs. */
static Case many_cpus(const char *name, const char *cpus) {
        static const int nodes[17] = { 0 };
        Case c = case_new(name, ELEMENTSOF(nodes), nodes, false);

        c.inv->n_nodes = 1;
        add_gpu(&c, "0000:82:00.0", 0, 8 * GIB, "gpu0");
        pin(&c, cpus, 16 * GIB, 0);
        return c;
}

/* From 256 vCPUs on, libvirt requires interrupt remapping. */
TEST(test_many_vcpus) {
        _cleanup_case_ Case few = many_cpus("vm28", "1-255"), many = many_cpus("vm29", "0-255");
        _cleanup_free_ char *plain = make(&few, NULL), *filled = NULL;

        assert_has_not(plain, "iommu");
        assert_golden(&many, NULL, "domxml-many-vcpus.xml");
        filled = make(&many, "<domain type='kvm'><devices><iommu model='intel'><driver eim='off' iotlb='on'/></iommu>"
                             "</devices></domain>");
        assert_has(filled, "<driver eim=\"on\" iotlb=\"on\" intremap=\"on\" caching_mode=\"on\" aw_bits=\"48\"/>");
        assert_has(filled, "<ioapic driver=\"qemu\"/>");
        assert_refused(&many, "<domain type='kvm'><devices><iommu model='virtio'/></devices></domain>",
                       VERDICT_INVALID_TEMPLATE, "<iommu>");
        assert_refused(&many, "<domain type='qemu'/>", VERDICT_NOT_SUPPORTED, "256 vCPUs");
}

/* Dies are left out if their bits in the APIC ids would require an <iommu>. */
TEST(test_dies_of_many_vcpus) {
        _cleanup_case_ Case c = many_cpus("vm30", "0-239");
        _cleanup_free_ char *two = NULL, *three = NULL;

        set_dies(&c, 120);
        two = make(&c, NULL);
        assert_has(two, "<topology sockets=\"1\" dies=\"2\" cores=\"120\" threads=\"1\"/>");
        set_dies(&c, 80);
        three = make(&c, NULL);
        assert_has(three, "<topology sockets=\"1\" dies=\"1\" cores=\"240\" threads=\"1\"/>");
        assert_has_not(three, "iommu");
}

/* Sockets are left out likewise, and the cells stay. */
TEST(test_sockets_of_many_vcpus) {
        static const int nodes[15] = { 0, 1, 2 };
        static const struct {
                const char *cpus, *topology;
        } cases[] = { { "0-62,80-142,160-222", "<topology sockets=\"3\" dies=\"1\" cores=\"63\" threads=\"1\"/>" },
                      { "0-64,80-144,160-224", "<topology sockets=\"1\" dies=\"1\" cores=\"195\" threads=\"1\"/>" } };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_case_ Case c = case_new("vm35", ELEMENTSOF(nodes), nodes, false);
                _cleanup_free_ char *text = NULL;

                c.inv->n_nodes = 3;
                for (size_t cpu = 0; cpu < c.inv->n_cpus; cpu++)
                        c.inv->cpus[cpu].node = (int) (cpu / 80);
                pin(&c, cases[i].cpus, 48 * GIB, 0);
                text = make(&c, NULL);
                assert_has(text, cases[i].topology);
                assert_has(text, "<cell id=\"2\"");
                assert_has_not(text, "iommu");
        }
}

TEST_GROUP(NULL, teardown)
