/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The documents of a guest of Xen: libvirt's XML and the configuration of xl. */

#include "unit.h"

#include "domxml-fixture.h"
#include "guest/xlcfg.h"
#include "ledger/ledger.h"

static void assert_xl_golden(const Case *c, GuestInfo info, const char *name) {
        _cleanup_free_ char *text = NULL, *expected = NULL;
        _cleanup_close_ int dir = open(SRCDIR "/tests/unit/golden", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_true(dir >= 0);
        assert_int_equal(xl_config_make(c->inv, c->config, c->a, info, &text, NULL), VERDICT_NONE);
        if (getenv("UPDATE_GOLDEN"))
                assert_int_equal(write_file_atomic_at(dir, name, text, strlen(text)), 0);
        assert_int_equal(read_file_at(dir, name, GOLDEN_MAX, &expected, NULL), 0);
        assert_string_equal(text, expected);
}

/* A GPU and a VF of node 1, and CPUs there. */
static Case on_node_1(const char *name) {
        Case c = one_node(name);

        c.config->hypervisor = HYPERVISOR_XEN;
        return c;
}

/* The cells are on the nodes with their numbers. */
static Case on_both_nodes(const char *name, uint64_t page_size) {
        Case c = case_new(name, 2, (int[]) { 0, 1 }, false);

        c.config->hypervisor = HYPERVISOR_XEN;
        add_gpu(&c, "0000:02:00.0", 0, 8 * GIB, "gpu0");
        add_gpu(&c, "0000:82:00.0", 1, 8 * GIB, "gpu1");
        pin(&c, "2-7,18-23", 64 * GIB, page_size);
        return c;
}

TEST(test_documents) {
        _cleanup_case_ Case one = on_node_1("vm40"), two = on_both_nodes("vm41", GIB);
        _cleanup_case_ Case none = case_new("vm42", 1, (int[]) { 0 }, false);

        none.config->hypervisor = HYPERVISOR_XEN;
        pin(&none, "0-3", 2 * GIB, 0);
        assert_golden(&one, NULL, "domxml-xen-one-node.xml");
        assert_golden(&two, NULL, "domxml-xen-two-nodes.xml");
        assert_golden(&none, NULL, "domxml-xen-no-devices.xml");
        assert_xl_golden(&one, GUEST_INFO_GUEST, "xl-one-node.cfg");
        assert_xl_golden(&two, GUEST_INFO_NONE, "xl-two-nodes.cfg");
        assert_xl_golden(&none, GUEST_INFO_GUEST, "xl-no-devices.cfg");
}

/* libvirt takes the memory of cell i from node i, xl from the node that the document names. */
TEST(test_cells) {
        _cleanup_case_ Case same = on_both_nodes("vm43", 0), swapped = on_both_nodes("vm44", 0);
        _cleanup_free_ char *same_xml = make(&same, NULL), *swapped_xml = NULL, *xl = NULL;

        swapped.a->cells[0].node = 1;
        swapped.a->cells[1].node = 0;
        swapped_xml = make(&swapped, NULL);
        assert_has(same_xml, "<cell id=\"1\" cpus=\"6-11\" memory=\"32\" unit=\"GiB\">");
        assert_has_not(same_xml, "No guest NUMA cells");
        assert_has_not(swapped_xml, "<cell");
        assert_has(swapped_xml, "<!-- No guest NUMA cells");
        assert_int_equal(xl_config_make(swapped.inv, swapped.config, swapped.a, GUEST_INFO_NONE, &xl, NULL),
                         VERDICT_NONE);
        assert_has(xl, "\"pnode=1\", \"size=32768\", \"vcpus=0-5\", \"vdistances=10,21\"");
        assert_has(xl, "\"pnode=0\", \"size=32768\", \"vcpus=6-11\", \"vdistances=21,10\"");
        assert_has_not(xl, "No guest NUMA cells");
}

/* The document has no elements of KVM that Xen ignores, and no addresses in the guest. */
TEST(test_only_what_xen_has) {
        static const char *const foreign[] = { "vfio",  "pcie",     "<address type",   "guest=",
                                               "seen=", "numatune", "emulatorpin",     "memoryBacking",
                                               "fwcfg", "<rom",     "host-passthrough" };
        _cleanup_case_ Case c = on_both_nodes("vm45", GIB);
        _cleanup_free_ char *text = make(&c, NULL);

        for (size_t i = 0; i < ELEMENTSOF(foreign); i++)
                assert_has_not(text, foreign[i]);
        assert_has(text, "managed=\"no\"");
        assert_has(text, "<driver name=\"xen\"/>");
        assert_has(text, "<alias name=\"ua-gpu1\"/>");
        assert_has(text, "1 GiB");
}

/* A cell whose memory is not a multiple of 1 MiB: xl requires that the memory is the sum of the cells. */
TEST(test_odd_memory) {
        _cleanup_case_ Case c = on_both_nodes("vm46", 0);
        _cleanup_free_ char *xl = NULL;

        c.a->cells[0].memory = 3 * GIB - 4096;
        c.a->cells[1].memory = GIB;
        assert_int_equal(xl_config_make(c.inv, c.config, c.a, GUEST_INFO_NONE, &xl, NULL), VERDICT_NONE);
        assert_has(xl, "\"size=3071\"");
        assert_has(xl, "memory = 4095\nmaxmem = 4095\n");
}

TEST(test_template) {
        _cleanup_case_ Case c = on_node_1("vm47");
        _cleanup_free_ char *text =
                make(&c, "<domain type='xen'><name>x</name><memory>1</memory><os><type>hvm</type>"
                         "<loader type='rom'>/usr/lib/xen-4.17/boot/hvmloader</loader></os>"
                         "<devices><emulator>/usr/bin/qemu-system-i386</emulator></devices></domain>");

        assert_has(text, "<name>vm47</name>");
        assert_has(text, "machine=\"xenfv\"");
        assert_has(text, "hvmloader</loader>");
        assert_has(text, "qemu-system-i386</emulator>");
        assert_has(text, "bus=\"0x82\"");
        assert_refused(&c, "<domain type='kvm'/>", VERDICT_INVALID_TEMPLATE, "'kvm'");
        assert_refused(&c, "<domain type='xen'><cputune><shares>1</shares></cputune></domain>",
                       VERDICT_INVALID_TEMPLATE, "<shares> in <cputune>");
        assert_refused(&c, "<domain type='xen'><cpu><feature policy='disable' name='vmx'/></cpu></domain>",
                       VERDICT_INVALID_TEMPLATE, "<feature> in <cpu>");
        assert_refused(&c, "<domain type='xen'><os><type>xenpvh</type></os></domain>", VERDICT_INVALID_TEMPLATE,
                       "'xenpvh'");
        c.config->hypervisor = HYPERVISOR_KVM;
        assert_refused(&c, "<domain type='xen'/>", VERDICT_INVALID_TEMPLATE, "'xen'");
}

TEST(test_hostdev) {
        _cleanup_case_ Case c = on_node_1("vm48");
        _cleanup_free_ char *text = NULL, *anywhere = NULL;

        assert_int_equal(domxml_hostdev(c.inv, c.config, c.a, NULL, "ib-vf0", &text, NULL), VERDICT_NONE);
        assert_has(text, "<driver name=\"xen\"/>");
        assert_has_not(text, "type=\"pci\" domain");
        assert_int_equal(domxml_hostdev_anywhere(c.inv, c.config, c.a, 1, &anywhere, NULL), VERDICT_NONE);
        assert_string_equal(text, anywhere);
}

static void assert_no_document(const Case *c, Verdict expected) {
        char *text = NULL;

        assert_int_equal(domxml_make(c->inv, c->config, c->a, NULL, GUEST_INFO_GUEST, &text, NULL), expected);
        assert_int_equal(xl_config_make(c->inv, c->config, c->a, GUEST_INFO_GUEST, &text, NULL), expected);
        assert_null(text);
}

TEST(test_refused) {
        _cleanup_case_ Case c = on_node_1("vm49"), wide = case_new("vm50", 9, (int[9]) { 0 }, false);
        char *text = NULL;

        assert_int_equal(domxml_nccl_topology(c.inv, c.config, c.a, NULL, &text, NULL), VERDICT_NOT_SUPPORTED);
        c.a->devices[0].vgpu_type = 7;
        assert_no_document(&c, VERDICT_NOT_SUPPORTED);
        c.a->devices[0].vgpu_type = 0;
        c.a->devices[0].lost = true;
        assert_no_document(&c, VERDICT_MISSING);
        c.a->devices[0].lost = false;
        c.a->n_regions = 1;
        assert_no_document(&c, VERDICT_NOT_SUPPORTED);
        c.a->n_regions = 0;
        c.a->n_pins = 0;
        assert_no_document(&c, VERDICT_INVALID_REQUEST);

        wide.config->hypervisor = HYPERVISOR_XEN;
        wide.inv->n_nodes = 1;
        pin(&wide, "0-128", GIB, 0);
        assert_no_document(&wide, VERDICT_NOT_SUPPORTED);
}

/* Without Xen there is no xl configuration. */
TEST(test_kvm) {
        _cleanup_case_ Case c = one_node("vm51");
        _cleanup_refusal_ Refusal refusal = { 0 };
        char *text = NULL;

        assert_int_equal(xl_config_make(c.inv, c.config, c.a, GUEST_INFO_GUEST, &text, &refusal),
                         VERDICT_NOT_SUPPORTED);
        assert_non_null(refusal.remedy);
        assert_null(text);
}

/* Xen chooses the addresses in the guest. */
TEST(test_addresses) {
        _cleanup_case_ Case c = on_node_1("vm52");
        GuestAddress *addresses = NULL;
        size_t n = 0;

        assert_int_equal(domxml_guest_addresses(c.inv, c.config, c.a, &addresses, &n), 0);
        assert_null(addresses);
        assert_int_equal(n, 0);
}

TEST_GROUP(NULL, teardown)
