/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <string.h>

#include "model/pciaddr.h"

#include "util/strings.h"

/* Returns the value of a lower-case hex digit, or -1. */
static int digit_value(char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses n lower-case hex digits and the separator after them. Returns false if they are missing. */
static bool take_field(const char **s, size_t n, char separator, uint32_t *ret) {
        uint32_t value = 0;

        for (size_t i = 0; i < n; i++) {
                int digit = digit_value((*s)[i]);

                if (digit < 0)
                        return false;
                value = value << 4 | (uint32_t) digit;
        }
        if ((*s)[n] != separator)
                return false;

        *s += n + (separator != 0);
        *ret = value;
        return true;
}

/* Parses the text after the function: nothing, or ".N". Returns false for any other text. */
static bool take_instance(const char *s, uint8_t *ret) {
        uint64_t instance = 0;

        if (*s && (*s != '.' || s[1] == '0' || parse_unsigned(s + 1, PCI_INSTANCE_MAX, &instance) < 0))
                return false;
        *ret = (uint8_t) instance;
        return true;
}

int pci_address_parse(const char *s, PciAddress *ret) {
        uint32_t domain, bus, slot, function;
        uint8_t instance;
        size_t n = 0;

        while (digit_value(s[n]) >= 0)
                n++;
        /* The kernel prints domains as %04x: a domain of more than four digits does not begin with 0. */
        if (n < 4 || n > 8 || (n > 4 && s[0] == '0'))
                return -EINVAL;
        if (!take_field(&s, n, ':', &domain) || !take_field(&s, 2, ':', &bus) || !take_field(&s, 2, '.', &slot) ||
            digit_value(*s) < 0)
                return -EINVAL;
        function = (uint32_t) digit_value(*s++);
        if (slot > 31 || function > 7 || !take_instance(s, &instance))
                return -EINVAL;

        *ret = (PciAddress) {
                .domain = domain,
                .bus = (uint8_t) bus,
                .slot = (uint8_t) slot,
                .function = (uint8_t) function,
                .instance = instance,
        };
        return 0;
}

bool pci_address_is_valid(PciAddress a) {
        return a.slot <= 31 && a.function <= 7 && a.instance <= PCI_INSTANCE_MAX;
}

int pci_address_parse_part(const char *s, size_t n, PciAddress *ret) {
        char text[PCI_ADDRESS_STRING_MAX];

        if (n >= sizeof(text))
                return -EINVAL;
        memcpy(text, s, n);
        text[n] = '\0';
        return pci_address_parse(text, ret);
}

const char *pci_address_format(PciAddress a, char buf[static PCI_ADDRESS_STRING_MAX]) {
        char *end = format_hex(buf, a.domain, 4);

        *end++ = ':';
        end = format_hex(end, a.bus, 2);
        *end++ = ':';
        end = format_hex(end, a.slot, 2);
        *end++ = '.';
        end = format_hex(end, a.function, 1);
        if (a.instance > 0) {
                *end++ = '.';
                end = format_unsigned(end, a.instance);
        }
        *end = '\0';
        return buf;
}

bool pci_address_same_slot(PciAddress a, PciAddress b) {
        return a.domain == b.domain && a.bus == b.bus && a.slot == b.slot;
}

int pci_address_append(PciAddress **array, size_t *n, PciAddress a) {
        if (ARRAY_RESERVE(*array, *n) < 0)
                return -ENOMEM;
        (*array)[(*n)++] = a;
        return 0;
}

static int compare(const void *a, const void *b) {
        return pci_address_compare(*(const PciAddress *) a, *(const PciAddress *) b);
}

void pci_addresses_sort(PciAddress *array, size_t *n) {
        size_t kept = 0;

        if (*n == 0)
                return;
        qsort(array, *n, sizeof(*array), compare);
        for (size_t i = 0; i < *n; i++)
                if (i == 0 || !pci_address_equal(array[i], array[kept - 1]))
                        array[kept++] = array[i];
        *n = kept;
}

bool pci_addresses_have(const PciAddress *array, size_t n, PciAddress a) {
        return n > 0 && bsearch(&a, array, n, sizeof(*array), compare);
}
