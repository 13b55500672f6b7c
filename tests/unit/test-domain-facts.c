/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>

#include "unit.h"

#include "guest/domain-facts.h"
#include "util/cleanup.h"
#include "util/fileio.h"
#include "util/strings.h"

/* A running domain with host devices, and with elements that only resemble them. */
static const char document[] =
        "<domain type='kvm' id='3'><name>a</name><devices>\n"
        "<hostdev mode='subsystem' type='pci' managed='no'><driver name='vfio'/>"
        "<source><address domain='0x0000' bus='0x82' slot='0x00' function='0x0'/></source>"
        "<address type='pci' domain='0x0000' bus='0x07' slot='0x00' function='0x0'/><alias name='ua-gpu0'/></hostdev>"
        "<interface type='hostdev'><source>"
        "<address type='pci' domain='0x10000' bus='131' slot='4' function='7'/></source></interface>"
        "<disk type='nvme' device='disk'><source type='pci' managed='no' namespace='1'>"
        "<address domain='0x0000' bus='0xff' slot='0x1f' function='0x0'/></source></disk>"
        "<hostdev mode='subsystem' type='mdev'><source>"
        "<address uuid='c2177883-f1bb-47f0-914d-32a22e3a8804'/></source><alias name='ua-vgpu0'/></hostdev>"
        "<hostdev mode='subsystem' type='mdev'><source><address uuid='7'/></source></hostdev>"
        "<hostdev mode='subsystem' type='usb'><source><address bus='1' device='3'/></source></hostdev>"
        "<interface type='network'><source network='default'/></interface>"
        "<hostdev type='pci'><source><address bus='0x100' slot='0' function='0'/></source></hostdev>"
        "<hostdev type='pci'><source><address bus='one' slot='0' function='0'/></source></hostdev>"
        "<hostdev type='pci'><source><address bus='' slot='0' function='0'/></source></hostdev>"
        "<hostdev type='pci'><source><address bus='1' slot='32' function='0'/></source></hostdev>"
        "</devices></domain>";

TEST(test_xen) {
        assert_true(domain_facts_xen("<!-- a comment --><domain id='1' type='xen'><name>a</name></domain>"));
        assert_false(domain_facts_xen(document));
        assert_false(domain_facts_xen("<domain/>"));
        assert_false(domain_facts_xen("<pool type='xen'/>"));
        assert_false(domain_facts_xen("<domain type='xen'>"));
}

TEST(test_devices) {
        static const char *const expected[] = { "0000:82:00.0", "10000:83:04.7", "0000:ff:1f.0",
                                                "c2177883-f1bb-47f0-914d-32a22e3a8804" };
        _cleanup_names_ char **devices = NULL;
        size_t n = 0;

        assert_int_equal(domain_facts_devices(document, &devices, &n), 0);
        assert_int_equal(n, ELEMENTSOF(expected));
        for (size_t i = 0; i < n; i++)
                assert_string_equal(devices[i], expected[i]);
        assert_null(devices[n]);
}

TEST(test_alias) {
        static const char gpu[] = "0000:82:00.0";
        _cleanup_free_ char *alias = domain_facts_alias(document, gpu),
                            *of_mdev = domain_facts_alias(document, "c2177883-f1bb-47f0-914d-32a22e3a8804");

        assert_string_equal(alias, "ua-gpu0");
        assert_string_equal(of_mdev, "ua-vgpu0");
        assert_null(domain_facts_alias(document, "0000:ff:1f.0"));
        assert_null(domain_facts_alias(document, "0000:07:00.0"));
        assert_null(domain_facts_alias("<domain/>", gpu));
}

TEST(test_no_domain) {
        static const char *const documents[] = {
                "",
                "<domain",
                "<domain/>",
                "<domstatus><devices/></domstatus>",
                "<!DOCTYPE domain [<!ENTITY a 'a'>]><domain><devices/></domain>",
        };
        char **devices = NULL;
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(documents); i++)
                assert_int_equal(domain_facts_devices(documents[i], &devices, &n), -EINVAL);
        assert_null(devices);
}

