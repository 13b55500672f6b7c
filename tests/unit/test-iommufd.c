/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Whether a guest gets its devices by iommufd, for versions of libvirt, QEMU and Linux. tests/golden/iommufd.txt is the
 * table. */

#include "unit.h"

#include "domxml-fixture.h"
#include "guest/domain-facts.h"
#include "guest/iommufd.h"

#define HAS(value)                                                                                                     \
        "<domainCapabilities><devices><hostdev supported='yes'><enum name='iommufd'><value>" value                     \
        "</value></enum></hostdev></devices></domainCapabilities>"

static IommufdFacts facts_of(unsigned libvirt, unsigned qemu, const char *capabilities, unsigned kernel, unsigned n) {
        return (IommufdFacts) { .libvirt = domain_facts_features(libvirt, qemu, capabilities),
                                .kernel = kernel,
                                .n_devices = n };
}

static void record_choice(const char *about, const IommufdFacts *f, IommufdReason r) {
        _cleanup_free_ char *why = iommufd_explain(f, r),
                            *text = string_format("%s: %s", iommufd_is_used(r) ? "iommufd" : "no iommufd", why);

        assert_non_null(why);
        record(about, text);
}

/* Each libvirt with each QEMU and each kernel, and a guest with a GPU and a VF. */
TEST(test_table) {
        static const unsigned libvirts[] = { 9000000, 11003000, 12001000, 12008000 },
                              qemus[] = { 7002000, 10000000, 11000000 }, kernels[] = { 6001, 6012, 6019 };
        static const IommufdReason recent[ELEMENTSOF(qemus)][ELEMENTSOF(kernels)] = {
                { IOMMUFD_OLD_QEMU, IOMMUFD_OLD_QEMU, IOMMUFD_OLD_QEMU },
                { IOMMUFD_NO_CDEV, IOMMUFD_NO_PEERS, IOMMUFD_NO_PEERS },
                { IOMMUFD_NO_CDEV, IOMMUFD_NO_PEERS, IOMMUFD_PEERS },
        };

        for (size_t l = 0; l < ELEMENTSOF(libvirts); l++)
                for (size_t q = 0; q < ELEMENTSOF(qemus); q++)
                        for (size_t k = 0; k < ELEMENTSOF(kernels); k++) {
                                IommufdFacts f = facts_of(libvirts[l], qemus[q], NULL, kernels[k], 2);
                                IommufdReason r = iommufd_choose(&f);
                                _cleanup_free_ char *about = string_format(
                                        "libvirt %u.%u, QEMU %u.%u, Linux %u.%u, two devices", libvirts[l] / 1000000,
                                        libvirts[l] / 1000 % 1000, qemus[q] / 1000000, qemus[q] / 1000 % 1000,
                                        kernels[k] / 1000, kernels[k] % 1000);

                                assert_int_equal(r, l < 2 ? IOMMUFD_OLD_LIBVIRT : recent[q][k]);
                                record_choice(about, &f, r);
                        }
}

TEST(test_auto) {
        const struct {
                const char *about;
                IommufdFacts facts;
                IommufdReason reason;
        } cases[] = {
                { "one device", facts_of(12001000, 10000000, NULL, 6012, 1), IOMMUFD_ONE_DEVICE },
                { "one device, an unknown kernel", facts_of(12001000, 10000000, NULL, 0, 1), IOMMUFD_ONE_DEVICE },
                { "two devices, an unknown kernel", facts_of(12008000, 11000000, NULL, 0, 2), IOMMUFD_NO_PEERS },
                { "two devices, an unknown QEMU", facts_of(12008000, 0, HAS("yes"), 6019, 2), IOMMUFD_NO_PEERS },
                { "a kernel without /dev/iommu", facts_of(12008000, 11000000, HAS("no"), 6019, 1),
                  IOMMUFD_NOT_OFFERED },
                { "no device", facts_of(12008000, 11000000, NULL, 6019, 0), IOMMUFD_NO_DEVICE },
                { "an unknown libvirt", { .n_devices = 1, .kernel = 6019 }, IOMMUFD_UNKNOWN },
        };
        IommufdFacts f = facts_of(12008000, 11000000, NULL, 7002, 2);

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                assert_int_equal(iommufd_choose(&cases[i].facts), cases[i].reason);
                record_choice(cases[i].about, &cases[i].facts, cases[i].reason);
        }
        assert_int_equal(iommufd_choose(&f), IOMMUFD_PEERS);
        f.lacks_cdev = true;
        assert_int_equal(iommufd_choose(&f), IOMMUFD_NO_CDEV);
        f.mediated = true;
        assert_int_equal(iommufd_choose(&f), IOMMUFD_MEDIATED);
        record_choice("a mediated device", &f, IOMMUFD_MEDIATED);
        f.xen = true;
        assert_int_equal(iommufd_choose(&f), IOMMUFD_NO_DEVICE);
        /* An older kernel by its number, but with the character devices. */
        f = facts_of(12001000, 10000000, HAS("yes"), 5014, 1);
        assert_int_equal(iommufd_choose(&f), IOMMUFD_NO_CDEV);
        f.has_cdev = true;
        assert_int_equal(iommufd_choose(&f), IOMMUFD_ONE_DEVICE);
        f = facts_of(12001000, 10001000, NULL, 6012, 4);
        f.confidential = true;
        assert_int_equal(iommufd_choose(&f), IOMMUFD_CONFIDENTIAL);
        record_choice("a confidential guest", &f, IOMMUFD_CONFIDENTIAL);
        _cleanup_free_ char *lost = iommufd_explain_lost_peers(&f);
        record("a device is attached to a guest with iommufd", lost);
        for (IommufdReason r = 0; r < _IOMMUFD_REASON_MAX; r++) {
                assert_non_null(iommufd_reason_to_string(r));
                assert_int_equal(iommufd_is_used(r), r >= IOMMUFD_ON);
        }
}

