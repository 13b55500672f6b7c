/* SPDX-License-Identifier: GPL-2.0-or-later */

/* What the running libvirt has is used, what it lacks is not written. */

#include "domxml-fixture.h"

#define DRIVER_SCHEMA(attributes)                                                                                      \
        "<grammar xmlns='http://relaxng.org/ns/structure/1.0'><define name='hostdevDriver'><element name='driver'>"    \
        "<optional><attribute name='name'><choice><value>kvm</value><value>vfio</value></choice></attribute>"          \
        "</optional>" attributes "</element></define></grammar>"

static LibvirtFeatures features_of(const char *schema) {
        LibvirtFeatures f = { 0 };

        libvirt_features_add_schema(&f, schema);
        return f;
}

/* By its schemas: a disk's driver is none of ours, an attribute that takes something else than yes is another one. */
static void test_libvirt_features(void **state) {
        LibvirtFeatures f = features_of(DRIVER_SCHEMA(""));

        assert_true(f.known && !f.driver_model && !f.iommufd && !f.maxphysaddr);
        f = features_of(DRIVER_SCHEMA("<attribute name='model'/><attribute name='iommufd'><ref name='virYesNo'/>"
                                      "</attribute>"));
        assert_true(f.driver_model && f.iommufd);
        f = features_of(DRIVER_SCHEMA("<attribute name='iommufd'><ref name='genericName'/></attribute>"));
        assert_false(f.iommufd);
        f = features_of("<grammar><element name='driver'><attribute name='name'><value>qemu</value></attribute>"
                        "<attribute name='model'/></element><element name='maxphysaddr'/></grammar>");
        assert_true(f.known && f.maxphysaddr && !f.driver_model);
        f = features_of("<grammar>");
        assert_false(f.known);
        f = features_of("<grammar><element name='acpi'><attribute name='index'/></element><element name='memory'>"
                        "<attribute name='nodeset'/></element></grammar>");
        assert_true(f.known && !f.acpi_nodeset); /* another nodeset */
        f = features_of("<grammar><element name='acpi'/><element name='acpi'><optional><attribute "
                        "name='nodeset'/></optional></element>"
                        "</grammar>");
        assert_true(f.known && f.acpi_nodeset);
}

/* What libvirt could ask of a QEMU that this one cannot do is not there; a QEMU without KVM is of no account. */
static void test_qemu_features(void **state) {
        static const LibvirtFeatures all = {
                .known = true, .maxphysaddr = true, .iommufd = true, .acpi_nodeset = true
        };
        LibvirtFeatures f = all;

        assert_true(libvirt_features_limit(&f, "<qemuCaps><flag name='kvm'/><flag name='iommufd'/>"
                                               "<flag name='acpi-generic-initiator'/></qemuCaps>"));
        assert_memory_equal(&f, &all, sizeof(f));
        assert_false(libvirt_features_limit(&f, "<qemuCaps><flag name='tcg'/></qemuCaps>"));
        assert_memory_equal(&f, &all, sizeof(f));
        assert_true(libvirt_features_limit(&f, "<qemuCaps><flag name='kvm'/><flag name='iommufd'/></qemuCaps>"));
        assert_true(f.known && f.maxphysaddr && f.iommufd && !f.acpi_nodeset);
        assert_true(libvirt_features_limit(&f, "iommufd"));
        assert_true(f.known && f.maxphysaddr && !f.iommufd);
}

/* Written for a libvirt that has it, for no other. */
static void test_libvirt_that_has_it(void **state) {
        _cleanup_case_ Case c = one_node("vm33");
        _cleanup_free_ char *unknown = make(&c, NULL), *old = NULL, *recent = NULL, *mixed = NULL, *plain = NULL;

        assert_has(unknown, "<maxphysaddr");
        assert_int_equal(string_copy(&c.a->vfio_driver, "mlx5_vfio_pci"), 0);
        c.inv->libvirt = (LibvirtFeatures){ .known = true };
        old = make(&c, NULL);
        assert_has_not(old, "maxphysaddr");
        assert_has_not(old, "model=\"mlx5");
        assert_has_not(old, "iommufd");
        c.inv->libvirt = (LibvirtFeatures){ .known = true, .driver_model = true, .iommufd = true, .maxphysaddr = true };
        c.inv->devices[0].vfio_cdev = true;
        mixed = make(&c, NULL);
        assert_has(mixed, "<driver name=\"vfio\" model=\"mlx5_vfio_pci\"/>");
        assert_has_not(mixed, "iommufd"); /* one of them has no device of its own */
        c.inv->devices[1].vfio_cdev = true;
        recent = make(&c, NULL);
        assert_has(recent, "<driver name=\"vfio\" model=\"mlx5_vfio_pci\" iommufd=\"yes\"/>");
        assert_int_equal(string_copy(&c.a->vfio_driver, "vfio-pci"), 0);
        plain = make(&c, NULL);
        assert_has(plain, "<driver name=\"vfio\" iommufd=\"yes\"/>");
}

/* The guest cell, not the host's node; of a device on no cell there is nothing to tell. */
static void test_acpi_nodeset(void **state) {
        _cleanup_case_ Case c = case_new("vm34", 3, (int[]){ 0, 4, 5 }, false);
        _cleanup_free_ char *old = NULL, *recent = NULL;

        add_gpu(&c, "0000:82:00.0", 4, 0, "gpu0");
        add_gpu(&c, "0000:c2:00.0", -1, 0, "gpu1");
        pin(&c, "2-3,18-19,34", 66ULL << 20, 2ULL << 20);
        c.inv->libvirt.known = true;
        old = make(&c, NULL);
        assert_has_not(old, "<acpi nodeset");
        c.inv->libvirt.acpi_nodeset = true;
        recent = make(&c, NULL);
        assert_has(recent, "<alias name=\"ua-gpu0\"/>\n      <acpi nodeset=\"1\"/>");
        assert_has_not(recent, "<alias name=\"ua-gpu1\"/>\n      <acpi");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_libvirt_features),
                cmocka_unit_test(test_qemu_features),
                cmocka_unit_test(test_libvirt_that_has_it),
                cmocka_unit_test(test_acpi_nodeset),
        };

        return cmocka_run_group_tests_name("libvirt-features", tests, NULL, teardown);
}
