/* SPDX-License-Identifier: GPL-2.0-or-later */

/* CDI documents. tests/golden/cdi.txt has them. */

#include "unit.h"

#include "domxml-fixture.h"
#include "guest/cdi.h"
#include "guest/domain-facts.h"
#include "model/json-parse.h"
#include "model/json-value.h"

#define HAS_IOMMUFD                                                                                                    \
        "<domainCapabilities><devices><hostdev supported='yes'><enum name='iommufd'><value>yes</value></enum>"         \
        "</hostdev></devices></domainCapabilities>"

/* Binds all devices. Each has a group and a character device of its number. */
static void bind_all(Case *c, int first) {
        for (size_t i = 0; i < c->inv->n_devices; i++) {
                PciDevice *dev = &c->inv->devices[i];

                dev->vfio = true;
                dev->iommu_group = first + (int) i;
                (void) snprintf(dev->vfio_cdev, sizeof(dev->vfio_cdev), "vfio%u", (unsigned) i % 100);
        }
}

static json_object *make_cdi(const Case *c, const char *about) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        _cleanup_free_ char *text = NULL;
        json_object *o = NULL;
        Verdict v = cdi_make(c->inv, c->config, c->a, &text, &refusal);

        if (v != VERDICT_NONE)
                fail_msg("%s: %s", verdict_to_string(v), refusal.message);
        record(about, text);
        assert_int_equal(json_parse(text, strlen(text), &o), 0);
        return o;
}

static json_object *at(json_object *o, const char *key, size_t i) {
        json_object *array = json_object_object_get(o, key);

        assert_true(json_object_is_type(array, json_type_array) && i < json_object_array_length(array));
        return json_object_array_get_idx(array, i);
}

static void assert_nodes(json_object *cdi, size_t n, const char *const *paths) {
        json_object *edits = json_object_object_get(at(cdi, "devices", 0), "containerEdits");

        assert_int_equal(json_object_array_length(json_object_object_get(edits, "deviceNodes")), n);
        for (size_t i = 0; i < n; i++)
                assert_string_equal(json_object_get_string(json_object_object_get(at(edits, "deviceNodes", i), "path")),
                                    paths[i]);
}

TEST(test_groups) {
        _cleanup_case_ Case c = one_node("vm1");
        _cleanup_json_ json_object *cdi = NULL, *card = NULL;
        _cleanup_case_ Case d = case_new("vm-2", 1, (int[]) { 0 }, false);

        bind_all(&c, 17);
        cdi = make_cdi(&c, "a GPU and a VF");
        assert_nodes(cdi, 3, (const char *const[]) { "/dev/vfio/vfio", "/dev/vfio/17", "/dev/vfio/18" });
        assert_string_equal(json_object_get_string(json_object_object_get(cdi, "kind")), CDI_ALLOCATION);
        assert_string_equal(json_object_get_string(json_object_object_get(at(cdi, "devices", 0), "name")), "vm1");

        /* A group with a held disk, whose nodes are not in the document. */
        add_card_of_group(&d);
        assert_int_equal(inventory_finish(d.inv), 0);
        bind_all(&d, 5);
        for (size_t i = 0; i < d.inv->n_devices; i++)
                d.inv->devices[i].iommu_group = 5;
        card = make_cdi(&d, "a GPU with its audio function and a disk in one group");
        assert_nodes(card, 2, (const char *const[]) { "/dev/vfio/vfio", "/dev/vfio/5" });
}

TEST(test_iommufd) {
        _cleanup_case_ Case c = one_node("vm1");
        _cleanup_json_ json_object *cdi = NULL;

        bind_all(&c, 17);
        c.inv->libvirt = domain_facts_features(12008000, 11001000, HAS_IOMMUFD);
        c.inv->kernel = 6019;
        cdi = make_cdi(&c, "with iommufd");
        assert_nodes(cdi, 3,
                     (const char *const[]) { "/dev/iommu", "/dev/vfio/devices/vfio0", "/dev/vfio/devices/vfio1" });
}

static void assert_no_cdi(const Case *c, const char *about, Verdict expected) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        char *text = NULL;

        assert_int_equal(cdi_make(c->inv, c->config, c->a, &text, &refusal), expected);
        assert_null(text);
        record(about, refusal.message);
        record(about, refusal.remedy);
}

TEST(test_refusals) {
        _cleanup_case_ Case c = one_node("vm1"), empty = case_new("vm1", 1, (int[]) { 0 }, false),
                            named = one_node("vm1-");

        assert_no_cdi(&c, "devices of the host", VERDICT_WRONG_STATE);
        bind_all(&c, 17);
        c.inv->devices[0].mdev_parent = true;
        assert_no_cdi(&c, "a mediated device", VERDICT_NOT_SUPPORTED);
        c.inv->devices[0].mdev_parent = false;
        c.config->hypervisor = HYPERVISOR_XEN;
        assert_no_cdi(&c, "Xen", VERDICT_NOT_SUPPORTED);
        c.config->hypervisor = HYPERVISOR_KVM;
        c.inv->devices[0].iommu_group = -1;
        assert_no_cdi(&c, "no group", VERDICT_WRONG_STATE);
        assert_no_cdi(&empty, "no device", VERDICT_INVALID_REQUEST);
        bind_all(&named, 17);
        assert_no_cdi(&named, "a name that ends with a dash", VERDICT_INVALID_REQUEST);
}

TEST(test_claim) {
        _cleanup_json_ json_object *cdi = cdi_new("passthroughd.org/claim");
        json_object *edits = cdi_add_device(cdi, "1_pci-0000-13-00-0");
        _cleanup_free_ char *text = NULL;

        assert_int_equal(cdi_add_group(edits, 3), 0);
        assert_int_equal(cdi_add_group(edits, 3), 0);
        assert_int_equal(cdi_add_group(edits, 4), 0);
        assert_int_equal(cdi_add_env(edits, "A", "b=\"c\""), 0);
        assert_int_equal(cdi_add_mount(edits, "/a/b", "/c"), 0);
        text = json_text(cdi);
        record("a document of parts", text);
        assert_nodes(cdi, 3, (const char *const[]) { "/dev/vfio/vfio", "/dev/vfio/3", "/dev/vfio/4" });
}

TEST(test_sentences) {
        assert_sentences("cdi.txt");
}
