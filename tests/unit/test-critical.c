/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "unit.h"

#include "host/critical.h"
#include "sentences.h"
#include "treefixture.h"
#include "util/strings.h"

#define SATA    "pci0000:00/0000:00:1f.2"
#define NVME    "pci0000:00/0000:00:02.0/0000:02:00.0"
#define NIC0    "pci0000:00/0000:00:01.0/0000:01:00.0"
#define NIC1    "pci0000:00/0000:00:01.0/0000:01:00.1"
#define VF      "pci0000:00/0000:00:01.0/0000:01:10.0"
#define SDA     "sys/devices/" SATA "/ata1/host0/target0:0:0/0:0:0:0/block/sda"
#define NVME0N1 "sys/devices/" NVME "/nvme/nvme0/nvme0n1"
#define ROUTES  "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"

static int setup(void **state) {
        Fixture *f = fixture_new(state);

        tree_device(f->root, SATA, "0x8086", "0xa352", "0x010601");
        tree_device(f->root, NVME, "0x144d", "0xa80a", "0x010802");
        tree_device(f->root, NIC0, "0x8086", "0x10c9", "0x020000");
        tree_device(f->root, NIC1, "0x8086", "0x10c9", "0x020000");
        tree_device(f->root, VF, "0x8086", "0x10ca", "0x020000");
        tree_attribute_link(f->root, "0000:01:10.0", "physfn", "../0000:01:00.0");
        tree_file(f->root, SDA "/sda1/partition", "1");
        tree_file(f->root, SDA "/sda2/partition", "2");
        tree_link(f->root, "sys/dev/block/8:1", "../../../" SDA "/sda1");
        tree_link(f->root, "sys/class/block/sda1", "../../../" SDA "/sda1");
        tree_link(f->root, "sys/class/block/sda2", "../../../" SDA "/sda2");
        tree_dir(f->root, NVME0N1);
        tree_link(f->root, "sys/class/block/nvme0n1", "../../../" NVME0N1);
        tree_file(f->root, "proc/1/mountinfo", "23 22 0:21 / /sys rw,relatime shared:2 - sysfs sysfs rw");
        return 0;
}

/* Returns why the device is critical, after a new scan. */
static const char *critical(Fixture *f, const char *address) {
        const PciDevice *dev;

        scan(f);
        assert_int_equal(critical_mark(f->fs, NULL, f->inv), 0);
        dev = find(f, address);
        assert_non_null(dev);
        return dev->critical;
}

static size_t count(const Fixture *f) {
        size_t n = 0;

        for (size_t i = 0; i < f->inv->n_devices; i++)
                n += !!f->inv->devices[i].critical;
        return n;
}

TEST_WITH(test_nothing, setup, teardown) {
        Fixture *f = *state;

        assert_null(critical(f, "0000:00:1f.2"));
        assert_int_equal(count(f), 0);
}

TEST_WITH(test_mount, setup, teardown) {
        Fixture *f = *state;

        tree_file(f->root, "proc/1/mountinfo",
                  "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
                  "24 22 8:1 /var /mnt/with\\040space rw - ext4 /dev/sda1 rw\n"
                  "junk\n"
                  "25 22 9:9 / /gone rw - ext4 /dev/gone rw\n"
                  "26 22 ../../x / /evil rw - ext4 /dev/x rw");
        assert_string_equal(critical(f, "0000:00:1f.2"), "0000:00:1f.2 <- sda1 <- / (mounted)");
        assert_int_equal(count(f), 1);
        /* A use that has ended is dropped. */
        tree_file(f->root, "proc/1/mountinfo", "23 22 0:21 / /sys rw,relatime shared:2 - sysfs sysfs rw");
        assert_int_equal(critical_mark(f->fs, NULL, f->inv), 0);
        assert_int_equal(count(f), 0);
}

TEST_WITH(test_mount_point_with_space, setup, teardown) {
        Fixture *f = *state;

        tree_file(f->root, "proc/1/mountinfo", "24 22 8:1 / /mnt/with\\040space rw - ext4 /dev/sda1 rw");
        assert_string_equal(critical(f, "0000:00:1f.2"), "0000:00:1f.2 <- sda1 <- /mnt/with space (mounted)");
}

TEST_WITH(test_btrfs_by_source, setup, teardown) {
        Fixture *f = *state;

        tree_file(f->root, "proc/1/mountinfo", "22 1 0:25 /@ / rw shared:1 master:2 - btrfs /dev/sda2 rw,subvol=/@");
        assert_string_equal(critical(f, "0000:00:1f.2"), "0000:00:1f.2 <- sda2 <- / (mounted)");
}

