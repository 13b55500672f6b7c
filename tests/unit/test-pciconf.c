/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scanfixture.h"

static void put(uint8_t *config, size_t offset, const char *bytes, size_t n) {
        memcpy(config + offset, bytes, n);
}

#define PUT(config, offset, bytes) put((config), (offset), (bytes), sizeof(bytes) - 1)

/* A root port (or what type says) whose ACS control is as given. */
static void write_port(const Fixture *f, const char *address, char type, char control, size_t size) {
        _cleanup_free_ char *path = NULL;
        uint8_t config[4096] = { 0 };

        PUT(config, 0x00, "\x86\x80\x30\x20\x06\x04\x10\x00\x04\x00\x04\x06\x10\x00\x01");
        PUT(config, 0x34, "\x60");
        PUT(config, 0x60, "\x10\x00\x02\x00");
        config[0x62] = (uint8_t) (type << 4 | 2);
        PUT(config, 0x100, "\x0d\x00\x01\x00\x1f\x00");
        config[0x106] = (uint8_t) control;
        assert_true(asprintf(&path, "sys/bus/pci/devices/%s/config", address) >= 0);
        tree_bytes(f->root, path, config, size);
}

static void test_acs_of_ports(void **state) {
        static const struct {
                char type, control;
                size_t size;
                PciAcs acs;
        } cases[] = {
                { 4, 0x1d, 4096, PCI_ACS_ISOLATED },                                   /* root port */
                { 4, 0x0d, 4096, PCI_ACS_OPEN },                                       /* no upstream forwarding */
                { 6, 0x1d, 4096, PCI_ACS_ISOLATED },                                   /* downstream port */
                { 6, 0x00, 4096, PCI_ACS_OPEN },     { 5, 0x00, 4096, PCI_ACS_CLEAN }, /* upstream port */
                { 7, 0x1d, 4096, PCI_ACS_OPEN },                                       /* PCIe to PCI bridge */
                { 4, 0x1d, 256, PCI_ACS_UNKNOWN },                                     /* that far it cannot be read */
                { 4, 0x1d, 64, PCI_ACS_UNKNOWN },    { 4, 0x1d, 10, PCI_ACS_UNKNOWN },
        };
        Fixture *f = *state;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                write_port(f, "0000:00:01.0", cases[i].type, cases[i].control, cases[i].size);
                scan(f);
                assert_int_equal(find(f, "0000:00:01.0")->acs, cases[i].acs);
        }
        assert_fault(find(f, "0000:00:01.0"), "config");
        write_port(f, "0000:00:01.0", 4, 0x1d, 4096);
        tree_attribute(f->root, "0000:00:01.0", "power_state", "D3cold"); /* then reading would wake it */
        scan(f);
        assert_int_equal(find(f, "0000:00:01.0")->acs, PCI_ACS_UNKNOWN);
}

static void test_acs_of_multifunction_devices(void **state) {
        Fixture *f = *state;

        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:00.1", "0x8086", "0x10c9", "0x020000");
        write_port(f, "0000:01:00.0", 0, 0x1d, 4096);
        write_port(f, "0000:01:00.1", 0, 0x00, 4096);
        scan(f);
        /* Function 0 does not say in its header that it has a sibling. */
        assert_int_equal(find(f, "0000:01:00.1")->acs, PCI_ACS_OPEN);
        tree_unlink(f->root, "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.1/config");
        scan(f);
        assert_int_equal(find(f, "0000:01:00.1")->acs, PCI_ACS_UNKNOWN);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
                TEST(test_acs_of_ports),
                TEST(test_acs_of_multifunction_devices),
#undef TEST
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
