/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Users of a device on a host driver, by its nodes, interfaces and disks; and the unit of a process. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "unit.h"

#include "host/holders-internal.h"
#include "host/nvidia.h"
#include "sentences.h"
#include "treefixture.h"
#include "util/strings.h"

#define DEVICE   "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
#define NET      DEVICE "/net/eth1"
/* Microseconds. */
#define PATIENCE 60000000U

static int setup(void **state) {
        Fixture *f = fixture_new(state);

        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:00.0", "0x10de", "0x2330", "0x030200");
        tree_dir(f->root, "proc/sys");
        tree_file(f->root, "proc/7/comm", "python3");
        tree_link(f->root, "proc/7/fd/0", "/dev/null");
        tree_link(f->root, "proc/7/fd/1", "socket:[1]");
        return 0;
}

static HolderQuery query(const char *driver, bool is_vf) {
        return (HolderQuery) { .address = { .bus = 1 },
                               .group = 12,
                               .driver = driver,
                               .is_vf = is_vf,
                               .nvidia_minor = NVIDIA_MINOR_UNKNOWN };
}

/* names: words of the text; NULL: the device is not in use. remedy: the command that the remedy must have. */
static void assert_use(const Fixture *f, HolderQuery q, const char *names, const char *remedy) {
        Holder h;

        assert_int_equal(holders_find(f->fs, &q, 1, &h), names ? 1 : 0);
        if (!names) {
                assert_string_equal(h.text, "");
                assert_string_equal(h.remedy, "");
                return;
        }
        assert_non_null(strstr(h.text, names));
        assert_non_null(strstr(h.remedy, remedy));
        record(h.text, h.remedy);
}

static void assert_held(const Fixture *f, const char *driver, const char *node, bool expected) {
        tree_link(f->root, "proc/7/fd/3", node);
        assert_use(f, query(driver, false), expected ? "7 (python3)" : NULL, "");
}

TEST_WITH(test_nvidia, setup, teardown) {
        Fixture *f = *state;
        HolderQuery q;

        /* Without the minor, every /dev/nvidiaN counts. */
        assert_held(f, "nvidia", "/dev/nvidia0", true);
        assert_held(f, "nvidia", "/dev/nvidiactl", false);
        assert_held(f, "nouveau", "/dev/nvidia0", false);
        tree_file(f->root, "proc/driver/nvidia/gpus/0000:01:00.0/information",
                  "Model: \t\t NVIDIA H100\nIRQ:   \t\t 77\nDevice Minor: \t 3\nGPU Excluded:\t No");
        /* The driver's file with the minor is not read during a search. */
        assert_held(f, "nvidia", "/dev/nvidia0", true);
        assert_int_equal(nvidia_read_minor(f->fs, (PciAddress) { .bus = 1 }), 3);
        assert_int_equal(nvidia_read_minor(f->fs, (PciAddress) { .bus = 2 }), NVIDIA_MINOR_UNKNOWN);

        q = query("nvidia", false);
        q.nvidia_minor = 3;
        static const struct {
                const char *node;
                bool held;
        } cases[] = {
                { "/dev/nvidia0", false },    { "/dev/nvidia33", false },
                { "/dev/nvidia-uvm", false }, { "/dev/nvidia-modeset", false },
                { "/dev/nvidia3", true },     { "/var/lib/machines/x/dev/nvidia3 (deleted)", true },
                { "/home/x/nvidia3", false },
        };
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                tree_link(f->root, "proc/7/fd/3", cases[i].node);
                assert_use(f, q, cases[i].held ? "7 (python3)" : NULL, "");
        }
}

static void write_module(const Fixture *f, const char *module, const char *references) {
        char path[64];

        (void) snprintf(path, sizeof(path), "sys/module/%s/refcnt", module);
        tree_file(f->root, path, references);
        (void) snprintf(path, sizeof(path), "sys/module/%s/holders", module);
        tree_dir(f->root, path);
}

