/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <stdio.h>

#include "unit.h"

#include "criticalfixture.h"

#define SATA    "pci0000:00/0000:00:1f.2"
#define HBA     "pci0000:00/0000:00:03.0/0000:03:00.0"
#define VMD     "pci0000:00/0000:00:0e.0"
#define BEHIND  VMD "/pci10000:e0/10000:e0:01.0/10000:e1:00.0"
#define DISK    "sys/devices/" SATA "/ata1/host0/target0:0:0/0:0:0:0/block/"
#define LUN     "sys/devices/" HBA "/host7/rport-7:0-0/target7:0:0/7:0:0:1/block/"
#define VIRTUAL "sys/devices/virtual/block/"
#define SDA     DISK "sda"
#define SDB     LUN "sdb"

/* Adds a block device: its directory and its link in the class. */
static void add_block(const Fixture *f, const char *path) {
        char link[64], target[160];

        (void) snprintf(link, sizeof(link), "sys/class/block/%s", strrchr(path, '/') + 1);
        (void) snprintf(target, sizeof(target), "../../../%s", path);
        tree_dir(f->root, path);
        tree_link(f->root, link, target);
}

/* upper: relative to sys/devices/virtual/block. */
static void add_slave(const Fixture *f, const char *upper, const char *lower) {
        char link[160], target[200];

        (void) snprintf(link, sizeof(link), VIRTUAL "%s/slaves/%s", upper, strrchr(lower, '/') + 1);
        (void) snprintf(target, sizeof(target), "../../../../../../%s", lower);
        tree_link(f->root, link, target);
}

static int setup(void **state) {
        Fixture *f = fixture_new(state);

        tree_device(f->root, SATA, "0x8086", "0xa352", "0x010601");
        tree_device(f->root, "pci0000:00/0000:00:03.0", "0x8086", "0x3c08", "0x060400");
        tree_device(f->root, HBA, "0x1077", "0x2261", "0x0c0400");
        add_block(f, SDA);
        add_block(f, SDA "/sda1");
        add_block(f, SDB);
        tree_dir(f->root, SDA "/slaves"); /* every disk has this directory */
        tree_dir(f->root, SDB "/slaves");
        mounts(f, "23 22 0:21 / /sys rw,relatime shared:2 - sysfs sysfs rw");
        return 0;
}

TEST_WITH(test_btrfs_on_two_disks, setup, teardown) {
        Fixture *f = *state;

        tree_link(f->root, "sys/fs/btrfs/8b4b1f0c-1111-4111-8111-000000000001/devices/sda1",
                  "../../../../" SDA "/sda1");
        tree_link(f->root, "sys/fs/btrfs/8b4b1f0c-1111-4111-8111-000000000001/devices/sdb", "../../../../" SDB);
        tree_dir(f->root, "sys/fs/btrfs/features");
        mounts(f, "22 1 0:25 /@ /data rw shared:1 - btrfs /dev/sda1 rw,subvol=/@");
        assert_string_equal(critical(f, "0000:00:1f.2"), "0000:00:1f.2 <- sda1 <- /data (mounted)");
        assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- sdb <- /data (mounted)");
}

TEST_WITH(test_mounted_in_another_namespace, setup, teardown) {
        Fixture *f = *state;

        tree_dir(f->root, "sys/fs/ext4/features");
        assert_null(critical(f, "0000:00:1f.2"));
        tree_dir(f->root, "sys/fs/ext4/sda1");
        assert_string_equal(critical(f, "0000:00:1f.2"), "0000:00:1f.2 <- sda1 <- a file system (mounted)");
        tree_link(f->root, "sys/fs/btrfs/8b4b1f0c-1111-4111-8111-000000000001/devices/sdb", "../../../../" SDB);
        assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- sdb <- a file system (mounted)");
}

