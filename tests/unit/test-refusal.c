/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "model/refusal.h"

static void test_verdict_names(void **state _unused_) {
        for (int v = 0; v < _VERDICT_MAX; v++) {
                assert_non_null(verdict_to_string((Verdict) v));
                for (int w = 0; w < v; w++)
                        assert_string_not_equal(verdict_to_string((Verdict) v), verdict_to_string((Verdict) w));
        }
        assert_null(verdict_to_string(_VERDICT_MAX));
        assert_null(verdict_to_string(_VERDICT_INVALID));
        assert_string_equal(verdict_to_string(VERDICT_INSUFFICIENT_DEVICES), "insufficient-devices");
}

static void test_refuse(void **state _unused_) {
        _cleanup_refusal_ Refusal r = { 0 };
        PciAddress a = { 0, 0x3b, 0, 1 };

        assert_int_equal(refuse(&r, VERDICT_BRIDGE, &a, "Leave it.", "Bridge %s.", PCI_ADDRESS_STR(a)), VERDICT_BRIDGE);
        assert_int_equal(r.verdict, VERDICT_BRIDGE);
        assert_true(r.has_device && pci_address_equal(r.device, a));
        assert_string_equal(r.message, "Bridge 0000:3b:00.1.");
        assert_string_equal(r.remedy, "Leave it.");

        /* The second takes the place of the first, whole, and may quote it. */
        assert_int_equal(refuse(&r, VERDICT_LIMIT, NULL, NULL, "Too many: %s", r.message), VERDICT_LIMIT);
        assert_false(r.has_device);
        assert_string_equal(r.message, "Too many: Bridge 0000:3b:00.1.");
        assert_null(r.remedy);
}

static void test_nobody_wants_to_know(void **state _unused_) {
        assert_int_equal(refuse(NULL, VERDICT_BUSY, NULL, NULL, "x"), VERDICT_BUSY);
}

static void test_done_twice(void **state _unused_) {
        Refusal r = { 0 };

        (void) refuse(&r, VERDICT_BUSY, NULL, "y", "x");
        refusal_done(&r);
        assert_int_equal(r.verdict, VERDICT_NONE);
        assert_null(r.message);
        refusal_done(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_verdict_names),
                cmocka_unit_test(test_refuse),
                cmocka_unit_test(test_nobody_wants_to_know),
                cmocka_unit_test(test_done_twice),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
