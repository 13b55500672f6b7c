/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/pcilink.h"

#include <stdio.h>

#include "util/strings.h"

#define WIDTH_MAX 64U

unsigned pci_link_parse_speed(const char *text) {
        char *end;
        unsigned long whole = text[0] >= '0' && text[0] <= '9' ? strtoul(text, &end, 10) : 0, tenths = 0;

        if (whole == 0 || whole > UINT16_MAX)
                return 0;
        if (end[0] == '.' && end[1] >= '0' && end[1] <= '9') {
                tenths = (unsigned long) (end[1] - '0');
                end += 2;
        }
        return strncmp(end, " GT/s", 5) == 0 ? (unsigned) (whole * 1000 + tenths * 100) : 0;
}

unsigned pci_link_parse_width(const char *text) {
        uint64_t width;

        return parse_unsigned(text, WIDTH_MAX, &width) < 0 ? 0 : (unsigned) width;
}

unsigned pci_link_generation(unsigned speed) {
        static const unsigned speeds[] = { 2500, 5000, 8000, 16000, 32000, 64000 };

        for (unsigned i = 0; i < ELEMENTSOF(speeds); i++)
                if (speeds[i] == speed)
                        return i + 1;
        return 0;
}

const char *pci_link_format_speed(unsigned speed, char buf[static PCI_LINK_SPEED_MAX]) {
        (void) snprintf(buf, PCI_LINK_SPEED_MAX, "%u.%u GT/s", speed / 1000, speed % 1000 / 100);
        return buf;
}