/* The links of process 7 contradict the reference counts, which shows which of them was read. */
TEST_WITH(test_nvidia_modules, setup, teardown) {
        static const char *const others[] = { "nvidia_uvm", "nvidia_modeset", "nvidia_drm" };
        Fixture *f = *state;

        tree_file(f->root, DEVICE "/drm/card1/dev", "226:1");
        tree_file(f->root, DEVICE "/drm/renderD129/dev", "226:129");
        tree_file(f->root, DEVICE "/i2c-3/i2c-dev/i2c-3/dev", "89:3");
        write_module(f, "nvidia", "0");
        assert_held(f, "nvidia", "/dev/nvidia0", false);
        assert_held(f, "nvidia", "/dev/dri/card1", false);
        assert_held(f, "nvidia", "/dev/dri/renderD129", false);
        assert_held(f, "nvidia", "/dev/i2c-3", true);
        assert_held(f, "nouveau", "/dev/dri/card1", true);

        write_module(f, "nvidia", "1");
        assert_held(f, "nvidia", "/dev/nvidia0", true);
        assert_held(f, "nvidia", "/dev/dri/card1", true);
        tree_link(f->root, "sys/module/nvidia/holders/nvidia_uvm", "../../nvidia_uvm");
        assert_held(f, "nvidia", "/dev/nvidia0", false);
        write_module(f, "nvidia", "0");
        assert_held(f, "nvidia", "/dev/nvidia0", true);
        write_module(f, "nvidia", "-1");
        assert_held(f, "nvidia", "/dev/nvidia0", true);
        write_module(f, "nvidia", "1");

        for (size_t i = 0; i < ELEMENTSOF(others); i++) {
                char path[64];

                write_module(f, others[i], "1");
                assert_held(f, "nvidia", "/dev/nvidia0", true);
                (void) snprintf(path, sizeof(path), "sys/module/%s/refcnt", others[i]);
                tree_unlink(f->root, path);
                assert_held(f, "nvidia", "/dev/nvidia0", true);
                write_module(f, others[i], "0");
                assert_held(f, "nvidia", "/dev/nvidia0", false);
        }
        tree_file(f->root, DEVICE "/other/other0/dev", "1:2");
        assert_held(f, "nvidia", "/dev/other0", true);
}

/* The first thread of the process has ended; others have the files. */
TEST_WITH(test_threads, setup, teardown) {
        Fixture *f = *state;
        HolderQuery q = query("nvidia", false);

        tree_unlink(f->root, "proc/7/fd/0");
        tree_unlink(f->root, "proc/7/fd/1");
        tree_dir(f->root, "proc/7/task/7/fd");
        tree_link(f->root, "proc/7/task/9/fd/3", "/dev/nvidia0");
        assert_use(f, q, "7 (python3)", "");
        tree_link(f->root, "proc/7/task/9/fd/3", "/dev/null");
        assert_use(f, q, NULL, "");
}

TEST_WITH(test_nodes, setup, teardown) {
        static const struct {
                const char *directory, *node;
        } nodes[] = {
                { "drm/card1", "/dev/dri/card1" },
                { "drm/renderD129", "/dev/dri/renderD129" },
                { "infiniband_verbs/uverbs0", "/dev/infiniband/uverbs0" },
                { "infiniband_mad/umad0", "/dev/infiniband/umad0" },
                { "infiniband_mad/issm0", "/dev/infiniband/issm0" },
                { "nvme/nvme0", "/dev/nvme0" },
                { "nvme/nvme0/ng0n1", "/dev/ng0n1" },
                { "nvme/nvme0/nvme0n1", "/dev/nvme0n1" },
                { "nvme/nvme0/nvme0n1/nvme0n1p1", "/dev/nvme0n1p1" },
                { "ata1/host0/target0:0:0/0:0:0:0/block/sda", "/dev/sda" },
                { "sound/card1/controlC1", "/dev/snd/controlC1" },
                { "ptp/ptp0", "/dev/ptp0" },
        };
        Fixture *f = *state;

        for (size_t i = 0; i < ELEMENTSOF(nodes); i++) {
                _cleanup_free_ char *path = NULL;

                assert_held(f, "driver", nodes[i].node, false);
                assert_true(asprintf(&path, DEVICE "/%s/dev", nodes[i].directory) > 0);
                tree_file(f->root, path, "226:1");
                assert_held(f, "driver", nodes[i].node, true);
        }
        assert_held(f, "driver", "/dev/dri/card", false);
        assert_held(f, "driver", "/dev/dri/card10", false);
        assert_held(f, "driver", "/dev/vfio/12", false);
}

