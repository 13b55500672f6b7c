/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/serial.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *pci_serial_format(uint64_t serial, char buf[static PCI_SERIAL_STRING_MAX]) {
        for (unsigned i = 0; i < 8; i++)
                (void) snprintf(buf + (size_t) i * 3, 4, i < 7 ? "%02x-" : "%02x",
                                (unsigned) (serial >> (56 - 8 * i) & 0xff));
        return buf;
}

static int hex_digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -EINVAL;
}

int pci_serial_parse(const char *s, uint64_t *ret) {
        uint64_t serial = 0;

        if (strlen(s) + 1 != PCI_SERIAL_STRING_MAX)
                return -EINVAL;
        for (size_t i = 0; s[i]; i++) {
                if (i % 3 == 2 ? s[i] != '-' : hex_digit(s[i]) < 0)
                        return -EINVAL;
                if (i % 3 != 2)
                        serial = serial << 4 | (uint64_t) hex_digit(s[i]);
        }
        if (pci_serial_known(serial) == 0)
                return -EINVAL;
        *ret = serial;
        return 0;
}

uint64_t pci_serial_known(uint64_t serial) {
        return serial == UINT64_MAX ? 0 : serial;
}