TEST_WITH(test_other_file_systems_in_another_namespace, setup, teardown) {
        Fixture *f = *state;
        static const char *const directories[] = { "sys/fs/nilfs2/sdb", "sys/fs/erofs/sdb", "proc/fs/ntfs3/sdb" };

        for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
                assert_null(critical(f, "0000:03:00.0"));
                tree_dir(f->root, directories[i]);
                assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- sdb <- a file system (mounted)");
                tree_unlink(f->root, directories[i]);
        }
}

TEST_WITH(test_journals_of_their_own, setup, teardown) {
        Fixture *f = *state;

        tree_link(f->root, "sys/dev/block/8:1", "../../../" SDA "/sda1");
        mounts(f, "22 1 8:1 / /srv rw - xfs /dev/sda1 rw,attr2,logdev=/dev/sdb,noquota");
        assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- sdb <- /srv (mounted)");
        mounts(f, "22 1 8:1 / /srv rw - ext4 /dev/sda1 rw");
        assert_null(critical(f, "0000:03:00.0"));
        tree_file(f->root, "proc/fs/jbd2/sda1-8/info", "");
        tree_file(f->root, "proc/fs/jbd2/sdb/info", "");
        assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- sdb <- a file system (mounted)");
}

TEST_WITH(test_bcachefs_names_all_its_devices, setup, teardown) {
        Fixture *f = *state;

        mounts(f, "22 1 0:40 / /pool rw - bcachefs /dev/sda1:/dev/sdb rw");
        assert_string_equal(critical(f, "0000:00:1f.2"), "0000:00:1f.2 <- sda1 <- /pool (mounted)");
        assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- sdb <- /pool (mounted)");
}

/* A user can name a disk as the source of a FUSE mount. A container may have a directory with a disk's name. */
TEST_WITH(test_source_of_a_user, setup, teardown) {
        Fixture *f = *state;
        static const char *const lines[] = {
                "22 1 0:40 / /home/eve/mnt rw - fuse /dev/sdb rw,user_id=1000,group_id=1000",
                "22 1 0:40 / /home/eve/mnt rw - fuse.sshfs /dev/sdb rw,user_id=1000",
                "22 1 0:40 / /home/eve/mnt rw - fuse.btrfs /dev/sda1:/dev/sdb rw,user_id=1000",
                "22 1 0:40 / /merged rw - overlay /dev/sdb rw,lowerdir=/dev/sdb,upperdir=/dev/sda1",
        };

        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                mounts(f, lines[i]);
                assert_null(critical(f, "0000:03:00.0"));
                assert_null(critical(f, "0000:00:1f.2"));
                assert_null(f->inv->critical_error);
        }
}

/* More mounts of users than fit into memory at once must not withhold all devices. */
TEST_WITH(test_very_many_mounts, setup, teardown) {
        enum {
                MOUNTS = 1000,
                LINE = 25000
        };
        Fixture *f = *state;
        char path[128];
        FILE *file;

        tree_link(f->root, "sys/dev/block/8:16", "../../../" SDB);
        tree_file(f->root, "proc/1/mountinfo", "");
        (void) snprintf(path, sizeof(path), "%s/proc/1/mountinfo", f->root);
        file = fopen(path, "we");
        assert_non_null(file);
        for (int i = 0; i < MOUNTS; i++)
                (void) fprintf(file, "%d 1 0:40 / /home/eve/%0*d rw - fuse x rw\n", 100 + i, LINE, i);
        (void) fprintf(file, "22 1 8:16 / /srv rw - ext4 /dev/sdb rw"); /* without a newline */
        assert_int_equal(fclose(file), 0);
        assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- sdb <- /srv (mounted)");
        assert_null(f->inv->critical_error);
}

/* The backing device and the cache. */
TEST_WITH(test_bcache, setup, teardown) {
        Fixture *f = *state;

        add_block(f, VIRTUAL "bcache0");
        add_slave(f, "bcache0", SDA);
        add_slave(f, "bcache0", SDB);
        tree_link(f->root, "sys/dev/block/252:0", "../../devices/virtual/block/bcache0");
        mounts(f, "22 1 252:0 / / rw - ext4 /dev/bcache0 rw");
        assert_string_equal(critical(f, "0000:00:1f.2"), "0000:00:1f.2 <- sda <- bcache0 <- / (mounted)");
        assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- sdb <- bcache0 <- / (mounted)");
}