/* Targets of links, and functions below a bridge, belong to other queries. */
TEST_WITH(test_nodes_of_others, setup, teardown) {
        Fixture *f = *state;

        tree_file(f->root, DEVICE "/0000:02:00.0/drm/card2/dev", "226:2");
        assert_held(f, "driver", "/dev/dri/card2", false);
        tree_file(f->root, "sys/devices/virtual/drm/card3/dev", "226:3");
        tree_link(f->root, DEVICE "/card3", "../../../virtual/drm/card3");
        assert_held(f, "driver", "/dev/dri/card3", false);
}

/* A directory without a device number is no node. */
TEST_WITH(test_directory_without_number, setup, teardown) {
        Fixture *f = *state;

        tree_dir(f->root, DEVICE "/hwmon/hwmon3");
        assert_held(f, "driver", "/dev/hwmon3", false);
        tree_file(f->root, DEVICE "/hwmon/hwmon3/dev", "240:3");
        assert_held(f, "driver", "/dev/hwmon3", true);
}

/* A long name is dropped, not truncated, because the rest may be another node's name. */
TEST_WITH(test_long_names, setup, teardown) {
        Fixture *f = *state;

        for (size_t n = HOLDER_NODE_NAME_MAX; n >= HOLDER_NODE_NAME_MAX - 1; n--) {
                char name[HOLDER_NODE_NAME_MAX + 1] = { 0 }, node[HOLDER_NODE_NAME_MAX + 8];
                _cleanup_free_ char *path = NULL;

                memset(name, 'a', n);
                assert_true(asprintf(&path, DEVICE "/misc/%s/dev", name) > 0);
                tree_file(f->root, path, "10:63");
                (void) snprintf(node, sizeof(node), "/dev/%.*s", (int) HOLDER_NODE_NAME_MAX - 1, name);
                assert_held(f, "driver", node, n < HOLDER_NODE_NAME_MAX);
        }
}

TEST_WITH(test_kfd, setup, teardown) {
        Fixture *f = *state;

        assert_held(f, "amdgpu", "/dev/kfd", true);
        assert_held(f, "nvidia", "/dev/kfd", false);
}

/* The disk is below the NVMe subsystem, which several controllers share. */
TEST_WITH(test_nvme_multipath, setup, teardown) {
        Fixture *f = *state;

        tree_file(f->root, DEVICE "/nvme/nvme0/nvme0c0n1/hidden", "1");
        tree_file(f->root, "sys/devices/virtual/nvme-subsystem/nvme-subsys4/nvme4n1/dev", "259:7");
        tree_link(f->root, "sys/devices/virtual/nvme-subsystem/nvme-subsys4/nvme1", "../../../nvme1");
        assert_held(f, "nvme", "/dev/nvme4n1", false);
        tree_link(f->root, "sys/devices/virtual/nvme-subsystem/nvme-subsys4/nvme0", "../../../nvme0");
        assert_held(f, "nvme", "/dev/nvme4n1", true);
        tree_dir(f->root, "sys/devices/virtual/nvme-subsystem/nvme-subsys4/nvme4n1/holders/dm-1");
        assert_use(f, query("nvme", false), "dm-1", "");
}

