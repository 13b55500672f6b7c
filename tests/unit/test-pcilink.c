/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "unit.h"

#include "model/pcilink.h"
#include "util/cleanup.h"

TEST(test_speed) {
        static const struct {
                const char *text;
                unsigned speed;
        } cases[] = {
                { "2.5 GT/s PCIe", 2500 },
                { "16.0 GT/s PCIe", 16000 },
                { "64.0 GT/s PCIe", 64000 },
                { "5 GT/s", 5000 },
                { "65535.9 GT/s", 65535900 },
                { "65536 GT/s", 0 },
                { "99999999999999999999 GT/s", 0 },
                { "Unknown", 0 },
                { "", 0 },
                { "-1 GT/s", 0 },
                { " 5 GT/s", 0 },
                { "16.0", 0 },
                { "16.", 0 },
                { "16. GT/s", 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_int_equal(pci_link_parse_speed(cases[i].text), cases[i].speed);
}

TEST(test_width) {
        assert_int_equal(pci_link_parse_width("1"), 1);
        assert_int_equal(pci_link_parse_width("32"), 32);
        assert_int_equal(pci_link_parse_width("0"), 0);
        assert_int_equal(pci_link_parse_width("255"), 0);
        assert_int_equal(pci_link_parse_width("x16"), 0);
        assert_int_equal(pci_link_parse_width(""), 0);
}

TEST(test_format) {
        assert_string_equal(PCI_LINK_SPEED_STR(2500), "2.5 GT/s");
        assert_string_equal(PCI_LINK_SPEED_STR(16000), "16.0 GT/s");
        assert_string_equal(PCI_LINK_SPEED_STR(UINT32_MAX), "4294967.2 GT/s");
}

TEST(test_generation) {
        assert_int_equal(pci_link_generation(2500), 1);
        assert_int_equal(pci_link_generation(64000), 6);
        assert_int_equal(pci_link_generation(0), 0);
        assert_int_equal(pci_link_generation(9000), 0);
}