/* LVM on a RAID of a partition and a disk. */
TEST_WITH(test_stack, setup, teardown) {
        Fixture *f = *state;

        tree_link(f->root, "sys/dev/block/253:0", "../../devices/virtual/block/dm-0");
        tree_link(f->root, "sys/devices/virtual/block/dm-0/slaves/md0p1", "../../md0/md0p1");
        tree_file(f->root, "sys/devices/virtual/block/md0/md0p1/partition", "1");
        tree_link(f->root, "sys/devices/virtual/block/md0/slaves/sda1", "../../../../../../" SDA "/sda1");
        tree_link(f->root, "sys/devices/virtual/block/md0/slaves/nvme0n1", "../../../../../../" NVME0N1);
        tree_file(f->root, "proc/1/mountinfo", "22 1 253:0 / /data rw - xfs /dev/mapper/vg-data rw");
        assert_string_equal(critical(f, "0000:00:1f.2"), "0000:00:1f.2 <- sda1 <- md0p1 <- dm-0 <- /data (mounted)");
        assert_string_equal(critical(f, "0000:02:00.0"), "0000:02:00.0 <- nvme0n1 <- md0p1 <- dm-0 <- /data (mounted)");
}

/* A recorded tree may have a loop. The walk must end soon. */
TEST_WITH(test_stack_that_loops, setup, teardown) {
        Fixture *f = *state;

        tree_link(f->root, "sys/dev/block/253:0", "../../devices/virtual/block/dm-0");
        for (unsigned i = 0; i < 8; i++)
                for (unsigned j = 0; j < 8; j++) {
                        char path[80], target[40];

                        (void) snprintf(path, sizeof(path), "sys/devices/virtual/block/dm-%u/slaves/dm-%u", i, j);
                        (void) snprintf(target, sizeof(target), "../../dm-%u", j);
                        tree_link(f->root, path, target);
                }
        tree_file(f->root, "proc/1/mountinfo", "22 1 253:0 / / rw - xfs /dev/mapper/vg-data rw");
        assert_null(critical(f, "0000:00:1f.2"));
        assert_non_null(strstr(f->inv->critical_error, "/ (mounted)"));
        record("a stack too deep", f->inv->critical_error);
}

/* Below the last level that is followed, any disk may be. */
TEST_WITH(test_stack_that_is_too_deep, setup, teardown) {
        Fixture *f = *state;

        tree_link(f->root, "sys/dev/block/253:0", "../../devices/virtual/block/dm-0");
        for (unsigned i = 0; i < 17; i++) {
                char path[80], target[40];

                (void) snprintf(path, sizeof(path), "sys/devices/virtual/block/dm-%u/slaves/lower", i);
                (void) snprintf(target, sizeof(target), "../../dm-%u", i + 1);
                tree_link(f->root, path, target);
        }
        tree_link(f->root, "sys/devices/virtual/block/dm-17/slaves/sda1", "../../../../../../" SDA "/sda1");
        tree_file(f->root, "proc/1/mountinfo", "22 1 253:0 / / rw - xfs /dev/mapper/vg-data rw");
        assert_null(critical(f, "0000:00:1f.2"));
        assert_non_null(strstr(f->inv->critical_error, "/ (mounted)"));
        record("a stack too deep", f->inv->critical_error);
}

/* An unreadable file is not a missing one. */
TEST_WITH(test_link_that_leads_nowhere, setup, teardown) {
        Fixture *f = *state;

        tree_file(f->root, "proc/1/mountinfo", "22 1 8:3 / / rw - xfs /dev/sda3 rw");
        assert_null(critical(f, "0000:00:1f.2"));
        assert_null(f->inv->critical_error);
        tree_link(f->root, "sys/dev/block/8:3", "8:3");
        assert_null(critical(f, "0000:00:1f.2"));
        assert_non_null(strstr(f->inv->critical_error, "sys/dev/block/8:3 "));
        tree_unlink(f->root, "sys/dev/block/8:3");
        assert_null(critical(f, "0000:00:1f.2"));
        assert_null(f->inv->critical_error);
}

/* A link to itself stands for any error of reading a directory. */
TEST_WITH(test_list_that_cannot_be_read, setup, teardown) {
        static const char *const lists[] = { "sys/devices/virtual/block/dm-0/slaves", "sys/fs/btrfs",
                                             "sys/class/block" };
        Fixture *f = *state;

        tree_link(f->root, "sys/dev/block/253:0", "../../devices/virtual/block/dm-0");
        tree_link(f->root, "sys/devices/virtual/block/dm-0/slaves/sda1", "../../../../../../" SDA "/sda1");
        tree_file(f->root, "proc/1/mountinfo", "22 1 253:0 / / rw - xfs /dev/mapper/vg-data rw");
        assert_non_null(critical(f, "0000:00:1f.2"));
        assert_null(f->inv->critical_error);
        for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
                _cleanup_free_ char *full = tree_path(f->root, lists[i]), *away = tree_path(f->root, "away");
                bool there = rename(full, away) == 0;

                tree_link(f->root, lists[i], strrchr(lists[i], '/') + 1);
                (void) critical(f, "0000:00:1f.2");
                assert_non_null(f->inv->critical_error);
                assert_non_null(strstr(f->inv->critical_error, lists[i]));
                tree_unlink(f->root, lists[i]);
                if (there)
                        assert_int_equal(rename(away, full), 0);
        }
}