TEST_WITH(test_disk, setup, teardown) {
        Fixture *f = *state;

        tree_dir(f->root, DEVICE "/nvme/nvme0/nvme0n1/holders");
        tree_dir(f->root, DEVICE "/nvme/nvme0/nvme0n1/nvme0n1p2/holders");
        assert_use(f, query("nvme", false), NULL, NULL);
        tree_link(f->root, DEVICE "/nvme/nvme0/nvme0n1/nvme0n1p2/holders/md127", "../../md127");
        assert_use(f, query("nvme", false), "md127", "");
        assert_use(f, query(NULL, false), NULL, NULL);
}

TEST_WITH(test_interface_up, setup, teardown) {
        Fixture *f = *state;

        tree_file(f->root, NET "/flags", "0x1002");
        tree_file(f->root, NET "/operstate", "up");
        assert_use(f, query("igb", false), NULL, NULL);
        tree_file(f->root, NET "/flags", "0x1003");
        assert_use(f, query("igb", false), "eth1", "ip link set eth1 down");
}

TEST_WITH(test_interface_of_vf, setup, teardown) {
        static const char text[] = "eth1";
        static const char remedy[] = "ip link set eth1 down";
        static const char head[] =
                "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
        _cleanup_free_ char *routes = NULL;
        Fixture *f = *state;

        tree_file(f->root, NET "/flags", "0x1003");
        tree_file(f->root, "proc/net/route", "eth10\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0");
        tree_file(f->root, "proc/net/if_inet6", "fe80000000000000020000fffe000001 02 40 20 80     eth1");
        assert_use(f, query("iavf", true), NULL, NULL);
        tree_file(f->root, "proc/net/if_inet6",
                  "fe80000000000000020000fffe000001 02 40 20 80     eth1\n"
                  "20010db8000000000000000000000001 02 40 00 80     eth1");
        assert_use(f, query("iavf", true), text, remedy);
        tree_unlink(f->root, "proc/net/if_inet6");
        assert_use(f, query("iavf", true), NULL, NULL);
        assert_int_equal(string_replace(&routes, "%seth1\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0", head),
                         0);
        tree_file(f->root, "proc/net/route", routes);
        assert_use(f, query("iavf", true), text, remedy);
}

TEST_WITH(test_interface_enslaved, setup, teardown) {
        Fixture *f = *state;

        tree_file(f->root, NET "/flags", "0x1002");
        tree_link(f->root, NET "/upper_vlan7", "../../../../../virtual/net/vlan7");
        assert_use(f, query("iavf", true), "vlan7", "ip link delete vlan7");
        tree_link(f->root, NET "/master", "../../../../../virtual/net/bond0");
        assert_use(f, query("iavf", true), "bond0", "ip link set eth1 nomaster");
}

/* The interface was renamed or removed after the listing. */
TEST_WITH(test_interface_that_is_gone, setup, teardown) {
        Fixture *f = *state;

        tree_link(f->root, NET, "no-such-directory");
        assert_use(f, query("iavf", true), NULL, NULL);
}

TEST_WITH(test_interface_in_namespace, setup, teardown) {
        Fixture *f = *state;

        tree_dir(f->root, DEVICE "/net");
        assert_use(f, query("iavf", true), "namespace", "");
}