static void assert_checked(const IommufdFacts *f, Verdict expected) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        assert_int_equal(iommufd_check(f, iommufd_choose(f), &refusal), expected);
        if (expected != VERDICT_NONE) {
                record("refused", refusal.message);
                record("remedy", refusal.remedy);
        }
}

TEST(test_configured) {
        IommufdFacts f = facts_of(12008000, 11000000, NULL, 6019, 1);

        f.mode = IOMMUFD_MODE_NO;
        assert_int_equal(iommufd_choose(&f), IOMMUFD_OFF);
        assert_checked(&f, VERDICT_NONE);
        record_choice("Iommufd=no", &f, IOMMUFD_OFF);
        f = facts_of(12001000, 10000000, NULL, 6012, 2);
        f.mode = IOMMUFD_MODE_YES;
        assert_int_equal(iommufd_choose(&f), IOMMUFD_ON);
        assert_checked(&f, VERDICT_NONE);
        record_choice("Iommufd=yes, QEMU 10.0", &f, IOMMUFD_ON);
        f = facts_of(12008000, 11000000, NULL, 6019, 2);
        f.mode = IOMMUFD_MODE_YES;
        record_choice("Iommufd=yes, QEMU 11.0", &f, iommufd_choose(&f));
        /* Unknown versions do not exclude iommufd. */
        f = (IommufdFacts) { .mode = IOMMUFD_MODE_YES, .n_devices = 2 };
        assert_int_equal(iommufd_choose(&f), IOMMUFD_ON);
        assert_checked(&f, VERDICT_NONE);
        f = facts_of(11003000, 10000000, NULL, 6012, 2);
        f.mode = IOMMUFD_MODE_YES;
        assert_checked(&f, VERDICT_NOT_SUPPORTED);
        f.n_devices = 0;
        assert_checked(&f, VERDICT_NONE);
}

/* A GPU and its audio function count as one device, VFs of one PF as several, a held device as none. */
TEST(test_count) {
        _cleanup_case_ Case c = case_new("vm1", 1, (int[]) { 0 }, false);
        PciDevice *gpu;

        add_card_of_group(&c);
        assert_int_equal(iommufd_facts(c.inv, c.config, c.a).n_devices, 1);
        add_vf(&c, "0000:83:00.1", "0000:83:00.0", 0, "ib-vf0");
        assert_int_equal(iommufd_facts(c.inv, c.config, c.a).n_devices, 2);
        add_vf(&c, "0000:83:00.2", "0000:83:00.0", 0, "ib-vf1");
        assert_int_equal(iommufd_facts(c.inv, c.config, c.a).n_devices, 3);

        gpu = &c.inv->devices[0];
        assert_false(iommufd_facts(c.inv, c.config, c.a).lacks_cdev);
        gpu->vfio = true;
        assert_true(iommufd_facts(c.inv, c.config, c.a).lacks_cdev);
        (void) strcpy(gpu->vfio_cdev, "vfio0");
        assert_true(iommufd_facts(c.inv, c.config, c.a).has_cdev);
        assert_false(iommufd_facts(c.inv, c.config, c.a).lacks_cdev);
        c.a->devices[0].vgpu_type = 7;
        gpu->mdev_parent = true;
        assert_true(iommufd_facts(c.inv, c.config, c.a).mediated);
}

