/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>

#include "unit.h"

#include "guest/guest-list.h"
#include "util/strings.h"

#define ONE "4b20d080-1b54-4048-85b3-a6a62d165c01"
#define TWO "4b20d080-1b54-4048-85b3-a6a62d165c02"

static const char gpu[] = "0000:82:00.0", vf[] = "0000:83:00.1";

/* record: kind and lines. */
static int apply(GuestList *l, const char *record) {
        static const char *const kinds[] = { "list", "domain", "ended", "features", "complete", "failed" };
        _cleanup_free_ char *copy = strdup(record);
        char *text = copy;
        const char *name = strsep(&text, "\n");
        int kind = 0;

        while (kind < (int) ELEMENTSOF(kinds) && !streq(name, kinds[kind]))
                kind++;
        return guest_list_apply(l, kind, text ?: copy + strlen(record));
}

TEST(test_domain) {
        _cleanup_(guest_list_done) GuestList l = { 0 };

        assert_int_equal(apply(&l, "domain\n" ONE "\nstarting\na b\n0000:82:00.0\n0000:83:00.1\n" TWO),
                         GUEST_RECORD_DOMAIN);
        assert_int_equal(l.n, 1);
        assert_string_equal(l.guests[0].domain, "a b");
        assert_true(l.guests[0].starting);
        assert_ptr_equal(guest_list_find_device(&l, vf), &l.guests[0]);
        assert_ptr_equal(guest_list_find_device(&l, TWO), &l.guests[0]);
        assert_ptr_equal(guest_list_find(&l, ONE), &l.guests[0]);
        assert_null(guest_list_find(&l, TWO));

        /* A device was unplugged. */
        assert_int_equal(apply(&l, "domain\n" ONE "\nrunning\na b\n0000:82:00.0"), GUEST_RECORD_DOMAIN);
        assert_int_equal(l.n, 1);
        assert_false(l.guests[0].starting);
        assert_null(guest_list_find_device(&l, vf));
        assert_non_null(guest_list_find_device(&l, gpu));

        assert_int_equal(apply(&l, "ended\n" TWO), GUEST_RECORD_ENDED);
        assert_int_equal(l.n, 1);
        assert_int_equal(apply(&l, "ended\n" ONE), GUEST_RECORD_ENDED);
        assert_int_equal(l.n, 0);
}

TEST(test_place) {
        _cleanup_(guest_list_done) GuestList l = { 0 };
        GuestPlace place;

        assert_int_equal(apply(&l, "domain\n" ONE "\nrunning\na\n0000:82:00.0 0000:02:00.0 pci0000:fb/0000:fb:00.0/"
                                   "0000:fc:00.0\n0000:83:00.1 0000:09:01.2\n" TWO),
                         GUEST_RECORD_DOMAIN);
        assert_non_null(guest_list_find_device(&l, gpu));
        place = guest_find_place(&l.guests[0], gpu);
        assert_true(place.known && place.address.bus == 2);
        assert_int_equal(guest_path_seen(place.path).bus, 0xfc);
        place = guest_find_place(&l.guests[0], vf);
        assert_true(place.known && place.address.bus == 9 && place.address.function == 2);
        assert_int_equal(guest_path_seen(place.path).bus, 0); /* unknown */
        assert_false(guest_find_place(&l.guests[0], TWO).known);
        assert_false(guest_find_place(&l.guests[0], "0000:84:00.0").known);
}

/* A domain that is missing from a complete list has ended, for example while libvirt was stopped. */
TEST(test_list) {
        _cleanup_(guest_list_done) GuestList l = { 0 };

        (void) apply(&l, "domain\n" ONE "\nrunning\none");
        (void) apply(&l, "domain\n" TWO "\nrunning\ntwo");
        assert_int_equal(apply(&l, "list"), GUEST_RECORD_LIST);
        assert_int_equal(l.n, 2);
        (void) apply(&l, "domain\n" TWO "\nrunning\ntwo");
        assert_int_equal(apply(&l, "complete"), GUEST_RECORD_COMPLETE);
        assert_int_equal(l.n, 1);
        assert_string_equal(l.guests[0].domain, "two");
}