/* Names the first holder, and counts the others only for the same device. */
TEST_WITH(test_several, setup, teardown) {
        const HolderQuery queries[] = { { .address = { .bus = 9 }, .group = 4, .driver = "nouveau" },
                                        query("nouveau", false) };
        Fixture *f = *state;
        Holder h;

        tree_file(f->root, DEVICE "/drm/card1/dev", "226:1");
        tree_file(f->root, DEVICE "/drm/renderD129/dev", "226:129");
        tree_device(f->root, "pci0000:00/0000:09:00.0", "0x10de", "0x2330", "0x030200");
        tree_file(f->root, "sys/devices/pci0000:00/0000:09:00.0/drm/card9/dev", "226:9");
        tree_link(f->root, "proc/7/fd/3", "/dev/dri/card1");
        tree_link(f->root, "proc/7/fd/4", "/dev/dri/renderD129");
        assert_int_equal(holders_find(f->fs, queries, 2, &h), 1);
        assert_int_equal(h.device, 1);
        assert_int_equal(h.others, 0);
        tree_link(f->root, "proc/8/fd/4", "/dev/dri/renderD129");
        tree_link(f->root, "proc/9/fd/4", "/dev/dri/card1");
        assert_int_equal(holders_find(f->fs, queries, 2, &h), 1);
        assert_int_equal(h.others, 2);
        assert_non_null(strstr(h.text, " 2 "));
        /* Each of the two processes has another device. */
        tree_unlink(f->root, "proc/8/fd/4");
        tree_link(f->root, "proc/9/fd/4", "/dev/dri/card9");
        assert_int_equal(holders_find(f->fs, queries, 2, &h), 1);
        assert_int_equal(h.others, 0);
        assert_int_equal(h.device, h.pid == 7 ? 1 : 0);
        tree_unlink(f->root, "proc/7/fd/3");
        tree_unlink(f->root, "proc/7/fd/4");
        tree_unlink(f->root, "proc/9/fd/4");
        tree_link(f->root, "proc/8/fd/5", "/dev/dri/card9");
        assert_int_equal(holders_find(f->fs, queries, 2, &h), 1);
        assert_int_equal(h.pid, 8);
        assert_int_equal(h.others, 0);
}

