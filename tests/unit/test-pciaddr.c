/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>

#include "unit.h"

#include "model/pciaddr.h"
#include "util/cleanup.h"

TEST(test_round_trip) {
        static const char *const texts[] = { "0000:00:00.0",       "0000:3b:00.1",     "ffff:ff:1f.7",
                                             "10000:e1:00.0",      "ffffffff:00:02.3", "0000:3b:00.0.1",
                                             "ffffffff:ff:1f.7.99" };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                PciAddress a;

                assert_int_equal(pci_address_parse(texts[i], &a), 0);
                assert_string_equal(PCI_ADDRESS_STR(a), texts[i]);
        }
}

TEST(test_parse_fields) {
        PciAddress a;

        assert_int_equal(pci_address_parse("0001:3b:1c.5", &a), 0);
        assert_int_equal(a.domain, 1);
        assert_int_equal(a.bus, 0x3b);
        assert_int_equal(a.slot, 0x1c);
        assert_int_equal(a.function, 5);
        assert_int_equal(a.instance, 0);
        assert_int_equal(pci_address_parse("0001:3b:1c.5.32", &a), 0);
        assert_int_equal(a.function, 5);
        assert_int_equal(a.instance, 32);
        assert_string_equal(PCI_ADDRESS_STR(pci_address_function(a)), "0001:3b:1c.5");
}

TEST(test_parse_refuses) {
        static const char *const bad[] = {
                "",
                "3b:00.0",
                "000:3b:00.0",
                "00000:3b:00.0",
                "100000000:00:00.0",
                "0000:3B:00.0",
                "0000:3b:20.0",
                "0000:3b:00.8",
                "0000:3b:00",
                "0000:3b:00.",
                "0000:3b:00.00",
                "0000:3b:00.0.",
                "0000:3b:00.0.0",
                "0000:3b:00.0.01",
                "0000:3b:00.0.100",
                "0000:3b:00.0.1.1",
                "0000:3b:00.0.a",
                " 0000:3b:00.0",
                "0000:3b:00.0 ",
                "0000.3b.00.0",
                "0000:3b:00:0",
                "0000:03b:00.0",
                "0000:",
                "0000:3b:0g.0",
        };
        PciAddress a = { .domain = 7 };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(pci_address_parse(bad[i], &a), -EINVAL);
        assert_int_equal(a.domain, 7);
}

TEST(test_valid) {
        static const PciAddress invalid[] = { { .slot = 32 }, { .function = 8 }, { .instance = PCI_INSTANCE_MAX + 1 } };

        assert_true(pci_address_is_valid((PciAddress) { 0 }));
        assert_true(pci_address_is_valid((PciAddress) { UINT32_MAX, 255, 31, 7, PCI_INSTANCE_MAX }));
        for (size_t i = 0; i < ELEMENTSOF(invalid); i++)
                assert_false(pci_address_is_valid(invalid[i]));
}

TEST(test_order) {
        static const PciAddress ascending[] = {
                { 0, 0, 0, 0 }, { 0, 0, 0, 7 },   { 0, 0, 1, 0 }, { 0, 0, 31, 7 },
                { 0, 1, 0, 0 }, { 0, 255, 0, 0 }, { 1, 0, 0, 0 }, { 0x10000, 0, 0, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(ascending); i++)
                for (size_t j = 0; j < ELEMENTSOF(ascending); j++) {
                        int order = pci_address_compare(ascending[i], ascending[j]);

                        assert_true(i < j ? order < 0 : i > j ? order > 0 : order == 0);
                        assert_int_equal(pci_address_equal(ascending[i], ascending[j]), i == j);
                }
        assert_true(pci_address_same_slot(ascending[0], ascending[1]));
        assert_false(pci_address_same_slot(ascending[0], ascending[2]));
        assert_false(pci_address_same_slot(ascending[0], ascending[4]));
        assert_false(pci_address_same_slot(ascending[0], ascending[6]));
}
