/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Processes that have a device open, by the links in proc/PID/fd. */

#include <errno.h>

#include "unit.h"

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
        return holders_find(f->fs, &(HolderQuery) { .address = gpu, .group = group }, 1, ret);
}

static void assert_held(const Fixture *f, int group, int expected) {
        Holder h = { 0 };

        assert_int_equal(find_holder(f, group, &h), expected);
        if (expected == 1) {
                assert_int_equal(h.pid, 7);
                assert_string_equal(h.command, "qemu-system-x86");
        }
}

TEST_WITH(test_group, setup, teardown) {
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
TEST_WITH(test_device_node, setup, teardown) {
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

/* Unreadable links may lead to any device. Root can read all links, so the test becomes another user. */
TEST_WITH(test_forbidden_is_unknown, setup, teardown) {
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

TEST_WITH(test_ended_process_holds_nothing, setup, teardown) {
        Fixture *f = *state;

        tree_dir(f->root, "proc/9");
        assert_held(f, 12, 0);
        tree_link(f->root, "proc/7/fd/3", "/dev/vfio/12");
        assert_held(f, 12, 1);
}

#define PF "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
#define VF "sys/devices/pci0000:00/0000:00:01.0/0000:01:10.0"

static void assert_part(const Fixture *f, HolderQuery q, const char *node, int expected, const char *subject) {
        Holder h = { 0 };

        tree_link(f->root, "proc/7/fd/3", node);
        assert_int_equal(holders_find(f->fs, &q, 1, &h), expected);
        assert_string_equal(h.subject, subject);
        assert_int_equal(h.has_vf, expected == 1 && strstr(subject, "a VF of") != NULL);
        if (h.has_vf)
                assert_int_equal(h.vf.slot, 0x10);
}

/* With any driver of the VF and of the PF. */
TEST_WITH(test_vf, setup, teardown) {
        static const char subject[] = "0000:01:10.0, a VF of 0000:01:00.0,";
        static const char *const nodes[] = { "/dev/vfio/31", "/dev/vfio/devices/vfio4", "/dev/infiniband/uverbs9" };
        static const char *const drivers[] = { NULL, "mlx5_core" };
        Fixture *f = *state;

        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:10.0", "0x15b3", "0x101e", "0x020000");
        tree_link(f->root, PF "/virtfn0", "../0000:01:10.0");
        tree_link(f->root, VF "/iommu_group", "../../../../kernel/iommu_groups/31");
        tree_dir(f->root, VF "/vfio-dev/vfio4");
        tree_file(f->root, VF "/infiniband_verbs/uverbs9/dev", "231:9");
        for (size_t i = 0; i < ELEMENTSOF(drivers); i++) {
                HolderQuery q = { .address = gpu, .group = 12, .driver = drivers[i] };

                for (size_t j = 0; j < ELEMENTSOF(nodes); j++)
                        assert_part(f, q, nodes[j], 1, subject);
                assert_part(f, q, "/dev/vfio/3", 1, "0000:01:00.0");
                q.only_parts = true;
                assert_part(f, q, "/dev/vfio/31", 1, subject);
                assert_part(f, q, "/dev/vfio/12", 0, "");
        }
}

/* The VFs of a PF prevent its unbind, and the remedy has their number. */
TEST_WITH(test_remedy_of_vfs, setup, teardown) {
        static const char *const remedies[] = { "Remove the VF first: ", "Remove the VFs first: " };
        Fixture *f = *state;

        for (unsigned n = 1; n <= ELEMENTSOF(remedies); n++) {
                HolderQuery q = { .address = gpu, .group = 12, .driver = "mlx5_core" };
                char link[128], device[128];
                Holder h;

                (void) snprintf(device, sizeof(device), "pci0000:00/0000:00:01.0/0000:01:10.%u", n - 1);
                tree_device(f->root, device, "0x15b3", "0x101e", "0x020000");
                (void) snprintf(link, sizeof(link), PF "/virtfn%u", n - 1);
                (void) snprintf(device, sizeof(device), "../0000:01:10.%u", n - 1);
                tree_link(f->root, link, device);
                assert_int_equal(holders_find(f->fs, &q, 1, &h), 1);
                assert_int_equal(strncmp(h.remedy, remedies[n - 1], strlen(remedies[n - 1])), 0);
        }
}

TEST_WITH(test_mediated, setup, teardown) {
        static const char subject[] = "0f, a mediated device of 0000:01:00.0,";
        HolderQuery q = { .address = gpu, .group = 12, .driver = "i915" };
        Fixture *f = *state;

        tree_link(f->root, PF "/0f/iommu_group", "../../../../../kernel/iommu_groups/107");
        tree_file(f->root, PF "/0f/vfio-dev/vfio8/dev", "511:8");
        tree_file(f->root, PF "/drm/card1/dev", "226:1");
        assert_part(f, q, "/dev/vfio/107", 1, subject);
        assert_part(f, q, "/dev/vfio/devices/vfio8", 1, subject);
        assert_part(f, q, "/dev/dri/card1", 1, "0000:01:00.0");
        assert_part(f, q, "/dev/vfio/10", 1, "0000:01:00.0");
        q.only_parts = true;
        assert_part(f, q, "/dev/vfio/107", 1, subject);
        assert_part(f, q, "/dev/dri/card1", 0, "");
}

/* Use of another mediated device of the parent, or of a VF, is not use of the named one. */
TEST_WITH(test_named_mediated, setup, teardown) {
        static const char subject[] = "0f, a mediated device of 0000:01:00.0,";
        HolderQuery q = { .address = gpu, .group = 12, .only_parts = true, .mdev = "0f" };
        Fixture *f = *state;

        tree_link(f->root, PF "/0f/iommu_group", "../../../../../kernel/iommu_groups/107");
        tree_file(f->root, PF "/0f/vfio-dev/vfio8/dev", "511:8");
        tree_link(f->root, PF "/10/iommu_group", "../../../../../kernel/iommu_groups/108");
        tree_file(f->root, PF "/10/vfio-dev/vfio9/dev", "511:9");
        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:10.0", "0x15b3", "0x101e", "0x020000");
        tree_link(f->root, PF "/virtfn0", "../0000:01:10.0");
        tree_link(f->root, VF "/iommu_group", "../../../../kernel/iommu_groups/31");
        assert_part(f, q, "/dev/vfio/108", 0, "");
        assert_part(f, q, "/dev/vfio/devices/vfio9", 0, "");
        assert_part(f, q, "/dev/vfio/31", 0, "");
        assert_part(f, q, "/dev/vfio/107", 1, subject);
        assert_part(f, q, "/dev/vfio/devices/vfio8", 1, subject);
        q.mdev = NULL;
        assert_part(f, q, "/dev/vfio/108", 1, "10, a mediated device of 0000:01:00.0,");
        assert_part(f, q, "/dev/vfio/31", 1, "0000:01:10.0, a VF of 0000:01:00.0,");
}