TEST_WITH(test_text, setup, teardown) {
        Fixture *f = *state;

        tree_file(f->root, DEVICE "/drm/card1/dev", "226:1");
        tree_link(f->root, "proc/7/fd/3", "/dev/dri/card1");
        tree_file(f->root, "proc/7/cgroup", "0::/system.slice/nvidia-persistenced.service");
        assert_use(f, query("nvidia", false), "7 (python3, nvidia-persistenced.service)",
                   "systemctl stop nvidia-persistenced.service");
        tree_file(f->root, "proc/7/cgroup",
                  "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-"
                  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope");
        assert_use(f, query("nvidia", false), "0123456789ab", "");
        /* A process chooses its own name. */
        tree_file(f->root, "proc/7/comm", "a\033[1m\xff");
        tree_unlink(f->root, "proc/7/cgroup");
        assert_use(f, query("nvidia", false), "7 (a\\x1b[1m\\xff)", "");
}

TEST_WITH(test_unit, setup, teardown) {
        static const struct {
                const char *cgroups, *expected;
        } cases[] = {
                { "", "" },
                { "0::/", "" },
                { "0::/init.scope", "init.scope" },
                { "0::/system.slice/ssh.service", "ssh.service" },
                { "0::/machine.slice/machine-qemu\\x2d1\\x2dx.scope/libvirt/emulator",
                  "machine-qemu\\x2d1\\x2dx.scope" },
                { "0::/user.slice/user-1000.slice/session-3.scope", "session-3.scope" },
                { "0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service",
                  "x.service of user@1000.service" },
                { "0::/system.slice/x.service/; reboot .service", "x.service" },
                { "2:cpu:/y.service\n1:name=systemd:/system.slice/x.service\n0::/", "x.service" },
                { "0::/system.slice/docker-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope",
                  "docker container 0123456789ab" },
                { "1:name=systemd:/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                  "docker container 0123456789ab" },
                { "0::/machine.slice/libpod-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope/"
                  "container",
                  "podman container 0123456789ab" },
                { "0::/kubepods/burstable/pod1/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                  "kubernetes container 0123456789ab" },
                { "0::/system.slice/docker-0123.scope", "docker-0123.scope" },
                { "nonsense", "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char unit[HOLDER_UNIT_MAX];

                holder_unit(cases[i].cgroups, unit, sizeof(unit));
                assert_string_equal(unit, cases[i].expected);
        }
}

/* On this machine, nodes are compared by number: here a terminal that only the test has open, under another name. */
TEST_WITH(test_number, setup, teardown) {
        _cleanup_(cleanup_sysfs_free) Sysfs *machine = NULL;
        _cleanup_close_ int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_close_ int terminal = posix_openpt(O_RDWR | O_NOCTTY);
        HolderNode node = { .name = "card0", .has_number = true, .device = 5 };
        const HolderNodes wanted = { .nodes = &node, .n = 1 };
        _cleanup_close_ int slave = -1;
        struct stat st;
        size_t held;
        Holder h;
        pid_t pid;

        if (terminal < 0 || unlockpt(terminal) < 0 || !ptsname(terminal))
                fail_msg("no pseudo-terminal: /dev/ptmx or /dev/pts is missing");
        slave = open(ptsname(terminal), O_RDWR | O_NOCTTY);
        assert_int_equal(fstat(slave, &st), 0);
        node.major = major(st.st_rdev);
        node.minor = minor(st.st_rdev);
        assert_int_equal(sysfs_new("/", &machine), 0);
        assert_int_equal(holder_search(machine, proc, &wanted, true, PATIENCE, &h, &held), 1);
        assert_int_equal(h.pid, getpid());
        assert_int_equal(h.device, 5);
        assert_int_equal(h.others, 0);

        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void) pause();
                _exit(0);
        }
        assert_int_equal(lseek(proc, 0, SEEK_SET), 0);
        assert_int_equal(holder_search(machine, proc, &wanted, true, PATIENCE, &h, &held), 1);
        assert_int_equal(h.others, 1);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);

        /* Names count only for nodes without a number. */
        (void) snprintf(node.name, sizeof(node.name), "%s", ptsname(terminal) + strlen("/dev/"));
        node.is_block = true;
        assert_int_equal(lseek(proc, 0, SEEK_SET), 0);
        assert_true(holder_search(machine, proc, &wanted, true, PATIENCE, &h, &held) <= 0);
        node = (HolderNode) { .name = "card0", .has_number = true, .major = node.major, .minor = node.minor };
        assert_int_equal(lseek(proc, 0, SEEK_SET), 0);
        assert_true(holder_search(machine, proc, &wanted, false, PATIENCE, &h, &held) <= 0);
}

/* Searches with more and more free descriptors. With too few, the result must be an error, never that the device is
 * unused. */
static void assert_held_or_unknown(const Fixture *f, const HolderQuery *q) {
        int next = open("/dev/null", O_RDONLY | O_CLOEXEC), failures = 0, r = 0;
        struct rlimit limit, low;
        Holder h;

        assert_true(next >= 0);
        (void) close(next);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
        for (rlim_t n = 0; r != 1; n++) {
                low = (struct rlimit) { .rlim_cur = (rlim_t) next + n, .rlim_max = limit.rlim_max };
                assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
                r = holders_find(f->fs, q, 1, &h);
                assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
                assert_true(r == 1 || r == -EMFILE);
                failures += r < 0;
        }
        assert_true(failures >= 4);
}

TEST_WITH(test_few_descriptors, setup, teardown) {
        HolderQuery q = query("nvme", true);
        Fixture *f = *state;

        tree_dir(f->root, DEVICE "/nvme/nvme0");
        tree_file(f->root, "sys/devices/virtual/nvme-subsystem/nvme-subsys4/nvme4n1/dev", "259:7");
        tree_link(f->root, "sys/devices/virtual/nvme-subsystem/nvme-subsys4/nvme0", "../../../nvme0");
        tree_link(f->root, "proc/7/fd/3", "/dev/nvme4n1");
        assert_held_or_unknown(f, &q);
        tree_link(f->root, DEVICE "/0f/iommu_group", "../../../../../kernel/iommu_groups/107");
        tree_link(f->root, "proc/7/fd/3", "/dev/vfio/107");
        q = (HolderQuery) { .address = { .bus = 1 }, .group = 12, .driver = "i915", .only_parts = true };
        assert_held_or_unknown(f, &q);
}

/* Starts processes with that many descriptors together. Returns 0 if the limits forbid it. */
static size_t hoard(pid_t *pids, size_t max, size_t wanted) {
        struct rlimit limit, raised;
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        size_t n = 0, each = 1;

        assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
        raised = limit;
        raised.rlim_cur = MIN(limit.rlim_max, 200000U);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &raised), 0);
        while (each < wanted && dup(null) >= 0)
                each++;
        for (; n < max && n * each < wanted && each * max >= wanted; n++) {
                pids[n] = fork();
                assert_true(pids[n] >= 0);
                if (pids[n] == 0) {
                        (void) pause();
                        _exit(0);
                }
        }
        (void) close_range((unsigned) null, ~0U, 0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        return n;
}