/* LVM on a dm-multipath device, with the admin's names in the chain. */
TEST_WITH(test_lvm_on_multipath, setup, teardown) {
        Fixture *f = *state;

        add_block(f, VIRTUAL "dm-0");
        add_block(f, VIRTUAL "dm-1");
        tree_file(f->root, VIRTUAL "dm-0/dm/name", "mpatha");
        tree_file(f->root, VIRTUAL "dm-1/dm/name", "vg0-root");
        add_slave(f, "dm-0", SDB);
        add_slave(f, "dm-1", VIRTUAL "dm-0");
        tree_link(f->root, "sys/dev/block/253:1", "../../devices/virtual/block/dm-1");
        mounts(f, "22 1 253:1 / / rw - ext4 /dev/mapper/vg0-root rw");
        assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- sdb <- mpatha <- vg0-root <- / (mounted)");
        assert_null(f->inv->critical_error);
}

TEST_WITH(test_name_that_no_terminal_should_see, setup, teardown) {
        Fixture *f = *state;

        add_block(f, VIRTUAL "dm-0");
        tree_file(f->root, VIRTUAL "dm-0/dm/name", "evil\033[2J");
        add_slave(f, "dm-0", SDB);
        tree_link(f->root, "sys/dev/block/253:0", "../../devices/virtual/block/dm-0");
        mounts(f, "22 1 253:0 / / rw - ext4 /dev/mapper/x rw");
        assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- sdb <- dm-0 <- / (mounted)");
}

TEST_WITH(test_assembled_but_not_mounted, setup, teardown) {
        Fixture *f = *state;

        add_block(f, VIRTUAL "md127");
        tree_dir(f->root, VIRTUAL "md127/slaves");
        assert_null(critical(f, "0000:03:00.0"));
        add_slave(f, "md127", SDB);
        assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- sdb <- md127 <- assembled volume");
        assert_null(critical(f, "0000:00:1f.2"));
}

TEST_WITH(test_loop_on_a_partition, setup, teardown) {
        Fixture *f = *state;

        add_block(f, VIRTUAL "loop3");
        add_block(f, VIRTUAL "loop3/loop3p1");
        tree_file(f->root, VIRTUAL "loop3/loop/backing_file", "/dev/sda1");
        tree_link(f->root, "sys/dev/block/259:7", "../../devices/virtual/block/loop3/loop3p1");
        mounts(f, "22 1 259:7 / /mnt rw - ext4 /dev/loop3p1 rw");
        assert_string_equal(critical(f, "0000:00:1f.2"), "0000:00:1f.2 <- sda1 <- loop3p1 <- /mnt (mounted)");
        /* A loop device on a file: the file's file system is mounted itself. */
        tree_file(f->root, VIRTUAL "loop3/loop/backing_file", "/srv/image");
        assert_null(critical(f, "0000:00:1f.2"));
}

/* A VMD controller is no bridge and could be in a pool. The inventory lacks the devices below it. */
TEST_WITH(test_what_is_above, setup, teardown) {
        Fixture *f = *state;

        tree_device(f->root, VMD, "0x8086", "0x9a0b", "0x010400");
        add_block(f, "sys/devices/" BEHIND "/nvme/nvme0/nvme0n1");
        tree_link(f->root, "sys/dev/block/259:0", "../../../sys/devices/" BEHIND "/nvme/nvme0/nvme0n1");
        mounts(f, "22 1 259:0 / / rw - ext4 /dev/nvme0n1 rw");
        assert_string_equal(critical(f, "0000:00:0e.0"), "0000:00:0e.0 <- 10000:e1:00.0 <- nvme0n1 <- / (mounted)");
        assert_null(critical(f, "0000:00:03.0"));
        assert_null(critical(f, "0000:03:00.0"));
        mounts(f, "22 1 8:16 / / rw - ext4 /dev/sdb rw");
        tree_link(f->root, "sys/dev/block/8:16", "../../../" SDB);
        assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- sdb <- / (mounted)");
        assert_string_equal(critical(f, "0000:00:03.0"), "0000:00:03.0 <- 0000:03:00.0 <- sdb <- / (mounted)");
        assert_null(critical(f, "0000:00:0e.0"));
}