TEST_WITH(test_nvme_multipath, setup, teardown) {
        Fixture *f = *state;

        tree_dir(f->root, "sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1/nvme0n1p1");
        tree_link(f->root, "sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0", "../../../" NVME "/nvme/nvme0");
        tree_link(f->root, "sys/dev/block/259:1",
                  "../../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1/nvme0n1p1");
        tree_file(f->root, "proc/1/mountinfo", "22 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw");
        assert_string_equal(critical(f, "0000:02:00.0"), "0000:02:00.0 <- nvme0 <- nvme0n1p1 <- / (mounted)");
}

TEST_WITH(test_swap, setup, teardown) {
        Fixture *f = *state;

        tree_file(f->root, "proc/swaps",
                  "Filename\t\t\t\tType\t\tSize\n/dev/sda2                               partition\t2097148\n/swapfile "
                  "file 1");
        assert_string_equal(critical(f, "0000:00:1f.2"), "0000:00:1f.2 <- sda2 <- swap");
}

static void add_interfaces(const Fixture *f) {
        tree_dir(f->root, "sys/devices/" NIC0 "/net/eth0");
        tree_dir(f->root, "sys/devices/" NIC1 "/net/eth1");
        tree_dir(f->root, "sys/devices/" VF "/net/eth2");
        tree_link(f->root, "sys/class/net/eth0", "../../devices/" NIC0 "/net/eth0");
        tree_link(f->root, "sys/class/net/eth2", "../../devices/" VF "/net/eth2");
        tree_link(f->root, "sys/devices/virtual/net/bond0/lower_eth0", "../../../" NIC0 "/net/eth0");
        tree_link(f->root, "sys/devices/virtual/net/bond0/lower_eth1", "../../../" NIC1 "/net/eth1");
        tree_link(f->root, "sys/devices/virtual/net/br0/lower_bond0", "../bond0");
        tree_link(f->root, "sys/class/net/br0", "../../devices/virtual/net/br0");
}

TEST_WITH(test_default_route, setup, teardown) {
        Fixture *f = *state;

        add_interfaces(f);
        tree_file(f->root, "proc/net/route", ROUTES "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0");
        assert_null(critical(f, "0000:01:00.0"));
        tree_file(f->root, "proc/net/route", ROUTES "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0");
        assert_string_equal(critical(f, "0000:01:00.0"), "0000:01:00.0 <- eth0 <- default route");
        assert_int_equal(count(f), 1);
}

TEST_WITH(test_default_route_over_bridge_and_bond, setup, teardown) {
        Fixture *f = *state;

        add_interfaces(f);
        tree_file(f->root, "proc/net/route", ROUTES "br0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0");
        assert_string_equal(critical(f, "0000:01:00.0"), "0000:01:00.0 <- eth0 <- bond0 <- br0 <- default route");
        assert_string_equal(critical(f, "0000:01:00.1"), "0000:01:00.1 <- eth1 <- bond0 <- br0 <- default route");
        assert_int_equal(count(f), 2);
}

TEST_WITH(test_default_route_over_vf_marks_its_pf, setup, teardown) {
        Fixture *f = *state;

        add_interfaces(f);
        tree_file(f->root, "proc/net/route", ROUTES "eth2\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0");
        assert_string_equal(critical(f, "0000:01:10.0"), "0000:01:10.0 <- eth2 <- default route");
        assert_string_equal(critical(f, "0000:01:00.0"), "0000:01:00.0 <- 0000:01:10.0 <- eth2 <- default route");
        assert_int_equal(count(f), 2);
}

TEST_WITH(test_default_route_of_ipv6, setup, teardown) {
        Fixture *f = *state;

        add_interfaces(f);
        tree_file(f->root, "proc/net/ipv6_route",
                  "20010db8000000000000000000000000 40 00000000000000000000000000000000 00 "
                  "00000000000000000000000000000000 00000100 00000001 "
                  "00000000 00000001     eth2\n"
                  "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
                  "fe800000000000000000000000000001 00000400 00000001 "
                  "00000000 00000003     eth0\n"
                  "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
                  "00000000000000000000000000000000 ffffffff 00000001 "
                  "00000000 00200200       lo");
        assert_string_equal(critical(f, "0000:01:00.0"), "0000:01:00.0 <- eth0 <- default route");
        assert_int_equal(count(f), 1);
}

TEST_WITH(test_unreadable_mounts, setup, teardown) {
        Fixture *f = *state;

        tree_unlink(f->root, "proc/1/mountinfo");
        assert_null(critical(f, "0000:00:1f.2"));
        assert_non_null(strstr(f->inv->critical_error, "proc/1/mountinfo"));
        /* The first reason stays. A link to itself stands for any error of reading a file. */
        tree_link(f->root, "proc/net/route", "route");
        assert_null(critical(f, "0000:00:1f.2"));
        assert_non_null(strstr(f->inv->critical_error, "proc/1/mountinfo"));
}

TEST(test_sentences) {
        assert_sentences("critical.txt");
}
