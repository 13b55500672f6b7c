/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "guest/domain-status.h"
#include "util/cleanup.h"
#include "util/strings.h"

/* As libvirt writes a running domain, with what is ours to find and what only looks like it. */
static const char document[] =
        "<domstatus state='running' reason='booted' pid='4242'><monitor path='/x' type='unix'/>"
        "<domain type='kvm' id='3'><name>a&amp;b</name><uuid>6d6b0fd7-3b1d-4c0c-9d6f-2f3f7a5b0001</uuid><devices>\n"
        "<hostdev mode='subsystem' type='pci' managed='no'><driver name='vfio'/>"
        "<source><address domain='0x0000' bus='0x82' slot='0x00' function='0x0'/></source>"
        "<address type='pci' domain='0x0000' bus='0x07' slot='0x00' function='0x0'/></hostdev>"
        "<interface type='hostdev'><source>"
        "<address type='pci' domain='0x10000' bus='131' slot='4' function='7'/></source></interface>"
        "<disk type='nvme' device='disk'><source type='pci' managed='no' namespace='1'>"
        "<address domain='0x0000' bus='0xff' slot='0x1f' function='0x0'/></source></disk>"
        "<hostdev mode='subsystem' type='mdev'><source>"
        "<address uuid='c2177883-f1bb-47f0-914d-32a22e3a8804'/></source></hostdev>"
        "<hostdev mode='subsystem' type='usb'><source><address bus='1' device='3'/></source></hostdev>"
        "<interface type='network'><source network='default'/></interface>"
        "<interface type='network'><source network='vfs'/><actual type='hostdev'><source>"
        "<address type='pci' domain='0x0000' bus='0x83' slot='0x00' function='0x2'/></source></actual></interface>"
        "<hostdev type='pci'><source><address bus='0x100' slot='0' function='0'/></source></hostdev>"
        "<hostdev type='pci'><source><address bus='one' slot='0' function='0'/></source></hostdev>"
        "<hostdev type='pci'><source><address bus='' slot='0' function='0'/></source></hostdev>"
        "<hostdev type='pci'><source><address bus='1' slot='32' function='0'/></source></hostdev>"
        "</devices></domain></domstatus>";

static void test_sources(void **state) {
        static const char *const expected[] = { "0000:82:00.0", "10000:83:04.7", "0000:ff:1f.0", "0000:83:00.2" };
        _cleanup_(domain_status_done) DomainStatus status = { 0 };

        assert_int_equal(domain_status_parse(document, &status), 0);
        assert_string_equal(status.name, "a&b");
        assert_string_equal(status.uuid, "6d6b0fd7-3b1d-4c0c-9d6f-2f3f7a5b0001");
        assert_int_equal(status.pid, 4242);
        assert_false(status.starting);
        assert_int_equal(status.n_devices, ELEMENTSOF(expected));
        for (size_t i = 0; i < status.n_devices; i++)
                assert_string_equal(PCI_ADDRESS_STR(status.devices[i]), expected[i]);
}

static void test_starting(void **state) {
        static const char *const reasons[] = { "starting up", "user", "booted", "migration" };

        for (size_t i = 0; i < ELEMENTSOF(reasons); i++) {
                _cleanup_(domain_status_done) DomainStatus status = { 0 };
                _cleanup_free_ char *xml = NULL;

                assert_int_equal(string_replace(&xml,
                                                "<domstatus state='paused' reason='%s' pid='1'><domain><name>a</name>"
                                                "<devices/></domain></domstatus>",
                                                reasons[i]),
                                 0);
                assert_int_equal(domain_status_parse(xml, &status), 0);
                assert_int_equal(status.starting, i == 0);
        }
}

static void test_no_domain(void **state) {
        static const char *const documents[] = {
                "",
                "no document",
                "<domstatus pid='1'",
                "<domstatus pid='1'/>",
                "<domstatus pid='1'><domain><name>a</name></domain></domstatus>",
                "<domstatus pid='1'><domain><devices/></domain></domstatus>",
                "<domstatus><domain><name>a</name><devices/></domain></domstatus>",
                "<domstatus pid='x'><domain><name>a</name><devices/></domain></domstatus>",
                "<domain pid='1'><name>a</name><devices/></domain>",
        };
        _cleanup_(domain_status_done) DomainStatus status = { 0 };

        for (size_t i = 0; i < ELEMENTSOF(documents); i++)
                assert_int_equal(domain_status_parse(documents[i], &status), -EINVAL);
        assert_int_equal(domain_status_parse("<domstatus pid='1'><domain><name>a</name><devices/></domain></domstatus>",
                                             &status),
                         0);
        assert_int_equal(status.n_devices, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sources),
                cmocka_unit_test(test_starting),
                cmocka_unit_test(test_no_domain),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
