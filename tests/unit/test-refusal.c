/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "unit.h"

#include "model/refusal.h"

TEST(test_verdict_names) {
        for (int v = 0; v < _VERDICT_MAX; v++) {
                assert_non_null(verdict_to_string((Verdict) v));
                for (int w = 0; w < v; w++)
                        assert_string_not_equal(verdict_to_string((Verdict) v), verdict_to_string((Verdict) w));
        }
        assert_null(verdict_to_string(_VERDICT_MAX));
        assert_null(verdict_to_string(_VERDICT_INVALID));
        assert_string_equal(verdict_to_string(VERDICT_INSUFFICIENT_DEVICES), "insufficient-devices");
}

TEST(test_refuse) {
        _cleanup_refusal_ Refusal r = { 0 };
        PciAddress a = { 0, 0x3b, 0, 1 };

        assert_int_equal(refuse(&r, VERDICT_BRIDGE, &a, "Leave it.", "Bridge %s.", PCI_ADDRESS_STR(a)), VERDICT_BRIDGE);
        assert_int_equal(r.verdict, VERDICT_BRIDGE);
        assert_true(r.has_device && pci_address_equal(r.device, a));
        assert_string_equal(r.message, "Bridge 0000:3b:00.1.");
        assert_string_equal(r.remedy, "Leave it.");

        /* The second refusal replaces the first one completely, and may quote it. */
        assert_int_equal(refuse(&r, VERDICT_LIMIT, NULL, NULL, "Too many: %s", r.message), VERDICT_LIMIT);
        assert_false(r.has_device);
        assert_string_equal(r.message, "Too many: Bridge 0000:3b:00.1.");
        assert_null(r.remedy);
}

TEST(test_nobody_wants_to_know) {
        assert_int_equal(refuse(NULL, VERDICT_BUSY, NULL, NULL, "x"), VERDICT_BUSY);
}

TEST(test_done_twice) {
        Refusal r = { 0 };

        (void) refuse(&r, VERDICT_BUSY, NULL, "y", "x");
        refusal_done(&r);
        assert_int_equal(r.verdict, VERDICT_NONE);
        assert_null(r.message);
        refusal_done(&r);
}
