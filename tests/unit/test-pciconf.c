/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>

#include "unit.h"

#include "scanfixture.h"

static void put(uint8_t *config, size_t offset, const char *bytes, size_t n) {
        memcpy(config + offset, bytes, n);
}

#define PUT(config, offset, bytes) put((config), (offset), (bytes), sizeof(bytes) - 1)

/* A root port (or a port of another type) with this ACS control. */
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

TEST_WITH(test_acs_of_ports, setup, teardown) {
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
                { 4, 0x1d, 256, PCI_ACS_UNKNOWN }, /* 256 bytes lack the extended capability */
                { 4, 0x1d, 64, PCI_ACS_UNKNOWN },    { 4, 0x1d, 10, PCI_ACS_UNKNOWN },
        };
        Fixture *f = *state;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                write_port(f, "0000:00:01.0", cases[i].type, cases[i].control, cases[i].size);
                scan(f);
                assert_int_equal(find(f, "0000:00:01.0")->acs, cases[i].acs);
        }
        assert_fault(find(f, "0000:00:01.0"), "config");
        write_port(f, "0000:00:01.0", 4, 0x5d, 4096);
        scan(f);
        assert_int_equal(find(f, "0000:00:01.0")->acs_capabilities, 0x1f);
        assert_int_equal(find(f, "0000:00:01.0")->acs_enabled, 0x1d); /* without bits that the port lacks */
        write_port(f, "0000:00:01.0", 4, 0x1d, 4096);
        tree_attribute(f->root, "0000:00:01.0", "power_state", "D3cold"); /* reading would wake the device */
        scan(f);
        assert_int_equal(find(f, "0000:00:01.0")->acs, PCI_ACS_UNKNOWN);
}

TEST_WITH(test_acs_of_multifunction_devices, setup, teardown) {
        Fixture *f = *state;

        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:00.1", "0x8086", "0x10c9", "0x020000");
        write_port(f, "0000:01:00.0", 0, 0x1d, 4096);
        write_port(f, "0000:01:00.1", 0, 0x00, 4096);
        scan(f);
        /* The header of function 0 does not have the multi-function bit. */
        assert_int_equal(find(f, "0000:01:00.1")->acs, PCI_ACS_OPEN);
        tree_unlink(f->root, "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.1/config");
        scan(f);
        assert_int_equal(find(f, "0000:01:00.1")->acs, PCI_ACS_UNKNOWN);
}

/* A NIC with the given first extended capability. */
static void write_nic(const Fixture *f, char capability, char control, size_t size) {
        uint8_t config[4096] = { 0 };

        PUT(config, 0x00, "\x15\xb3\x21\x10\x06\x04\x10\x00\x00\x00\x00\x02\x10\x00\x00");
        PUT(config, 0x34, "\x60");
        PUT(config, 0x60, "\x10\x00\x02\x00");
        config[0x100] = (uint8_t) capability;
        config[0x102] = 1;
        config[0x107] = (uint8_t) control;
        tree_bytes(f->root, "sys/bus/pci/devices/0000:01:00.0/config", config, size);
}

TEST_WITH(test_ats_of_a_nic, setup, teardown) {
        static const struct {
                char capability, control;
                size_t size;
                PciAts ats;
        } cases[] = {
                { 0x0f, (char) 0x80, 4096, PCI_ATS_ON },
                { 0x0f, 0x00, 4096, PCI_ATS_OFF },
                { 0x01, (char) 0x80, 4096, PCI_ATS_NONE },
                { 0x0f, (char) 0x80, 256, PCI_ATS_UNKNOWN }, /* 256 bytes lack the extended capability */
                { 0x0f, (char) 0x80, 64, PCI_ATS_UNKNOWN },
        };
        Fixture *f = *state;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                write_nic(f, cases[i].capability, cases[i].control, cases[i].size);
                scan(f);
                assert_int_equal(find(f, "0000:01:00.0")->ats, cases[i].ats);
                assert_int_equal(find(f, "0000:01:00.0")->acs, PCI_ACS_CLEAN);
                assert_null(find(f, "0000:01:00.0")->fault);
        }
        /* No decision depends on ATS, so unknown ATS is no fault. */
        write_nic(f, 0x0f, 0, 10);
        scan(f);
        assert_int_equal(find(f, "0000:01:00.0")->ats, PCI_ATS_UNKNOWN);
        assert_null(find(f, "0000:01:00.0")->fault);
        write_nic(f, 0x0f, 0, 4096);
        tree_attribute(f->root, "0000:01:00.0", "power_state", "D3cold"); /* reading would wake the device */
        scan(f);
        assert_int_equal(find(f, "0000:01:00.0")->ats, PCI_ATS_UNKNOWN);
}
