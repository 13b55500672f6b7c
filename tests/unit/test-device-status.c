/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The table of findings about devices. */

#include "unit.h"

#include "model/device-status.h"

#define ONE   ((PciAddress) { .bus = 1 })
#define OTHER ((PciAddress) { .bus = 2 })

/* A finding replaces the earlier one of its kind, and leaves the other kinds and the other devices alone. */
TEST(test_set) {
        DeviceStatusTable t = { 0 };

        for (DeviceFinding f = 0; f < _DEVICE_FINDING_MAX; f++) {
                assert_int_equal(device_status_set(&t, ONE, f, NULL), 0);
                assert_int_equal(t.n, f > 0);
                assert_int_equal(device_status_set(&t, OTHER, f, "other"), 0);
                assert_int_equal(device_status_set(&t, ONE, f, "first"), 0);
                assert_int_equal(device_status_set(&t, ONE, f, "second"), 0);
                assert_string_equal(device_status_get(&t, ONE, f), "second");
                assert_int_equal(device_status_set(&t, ONE, f, NULL), 0);
                assert_null(device_status_get(&t, ONE, f));
        }
        assert_int_equal(t.n, 1);
        assert_true(pci_address_equal(t.devices[0].address, OTHER));
        for (DeviceFinding f = 0; f < _DEVICE_FINDING_MAX; f++)
                assert_string_equal(device_status_get(&t, OTHER, f), "other");
        device_status_table_done(&t);
        assert_null(device_status_find(&t, OTHER));
        assert_null(device_status_find(NULL, OTHER));
}

TEST(test_sorted) {
        DeviceStatusTable t = { 0 };

        for (uint8_t i = 0; i < 100; i++)
                assert_int_equal(
                        device_status_set(&t, (PciAddress) { .bus = (uint8_t) (i * 37 % 100) }, DEVICE_STUCK, "."), 0);
        assert_int_equal(t.n, 100);
        for (size_t i = 0; i < t.n; i++)
                assert_int_equal(t.devices[i].address.bus, i);
        device_status_table_done(&t);
}

TEST(test_contested) {
        DeviceStatusTable t = { 0 };

        assert_int_equal(device_status_set(&t, OTHER, DEVICE_STUCK, "stuck"), 0);
        assert_int_equal(device_status_set_contested(&t, ONE, 3, "contested"), 0);
        assert_int_equal(device_status_find(&t, ONE)->n_vfs, 3);
        assert_string_equal(device_status_get(&t, ONE, DEVICE_CONTESTED), "contested");
        assert_int_equal(device_status_set_contested(&t, ONE, 4, "again"), 0);
        assert_int_equal(device_status_find(&t, ONE)->n_vfs, 4);
        device_status_table_done(&t);
}

TEST(test_check) {
        static const Verdict verdicts[_DEVICE_FINDING_MAX] = {
                [DEVICE_FOREIGN] = VERDICT_CONTESTED,     [DEVICE_ASSIGNED] = VERDICT_ALLOCATED,
                [DEVICE_STUCK] = VERDICT_STUCK,           [DEVICE_BUSY] = VERDICT_BUSY,
                [DEVICE_UNHEALTHY] = VERDICT_UNHEALTHY,   [DEVICE_LOST] = VERDICT_UNHEALTHY,
                [DEVICE_UNLINKED] = VERDICT_UNHEALTHY,    [DEVICE_LINKED] = VERDICT_UNHEALTHY,
                [DEVICE_CONTESTED] = VERDICT_VFS_PRESENT,
        };
        DeviceStatusTable t = { 0 };

        for (DeviceFinding f = 0; f < _DEVICE_FINDING_MAX; f++) {
                _cleanup_refusal_ Refusal why = { 0 };

                assert_int_equal(device_status_check(&t, ONE, f, &why), VERDICT_NONE);
                assert_int_equal(device_status_set(&t, ONE, f, "why"), 0);
                assert_int_equal(device_status_check(&t, ONE, f, &why), verdicts[f]);
                assert_string_equal(why.message, "why");
                assert_non_null(why.remedy);
                assert_int_equal(device_status_check(&t, OTHER, f, NULL), VERDICT_NONE);
        }
        assert_int_equal(device_status_check_blocked(&t, ONE, NULL), VERDICT_STUCK);
        assert_int_equal(device_status_set(&t, ONE, DEVICE_STUCK, NULL), 0);
        assert_int_equal(device_status_check_blocked(&t, ONE, NULL), VERDICT_BUSY);
        assert_int_equal(device_status_set(&t, ONE, DEVICE_BUSY, NULL), 0);
        assert_int_equal(device_status_check_blocked(&t, ONE, NULL), VERDICT_NONE);
        for (DeviceFinding f = DEVICE_UNHEALTHY; f <= DEVICE_LINKED; f++) {
                assert_int_equal(device_status_check_unhealthy(&t, ONE, NULL), VERDICT_UNHEALTHY);
                assert_int_equal(device_status_set(&t, ONE, f, NULL), 0);
        }
        assert_int_equal(device_status_check_unhealthy(&t, ONE, NULL), VERDICT_NONE);
        device_status_table_done(&t);
}