TEST(test_features) {
        _cleanup_(guest_list_done) GuestList l = { 0 };

        assert_false(l.features.known);
        assert_int_equal(apply(&l, "features\nlibvirt 11003000\nmaxphysaddr\nqemu 10000002\niommufd\nfwcfg"),
                         GUEST_RECORD_FEATURES);
        assert_int_equal(l.features.libvirt, 11003000);
        assert_int_equal(l.features.qemu, 10000002);
        assert_true(l.features.known && l.features.maxphysaddr && l.features.iommufd && l.features.fwcfg);
        assert_false(l.features.driver_model || l.features.acpi_nodeset);
        assert_int_equal(apply(&l, "features\nlibvirt 12008000\nsev\nsev-snp\nsev-snp-firmware\ntdx-firmware"),
                         GUEST_RECORD_FEATURES);
        assert_true(l.features.security[CONFIDENTIAL_SEV] && l.features.security[CONFIDENTIAL_SNP]);
        assert_true(l.features.firmware[CONFIDENTIAL_SNP] && l.features.firmware[CONFIDENTIAL_TDX]);
        assert_false(l.features.security[CONFIDENTIAL_TDX] || l.features.firmware[CONFIDENTIAL_SEV]);
        assert_int_equal(apply(&l, "features\nsev-snpx"), -EBADMSG);
        assert_int_equal(apply(&l, "features"), GUEST_RECORD_FEATURES);
        assert_true(l.features.known && !l.features.maxphysaddr);
}

TEST(test_failed) {
        _cleanup_(guest_list_done) GuestList l = { 0 };

        assert_int_equal(apply(&l, "failed\nno\x1b\nsocket"), GUEST_RECORD_FAILED);
        assert_true(text_is_clean(l.reason));
        assert_int_equal(apply(&l, "failed"), -EBADMSG);
}

TEST(test_malformed) {
        static const char *const records[] = {
                "",
                "domain",
                "domain\n" ONE,
                "domain\n" ONE "\nrunning",
                "domain\n" ONE "\nrunning\n",
                "domain\n" ONE "\npaused\na",
                "domain\n" ONE "x\nrunning\na",
                "domain\nx\nrunning\na",
                "domain\n" ONE "\nrunning\na\n82:00.0",
                "domain\n" ONE "\nrunning\na\n0000:82:00.0 ",
                "domain\n" ONE "\nrunning\na\n0000:82:00.0 02:00.0",
                "domain\n" ONE "\nrunning\na\n0000:82:00.0 0000:02:00.0.1",
                "domain\n" ONE "\nrunning\na\n0000:82:00.0 0000:02:00.0 ",
                "domain\n" ONE "\nrunning\na\n0000:82:00.0 0000:02:00.0 pci0000:fb",
                "domain\n" ONE "\nrunning\na\n0000:82:00.0 0000:02:00.0 pci0000:fb/",
                "domain\n" ONE "\nrunning\na\n0000:82:00.0 0000:02:00.0 pci0000:fb/../../etc",
                "domain\n" ONE "\nrunning\na\n0000:82:00.0 0000:02:00.0 0000:fb:00.0/0000:fc:00.0",
                "domain\n" ONE "\nrunning\na\n0000:82:00.0 0000:02:00.0 pci0000:fb/0000:fb:00.0/0000:01:00.0/"
                "0000:02:00.0/0000:03:00.0/0000:04:00.0/0000:05:00.0/0000:06:00.0/0000:07:00.0/0000:08:00.0/"
                "0000:09:00.0",
                "domain\n" ONE "\nrunning\na\n",
                "ended",
                "ended\nx",
                "features\nother",
                "features\nqemu -1",
                "features\nqemu10000002",
                "lists",
        };
        _cleanup_(guest_list_done) GuestList l = { 0 };

        (void) apply(&l, "domain\n" ONE "\nrunning\none\n0000:82:00.0");
        for (size_t i = 0; i < ELEMENTSOF(records); i++)
                assert_int_equal(apply(&l, records[i]), -EBADMSG);
        assert_int_equal(guest_list_apply(&l, -1, (char[]) { "" }), -EBADMSG);
        assert_int_equal(l.n, 1);
        assert_non_null(guest_list_find_device(&l, gpu));
}
