/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Who has a device open, by the links in proc/PID/fd. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/holders.h"
#include "treefixture.h"

#define NOBODY 65534

static const PciAddress gpu = { .bus = 1 };

static int setup(void **state) {
        Fixture *f = fixture_new(state);

        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:00.0", "0x10de", "0x2330", "0x030200");
        tree_dir(f->root, "proc/sys");
        tree_file(f->root, "proc/7/comm", "qemu-system-x86");
        tree_link(f->root, "proc/7/fd/0", "/dev/null");
        return 0;
}

static int find_holder(const Fixture *f, int group, Holder *ret) {
        return holders_find(f->fs, &(HolderQuery){ .address = gpu, .group = group }, 1, ret);
}

static void assert_held(const Fixture *f, int group, int expected) {
        Holder h = { 0 };

        assert_int_equal(find_holder(f, group, &h), expected);
        if (expected == 1) {
                assert_int_equal(h.pid, 7);
                assert_string_equal(h.command, "qemu-system-x86");
        }
}

static void test_group(void **state) {
        Fixture *f = *state;

        assert_held(f, 12, 0);
        assert_held(f, -1, 0);
        tree_link(f->root, "proc/7/fd/3", "/dev/vfio/2");
        assert_held(f, 12, 0);
        tree_link(f->root, "proc/7/fd/3", "/dev/vfio/12");
        assert_held(f, 12, 1);
        assert_held(f, 2, 0);
        tree_link(f->root, "proc/7/fd/3", "/dev/vfio/12 (deleted)");
        assert_held(f, 12, 1);
}

/* A guest with iommufd opens the device, not its group. */
static void test_device_node(void **state) {
        Fixture *f = *state;

        tree_link(f->root, "proc/7/fd/3", "/dev/vfio/devices/vfio4");
        assert_held(f, 12, 0);
        tree_dir(f->root, "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/vfio-dev/vfio4");
        assert_held(f, 12, 1);
        assert_held(f, -1, 1);
        tree_link(f->root, "proc/7/fd/3", "/dev/vfio/devices/vfio40");
        assert_held(f, 12, 0);
}

static void allow(const Fixture *f, const char *path, mode_t mode) {
        _cleanup_free_ char *full = tree_path(f->root, path);

        assert_int_equal(chmod(full, mode), 0);
}

/* What may not be looked at may be anything; root may look at everything, so the test becomes somebody else. */
static void test_forbidden_is_unknown(void **state) {
        Fixture *f = *state;
        bool root = geteuid() == 0;

        assert_int_equal(chmod(f->root, 0755), 0);
        allow(f, "proc", 0755);
        allow(f, "proc/7", 0755);
        tree_link(f->root, "proc/7/fd/3", "/dev/vfio/12");
        for (int listed = 0; listed < 2; listed++) {
                Holder h;
                int r;

                allow(f, "proc/7/fd", listed ? 0444 : 0);
                if (root)
                        assert_int_equal(seteuid(NOBODY), 0);
                r = find_holder(f, 12, &h);
                if (root)
                        assert_int_equal(seteuid(0), 0);
                allow(f, "proc/7/fd", 0755);
                assert_int_equal(r, -EACCES);
        }
}

static void test_ended_process_holds_nothing(void **state) {
        Fixture *f = *state;

        tree_dir(f->root, "proc/9");
        assert_held(f, 12, 0);
        tree_link(f->root, "proc/7/fd/3", "/dev/vfio/12");
        assert_held(f, 12, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
                TEST(test_group),
                TEST(test_device_node),
                TEST(test_forbidden_is_unknown),
                TEST(test_ended_process_holds_nothing),
#undef TEST
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
