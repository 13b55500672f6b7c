/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Addresses: exactly the kernel's format is accepted, also with an instance, and printed again. */

#include "fuzz.h"

#include <errno.h>

#include "model/pciaddr.h"

/* Decides the same by other means. */
static bool is_canonical(const char *s) {
        unsigned domain, bus, slot, function, instance = 1;
        char text[64];
        int n = strlen(s) > 32 ? 0 : sscanf(s, "%x:%x:%x.%1x.%u", &domain, &bus, &slot, &function, &instance);

        if (n < 4)
                return false;
        (void) snprintf(text, sizeof(text), n == 5 ? "%04x:%02x:%02x.%x.%u" : "%04x:%02x:%02x.%x", domain, bus, slot,
                        function, instance);
        return streq(s, text) && bus < 256 && slot < 32 && function < 8 && instance > 0 && instance <= PCI_INSTANCE_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *text = fuzz_text(data, size);
        PciAddress a = { .domain = 0xa5a5a5a5 }, b;
        int r = pci_address_parse(text, &a);

        assert_int_equal(r == 0, is_canonical(text));
        if (r < 0) {
                assert_int_equal(r, -EINVAL);
                assert_int_equal(a.domain, 0xa5a5a5a5);
                return 0;
        }
        assert_string_equal(PCI_ADDRESS_STR(a), text);
        assert_int_equal(pci_address_parse(PCI_ADDRESS_STR(a), &b), 0);
        assert_true(pci_address_equal(a, b));
        b.function ^= 1;
        assert_true(pci_address_same_slot(a, b));
        assert_int_equal(pci_address_compare(a, b), -pci_address_compare(b, a));
        assert_int_equal(pci_address_compare(a, b) < 0, a.function < b.function);
        return 0;
}