TEST(test_versions) {
        LibvirtFeatures f = domain_facts_features(8006000, 10000002, NULL);

        assert_true(f.known);
        assert_false(f.maxphysaddr || f.driver_model || f.iommufd || f.acpi_nodeset);
        assert_true(f.fwcfg);
        f = domain_facts_features(6005000, 2008000, NULL);
        assert_false(f.fwcfg);
        f = domain_facts_features(6004000, 2009000, NULL);
        assert_false(f.fwcfg);
        f = domain_facts_features(9000000, 7002000, NULL);
        assert_true(f.maxphysaddr && !f.driver_model);
        f = domain_facts_features(11003000, 10000002, NULL);
        assert_true(f.driver_model && !f.acpi_nodeset && !f.iommufd);
        f = domain_facts_features(12001000, 9000000, NULL);
        assert_true(f.acpi_nodeset && f.iommufd);
        f = domain_facts_features(12001000, 8002000, NULL);
        assert_false(f.acpi_nodeset || f.iommufd);
}

#define HOSTDEV(inner)                                                                                                 \
        "<domainCapabilities><devices><hostdev supported='yes'>" inner "</hostdev></devices></domainCapabilities>"

/* As reported by libvirt 12.8, 11.3 and 9.0 on a host with SEV. */
TEST(test_security) {
        static const char recent[] =
                "<domainCapabilities><features><sev supported='yes'/><tdx supported='no'/><launchSecurity "
                "supported='yes'>"
                "<enum name='sectype'><value>sev</value><value>sev-snp</value></enum></launchSecurity></features>"
                "</domainCapabilities>";
        static const char old[] =
                "<domainCapabilities><features><sev supported='yes'/></features></domainCapabilities>";
        static const char none[] = "<domainCapabilities><features><sev supported='no'/><launchSecurity supported='no'/>"
                                   "</features></domainCapabilities>";
        LibvirtFeatures f = domain_facts_features(12008000, 11001003, recent);

        assert_true(f.security[CONFIDENTIAL_SEV] && f.security[CONFIDENTIAL_SNP] && !f.security[CONFIDENTIAL_TDX]);
        f = domain_facts_features(9000000, 7002000, old);
        assert_true(f.security[CONFIDENTIAL_SEV] && !f.security[CONFIDENTIAL_SNP]);
        f = domain_facts_features(11003000, 10000000, none);
        assert_false(f.security[CONFIDENTIAL_SEV] || f.security[CONFIDENTIAL_SNP]);
}

/* The relevant members of descriptors such as Debian's 60-edk2-ovmf-x64-amdsev.json. */
TEST(test_firmware) {
        static const struct {
                const char *text;
                bool snp, tdx;
        } files[] = {
                { "{\"mapping\":{\"device\":\"memory\",\"filename\":\"/"
                  "x\"},\"features\":[\"amd-sev\",\"amd-sev-snp\"]}",
                  true, false },
                { "{\"mapping\":{\"device\":\"memory\"},\"features\":[\"intel-tdx\"]}", false, true },
                { "{\"mapping\":{\"device\":\"flash\"},\"features\":[\"amd-sev-snp\"]}", false, false },
                { "{\"mapping\":{\"device\":\"memory\"},\"features\":\"amd-sev-snp\"}", false, false },
                { "{\"mapping\":[1],\"features\":[\"amd-sev-snp\"]}", false, false },
                { "{\"mapping\":{\"device\":\"memory\"},\"features\":[null, 1]}", false, false },
                { "", false, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                LibvirtFeatures f = { 0 };

                domain_facts_firmware(files[i].text, strlen(files[i].text), &f);
                assert_int_equal(f.firmware[CONFIDENTIAL_SNP], files[i].snp);
                assert_int_equal(f.firmware[CONFIDENTIAL_TDX], files[i].tdx);
        }
}

TEST(test_capabilities) {
        LibvirtFeatures f = domain_facts_features(12002000, 10000000, HOSTDEV("<enum name='iommufd'/>"));

        assert_false(f.iommufd);
        f = domain_facts_features(12000000, 8000000,
                                  HOSTDEV("<enum name='iommufd'><value>no</value><value>yes</value></enum>"));
        assert_true(f.iommufd);
        f = domain_facts_features(12001000, 10000000, HOSTDEV("<enum name='mode'><value>subsystem</value></enum>"));
        assert_true(f.iommufd);
        f = domain_facts_features(12001000, 10000000, "<domainCapabilities");
        assert_true(f.iommufd);
}
