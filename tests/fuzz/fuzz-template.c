/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Domain templates. Their document is well-formed and passes the devices of the allocation, each once and at its own
 * address, and no other device of the host.
 */

#include "fuzz-node.h"

#include <libxml/parser.h>

#include "guest/domxml.h"

/* Returns the allocation of the document, which is made once. */
static const Allocation *guest(TestNode *t) {
        Allocation *a = ledger_find(t->ledger, "guest");

        if (a)
                return a;
        assert_int_equal(node_allocate(t, "guest", ASK(.pools = "gpu=2 vf=1", .cpus = 4), NULL), VERDICT_NONE);
        a = ledger_find(t->ledger, "guest");
        (void) stpcpy(a->id, "6d6b0fd7-3b1d-4c0c-9d6f-2f3f7a5b0001");
        return a;
}

static bool is_element(const xmlNode *n, const char *name) {
        return n->type == XML_ELEMENT_NODE && !n->ns && streq((const char *) n->name, name);
}

/* Returns the first child element of that name, and counts all. */
static const xmlNode *child(const xmlNode *parent, const char *name, size_t *ret_n) {
        const xmlNode *first = NULL;
        size_t n = 0;

        for (const xmlNode *c = parent ? parent->children : NULL; c; c = c->next)
                if (is_element(c, name)) {
                        first = first ?: c;
                        n++;
                }
        if (ret_n)
                *ret_n = n;
        return first;
}

static const xmlNode *only_child(const xmlNode *parent, const char *name) {
        size_t n;
        const xmlNode *c = child(parent, name, &n);

        if (n != 1)
                fail_msg("%zu <%s>\n", n, name);
        return c;
}

static bool has(const xmlNode *n, const char *attribute, const char *value) {
        _cleanup_free_ char *s = (char *) xmlGetProp(n, (const xmlChar *) attribute);

        return s && streq(s, value);
}

/* Reads a number as libvirt does. -1: absent or not a number. */
static long number(const xmlNode *n, const char *attribute) {
        _cleanup_free_ char *s = (char *) xmlGetProp(n, (const xmlChar *) attribute);
        char *end = NULL;
        long value = s && *s >= '0' && *s <= '9' ? strtol(s, &end, 0) : -1;

        return end && *end ? -1 : value;
}

static PciAddress address_in(const xmlNode *parent) {
        const xmlNode *a = only_child(parent, "address");

        return (PciAddress) {
                .domain = (uint32_t) number(a, "domain"),
                .bus = (uint8_t) number(a, "bus"),
                .slot = (uint8_t) number(a, "slot"),
                .function = (uint8_t) number(a, "function"),
        };
}

static bool same_guest_address(const xmlNode *a, PciAddress b) {
        const xmlNode *other = child(a, "address", NULL);

        return other && has(other, "type", "pci") && number(other, "bus") == b.bus && number(other, "slot") == b.slot &&
               MAX(number(other, "function"), 0L) == b.function;
}

/* Checks that no other device has the hostdev's address in the guest, and that its bus exists. */
static void check_seat(const xmlNode *devices, const xmlNode *hostdev) {
        PciAddress seat = address_in(hostdev);
        size_t sitting = 0, controllers = 0;

        for (const xmlNode *n = devices->children; n; n = n->next) {
                if (n->type != XML_ELEMENT_NODE)
                        continue;
                sitting += same_guest_address(n, seat);
                controllers += is_element(n, "controller") && has(n, "type", "pci") && number(n, "index") == seat.bus;
        }
        assert_int_equal(sitting, 1);
        assert_int_equal(controllers, 1);
}

static void check_hostdevs(const xmlNode *devices, const Allocation *a, bool seated) {
        size_t wanted = 0, found = 0;

        for (const xmlNode *n = devices->children; n; n = n->next) {
                assert_false(is_element(n, "interface") && has(n, "type", "hostdev"));
                assert_false(is_element(n, "disk") && has(n, "type", "nvme"));
                if (!is_element(n, "hostdev") || !has(n, "type", "pci"))
                        continue;
                found++;
                assert_non_null(allocation_find_device(a, address_in(only_child(n, "source"))));
                if (seated)
                        check_seat(devices, n);
        }
        for (size_t i = 0; i < a->n_devices; i++)
                wanted += a->devices[i].role != DEVICE_ROLE_HELD;
        assert_int_equal(found, wanted);
}

static void check_text(const xmlNode *n, const char *expected) {
        _cleanup_free_ char *s = (char *) xmlNodeGetContent(n);

        assert_non_null(s);
        assert_string_equal(s, expected);
}

static void check_document(const char *text, const Allocation *a, Hypervisor hypervisor) {
        xmlDoc *doc = xmlReadMemory(text, (int) strlen(text), NULL, NULL,
                                    XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
        const xmlNode *root;

        assert_non_null(doc);
        root = xmlDocGetRootElement(doc);
        assert_true(root && is_element(root, "domain"));
        check_text(only_child(root, "name"), a->name);
        check_text(only_child(root, "uuid"), a->id);
        check_text(only_child(root, "vcpu"), "4");
        (void) only_child(root, "memory");
        if (hypervisor == HYPERVISOR_KVM)
                (void) only_child(root, "numatune");
        check_hostdevs(only_child(root, "devices"), a, hypervisor == HYPERVISOR_KVM);
        xmlFreeDoc(doc);
}

/* A document with host devices is refused as a template. */
static void check_not_again(const TestNode *t, const Allocation *a, const char *text) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        char *again = NULL;

        assert_int_equal(domxml_make(t->inventory, t->config, a, &(DomainTemplate) { text, true }, GUEST_INFO_GUEST,
                                     &again, &refusal),
                         VERDICT_INVALID_TEMPLATE);
        fuzz_check_refusal(VERDICT_INVALID_TEMPLATE, &refusal);
}

/* An allocation with a document also has an NCCL topology. */
static void check_nccl(const TestNode *t, const Allocation *a, const DomainTemplate *template) {
        _cleanup_free_ char *text = NULL;
        xmlDoc *doc;

        assert_int_equal(domxml_nccl_topology(t->inventory, t->config, a, template, &text, NULL), VERDICT_NONE);
        doc = xmlReadMemory(text, (int) strlen(text), NULL, NULL, XML_PARSE_NONET);
        assert_non_null(doc);
        xmlFreeDoc(doc);
}

static void check_template(const TestNode *t, const Allocation *a, const DomainTemplate *template) {
        _cleanup_free_ char *text = NULL;
        _cleanup_refusal_ Refusal refusal = { 0 };
        Verdict v = domxml_make(t->inventory, t->config, a, template, GUEST_INFO_GUEST, &text, &refusal);

        assert_int_equal(v == VERDICT_NONE, text != NULL);
        if (v != VERDICT_NONE) {
                assert_true(v == VERDICT_INVALID_TEMPLATE || v == VERDICT_INVALID_REQUEST);
                fuzz_check_refusal(v, &refusal);
                return;
        }
        check_document(text, a, t->config->hypervisor);
        check_not_again(t, a, text);
        if (t->config->hypervisor == HYPERVISOR_KVM)
                check_nccl(t, a, template);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        TestNode *t = fuzz_node();
        const Allocation *a = guest(t);
        _cleanup_free_ char *input = fuzz_text(data, size);
        const DomainTemplate template = { input, .qemu_commandline = true };

        for (Hypervisor h = 0; h < _HYPERVISOR_MAX; h++) {
                t->config->hypervisor = h;
                check_template(t, a, &template);
        }
        return 0;
}