static Case new_libvirt(unsigned kernel) {
        Case c = case_new("vm2", 1, (int[]) { 0 }, false);

        add_gpu(&c, "0000:82:00.0", 0, GIB, "gpu0");
        pin(&c, "2-5", 8 * GIB, 0);
        c.inv->libvirt = domain_facts_features(12008000, 11001000, HAS("yes"));
        c.inv->kernel = kernel;
        return c;
}

#define GPU(iommufd) "<driver name=\"vfio\"" iommufd "/>"

/* The document and its metadata follow the choice. A template may choose, too. */
TEST(test_document) {
        _cleanup_case_ Case c = new_libvirt(6012);
        _cleanup_free_ char *one = make(&c, NULL), *off = NULL, *forced = NULL, *two = NULL, *yes = NULL, *tdx = NULL,
                            *peers = NULL;

        assert_has(one, GPU(" iommufd=\"yes\""));
        assert_has(one, "iommufd used=\"yes\" reason=\"one-device\">");
        off = make(&c, "<domain type='kvm'><iommufd enabled='no'/></domain>");
        assert_has(off, GPU(" iommufd=\"no\""));
        add_vf(&c, "0000:83:00.1", "0000:83:00.0", 0, "ib-vf0");
        two = make(&c, NULL);
        assert_has(two, GPU(""));
        assert_has(two, "iommufd used=\"no\" reason=\"no-peer-to-peer\">");
        yes = make(&c, "<domain type='kvm'><iommufd enabled='yes'/></domain>");
        assert_has(yes, GPU(" iommufd=\"yes\""));
        c.inv->confidential.parameters[CONFIDENTIAL_TDX] = MODULE_PARAMETER_YES;
        c.inv->libvirt.security[CONFIDENTIAL_TDX] = c.inv->libvirt.firmware[CONFIDENTIAL_TDX] = true;
        c.inv->devices[0].class = CLASS_INFINIBAND; /* a GPU would need a confidential mode */
        tdx = make(&c, "<domain type='kvm'><os firmware='efi'/><launchSecurity type='tdx'/></domain>");
        c.inv->devices[0].class = CLASS_3D;
        assert_has(tdx, "iommufd used=\"yes\" reason=\"confidential\">");
        c.config->iommufd = IOMMUFD_MODE_NO;
        forced = make(&c, "<domain type='kvm'><iommufd enabled='yes'/></domain>");
        assert_has(forced, GPU(" iommufd=\"no\""));
        c.config->iommufd = IOMMUFD_MODE_AUTO;
        c.inv->kernel = 6019;
        peers = make(&c, NULL);
        /* All elements of libvirt 12 in one document. */
        assert_golden(&c, NULL, "domxml-libvirt-12.xml");
        assert_has(peers, "iommufd used=\"yes\" reason=\"peer-to-peer\">");
        c.config->iommufd = IOMMUFD_MODE_YES;
        c.inv->libvirt = domain_facts_features(11003000, 10000000, NULL);
        assert_refused(&c, NULL, VERDICT_NOT_SUPPORTED, "libvirt 11.3");
}

/* A plugged device has the same choice as the guest's other devices. */
TEST(test_plug) {
        _cleanup_case_ Case c = new_libvirt(6012);
        _cleanup_free_ char *yes = NULL, *no = NULL, *none = NULL, *again = NULL;

        assert_null(domain_facts_iommufd("<domain><devices><disk type='file'/></devices></domain>"));
        assert_string_equal(domain_facts_iommufd("<domain><devices><hostdev type='pci'/></devices></domain>"), "");
        assert_string_equal(domain_facts_iommufd("<domain><devices><disk/><hostdev type='pci'><driver name='vfio' "
                                                 "iommufd='yes'/></hostdev></devices></domain>"),
                            "yes");
        c.config->iommufd = IOMMUFD_MODE_YES;
        assert_int_equal(domxml_hostdev_anywhere(c.inv, c.config, c.a, 0, &yes, NULL), VERDICT_NONE);
        assert_has(yes, GPU(" iommufd=\"yes\""));
        none = domxml_hostdev_with_iommufd(yes, "");
        assert_has(none, GPU(""));
        no = domxml_hostdev_with_iommufd(yes, "no");
        assert_has(no, GPU(" iommufd=\"no\""));
        again = domxml_hostdev_with_iommufd(none, "yes");
        assert_string_equal(again, yes);
        /* A device can be unplugged with any configuration. */
        c.inv->libvirt = domain_facts_features(11003000, 10000000, NULL);
        free(no);
        no = NULL;
        assert_int_equal(domxml_hostdev_anywhere(c.inv, c.config, c.a, 0, &no, NULL), VERDICT_NONE);
}

TEST(test_sentences) {
        assert_sentences("iommufd.txt");
}