/* Kernel users without a link at the block device. All use sdb; "without" ends the use. */
TEST_WITH(test_users_without_holder, setup, teardown) {
        static const struct {
                const char *path, *content, *without, *way;
        } cases[] = {
                { "sys/kernel/config/nvmet/subsystems/nqn.x/namespaces/1/device_path", "/dev/sdb",
                  "sys/kernel/config/nvmet/subsystems/nqn.x/namespaces/1/enable", "sdb <- NVMe target" },
                { "sys/kernel/config/target/core/iblock_0/vm/udev_path", "/dev/disk/by-id/x",
                  "sys/kernel/config/target/core/iblock_0/vm/enable", "sdb <- LIO target" },
                { VIRTUAL "loop0/loop/backing_file", "/dev/sdb", NULL, "sdb <- loop0 <- assembled volume" },
                { "sys/kernel/config/cluster/c/heartbeat/77D95EF51C0149D2823674FCC162CF8B/dev", "sdb", NULL,
                  "sdb <- OCFS2 heartbeat" },
                { "sys/kernel/config/usb_gadget/g/functions/mass_storage.0/lun.1/file", "/dev/sdb", NULL,
                  "sdb <- USB gadget" },
                { VIRTUAL "zram0/backing_dev", "/dev/sdb", NULL, "sdb <- zram" },
        };
        Fixture *f = *state;

        add_block(f, VIRTUAL "loop0");
        add_block(f, VIRTUAL "zram0");
        tree_file(f->root, "dev/sdb", "");
        tree_link(f->root, "dev/disk/by-id/x", "../../sdb");
        /* Files that are no devices. */
        tree_file(f->root, "sys/kernel/config/target/core/iblock_0/hba_info", "HBA Index: 0");
        tree_dir(f->root, "sys/kernel/config/target/core/alua/lu_gps");
        tree_file(f->root, "sys/kernel/config/cluster/c/heartbeat/dead_threshold", "31");
        tree_file(f->root, "sys/kernel/config/cluster/c/heartbeat/0/dev", "");
        tree_file(f->root, "sys/kernel/config/usb_gadget/g/functions/mass_storage.0/lun.0/file", "");
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *chain;

                assert_null(critical(f, "0000:03:00.0"));
                tree_file(f->root, cases[i].path, cases[i].content);
                chain = critical(f, "0000:03:00.0");
                assert_non_null(chain);
                assert_string_equal(chain + strlen("0000:03:00.0 <- "), cases[i].way);
                assert_null(critical(f, "0000:00:1f.2"));
                assert_null(f->inv->critical_error);
                if (cases[i].without) {
                        tree_file(f->root, cases[i].without, "0");
                        assert_null(critical(f, "0000:03:00.0"));
                        tree_file(f->root, cases[i].without, "1");
                        assert_non_null(critical(f, "0000:03:00.0"));
                }
                /* A file of a mounted file system. */
                tree_file(f->root, cases[i].path, "/srv/sdb");
        }
}

TEST_WITH(test_exported_controller, setup, teardown) {
        Fixture *f = *state;

        tree_link(f->root, "sys/class/nvme/nvme0", "../../devices/" HBA "/nvme/nvme0");
        tree_dir(f->root, "sys/devices/" HBA "/nvme/nvme0");
        tree_file(f->root, "sys/kernel/config/nvmet/subsystems/nqn.x/passthru/device_path", "/dev/nvme0");
        assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- nvme0 <- NVMe target");
        tree_file(f->root, "sys/kernel/config/nvmet/subsystems/nqn.x/passthru/device_path", "/dev/disk/x");
        assert_null(critical(f, "0000:03:00.0"));
        tree_file(f->root, "dev/nvme0", "");
        tree_link(f->root, "dev/disk/x", "../nvme0");
        assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- nvme0 <- NVMe target");
}