static void *wait_for_ever(void *unused) {
        for (;;)
                (void) pause();
        return unused;
}

/* Opens a terminal, sends its number, and ends the first thread of this process. */
_Noreturn static void lose_leader(int fd) {
        int terminal = posix_openpt(O_RDWR | O_NOCTTY);
        pthread_t thread;
        struct stat st;

        if (terminal < 0 || unlockpt(terminal) < 0 || fstat(open(ptsname(terminal), O_RDWR | O_NOCTTY), &st) < 0 ||
            pthread_create(&thread, NULL, wait_for_ever, NULL) != 0 ||
            write(fd, &st.st_rdev, sizeof(st.st_rdev)) != sizeof(st.st_rdev))
                _exit(EXIT_FAILURE);
        pthread_exit(NULL);
}

/* On this machine: PID/fd of such a process is empty. */
TEST_WITH(test_leader_ended, setup, teardown) {
        _cleanup_(cleanup_sysfs_free) Sysfs *machine = NULL;
        HolderNode node = { .name = "card0", .has_number = true };
        const HolderNodes wanted = { .nodes = &node, .n = 1 };
        int pipes[2], r = 0;
        size_t held;
        dev_t number;
        pid_t pid;
        Holder h;

        assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                lose_leader(pipes[1]);
        assert_int_equal(read(pipes[0], &number, sizeof(number)), sizeof(number));
        node.major = major(number);
        node.minor = minor(number);
        assert_int_equal(sysfs_new("/", &machine), 0);
        /* The first thread may end only after some searches. */
        for (unsigned i = 0; i < 20; i++) {
                r = holder_search_root(machine, &wanted, &h, &held);
                (void) usleep(10000);
        }
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        (void) close(pipes[0]);
        (void) close(pipes[1]);
        assert_int_equal(r, 1);
        assert_int_equal(h.pid, pid);
}

/* Any number of descriptors is searched: only the time is limited. */
TEST_WITH(test_many_descriptors, setup, teardown) {
        HolderNode node = { .name = "no-such-node" };
        const HolderNodes wanted = { .nodes = &node, .n = 1 };
        pid_t pids[64];
        _cleanup_(cleanup_sysfs_free) Sysfs *machine = NULL;
        size_t n = hoard(pids, ELEMENTSOF(pids), 510000);
        int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), with_time, without;
        size_t held;
        Holder h;

        assert_int_equal(sysfs_new("/", &machine), 0);
        with_time = holder_search(machine, proc, &wanted, true, PATIENCE, &h, &held);
        assert_int_equal(lseek(proc, 0, SEEK_SET), 0);
        without = holder_search(machine, proc, &wanted, true, 0, &h, &held);
        (void) close(proc);
        for (size_t i = 0; i < n; i++) {
                (void) kill(pids[i], SIGKILL);
                (void) waitpid(pids[i], NULL, 0);
        }
        assert_int_equal(without, -ETIMEDOUT);
        if (n == 0)
                fail_msg("RLIMIT_NOFILE is too low: this test needs 8,000 descriptors for each process");
        assert_true(with_time != -E2BIG && with_time != -ETIMEDOUT);
}

TEST(test_sentences) {
        assert_sentences("holders.txt");
}