TEST_WITH(test_links_to_the_device, setup, teardown) {
        Fixture *f = *state;

        tree_dir(f->root, SDB "/bcache");
        tree_file(f->root, "sys/fs/bcache/8b4b1f0c-1111-4111-8111-000000000001/cache_available_percent", "99");
        assert_null(critical(f, "0000:03:00.0"));
        tree_link(f->root, "sys/fs/bcache/8b4b1f0c-1111-4111-8111-000000000001/cache0", "../../../../" SDB "/bcache");
        assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- sdb <- bcache");
        tree_link(f->root, "sys/class/rnbd-server/ctl/devices/sda1/block_dev", "../../../../../../" SDA "/sda1");
        assert_string_equal(critical(f, "0000:00:1f.2"), "0000:00:1f.2 <- sda1 <- RNBD target");
        assert_null(f->inv->critical_error);
}

TEST_WITH(test_bcachefs_in_another_namespace, setup, teardown) {
        Fixture *f = *state;

        tree_link(f->root, "sys/fs/bcachefs/8b4b1f0c-1111-4111-8111-000000000001/dev-0/block",
                  "../../../../../" SDA "/sda1");
        assert_string_equal(critical(f, "0000:00:1f.2"), "0000:00:1f.2 <- sda1 <- a file system (mounted)");
        assert_null(critical(f, "0000:03:00.0"));
}

/* Only disks of pools that the host has imported count: a guest may have those of another pool. */
TEST_WITH(test_zfs, setup, teardown) {
        Fixture *f = *state;

        tree_file(f->root, SDA "/dev", "8:0");
        tree_file(f->root, SDA "/sda1/dev", "8:1");
        tree_file(f->root, SDB "/dev", "8:16");
        tree_file(f->root, "run/udev/data/b8:1", "I:1\nE:ID_FS_TYPE=zfs_member\nE:ID_FS_LABEL=tank_2");
        tree_file(f->root, "run/udev/data/b8:16", "E:ID_FS_LABEL=other\nE:ID_FS_TYPE=zfs_member");
        assert_null(critical(f, "0000:00:1f.2"));
        tree_file(f->root, "proc/spl/kstat/zfs/arcstats", "");
        tree_file(f->root, "proc/spl/kstat/zfs/tank/state", "ONLINE");
        assert_null(critical(f, "0000:00:1f.2"));
        tree_file(f->root, "proc/spl/kstat/zfs/tank 2/state", "ONLINE");
        assert_string_equal(critical(f, "0000:00:1f.2"), "0000:00:1f.2 <- sda1 <- ZFS pool tank_2");
        assert_null(critical(f, "0000:03:00.0"));
        tree_file(f->root, "run/udev/data/b8:16", "E:ID_FS_LABEL=tank\nE:ID_FS_TYPE=ext4");
        assert_null(critical(f, "0000:03:00.0"));
        tree_file(f->root, "run/udev/data/b8:16", "E:ID_FS_TYPE=zfs_member\nE:ID_FS_LABEL=tank");
        assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- sdb <- ZFS pool tank");
        assert_null(f->inv->critical_error);
}

#define REGION  "sys/devices/platform/ACPI0017:00/root0/decoder0.0/region0"
#define END     "sys/devices/platform/ACPI0017:00/root0/port1/endpoint2"
#define CXL_MEM "pci0000:00/0000:00:04.0/0000:04:00.0"

/* A CXL memory device with a region of two memory blocks, from block 32. */
TEST_WITH(test_cxl_memory, setup, teardown) {
        Fixture *f = *state;

        tree_device(f->root, CXL_MEM, "0x8086", "0x0d93", "0x050210");
        tree_dir(f->root, "sys/devices/" CXL_MEM "/mem0");
        tree_link(f->root, END "/uport", "../../../../../pci0000:00/0000:00:04.0/0000:04:00.0/mem0");
        tree_dir(f->root, END "/decoder2.0");
        tree_link(f->root, "sys/bus/cxl/devices/decoder2.0", "../../../../" END "/decoder2.0");
        tree_link(f->root, "sys/bus/cxl/devices/region0", "../../../../" REGION);
        tree_file(f->root, REGION "/resource", "0x1000000000");
        tree_file(f->root, REGION "/size", "0x100000000");
        tree_file(f->root, REGION "/target0", "decoder2.0");
        tree_file(f->root, "sys/devices/system/memory/block_size_bytes", "80000000");
        tree_file(f->root, "sys/devices/system/memory/memory31/state", "online");
        tree_file(f->root, "sys/devices/system/memory/memory32/state", "offline");
        tree_file(f->root, "sys/devices/system/memory/memory34/state", "online");
        assert_null(critical(f, "0000:04:00.0"));
        tree_file(f->root, "sys/devices/system/memory/memory33/state", "online");
        assert_string_equal(critical(f, "0000:04:00.0"), "0000:04:00.0 <- mem0 <- region0 <- System RAM");
        assert_non_null(marked(f, NULL, "0000:04:00.0")->critical_remedy);
        tree_file(f->root, "sys/devices/system/memory/memory33/state", "going-offline");
        assert_non_null(critical(f, "0000:04:00.0"));
        tree_file(f->root, "sys/devices/system/memory/memory33/state", "ERROR-UNKNOWN-8");
        assert_non_null(critical(f, "0000:04:00.0"));
        tree_file(f->root, "sys/devices/system/memory/memory33/state", "offline");
        assert_null(critical(f, "0000:04:00.0"));
        /* Far beyond the other blocks. */
        tree_file(f->root, "sys/devices/system/memory/memory100000/state", "online");
        tree_file(f->root, REGION "/size", "0xc34d80000000");
        tree_file(f->root, "sys/devices/system/memory/memory34/state", "offline");
        assert_non_null(critical(f, "0000:04:00.0"));
        tree_file(f->root, "sys/devices/system/memory/memory100000/state", "offline");
        assert_null(critical(f, "0000:04:00.0"));
        tree_file(f->root, REGION "/size", "0xffffffffffffffff");
        assert_null(critical(f, "0000:04:00.0"));
        /* Memory in no memory block: it may be persistent, or belong to a process. */
        tree_link(f->root, REGION "/driver", "../../../../../../bus/cxl/drivers/cxl_region");
        assert_string_equal(critical(f, "0000:04:00.0"), "0000:04:00.0 <- mem0 <- region0 <- enabled region");
        assert_non_null(strstr(marked(f, NULL, "0000:04:00.0")->critical_remedy, "cxl-disable-region"));
        assert_null(f->inv->critical_error);
}

/* Memory below a PCI function, which the driver kmem added to a NUMA node. */
TEST_WITH(test_dax_memory, setup, teardown) {
        Fixture *f = *state;

        tree_file(f->root, "sys/devices/" HBA "/dax0.0/target_node", "2");
        tree_link(f->root, "sys/bus/dax/devices/dax0.0", "../../../devices/" HBA "/dax0.0");
        tree_link(f->root, "sys/devices/" HBA "/dax0.0/driver", "../../../../../bus/dax/drivers/device_dax");
        tree_file(f->root, "sys/devices/system/node/node2/meminfo", "Node 2 MemTotal:       1048576 kB\n");
        assert_null(critical(f, "0000:03:00.0"));
        tree_link(f->root, "sys/devices/" HBA "/dax0.0/driver", "../../../../../bus/dax/drivers/kmem");
        assert_string_equal(critical(f, "0000:03:00.0"), "0000:03:00.0 <- dax0.0 <- System RAM");
        assert_non_null(strstr(marked(f, NULL, "0000:03:00.0")->critical_remedy, "--mode=devdax"));
        tree_file(f->root, "sys/devices/system/node/node2/meminfo", "Node 2 MemTotal:       0 kB\n");
        assert_null(critical(f, "0000:03:00.0"));
}
