/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Facts of the whole machine and of links: processors, and VFIO devices. */

#include "unit.h"

#include "scanfixture.h"

TEST_WITH(test_phys_bits, setup, teardown) {
        Fixture *f = *state;
        static const struct {
                const char *text;
                unsigned bits;
        } cases[] = {
                { "processor\t: 0\nflags\t\t: fpu\naddress sizes\t: 46 bits physical, 48 bits virtual\n", 46 },
                { "address sizes\t: 52 bits physical", 52 },
                { "address sizes\t: 7 bits physical\n", 0 },
                { "address sizes\t: 65 bits physical\n", 0 },
                { "address sizes", 0 },
                { "", 0 },
        };

        scan(f);
        assert_int_equal(f->inv->phys_bits, 0);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                tree_file(f->root, "proc/cpuinfo", cases[i].text);
                scan(f);
                assert_int_equal(f->inv->phys_bits, cases[i].bits);
        }
}

TEST_WITH(test_vendor, setup, teardown) {
        Fixture *f = *state;
        static const struct {
                const char *text;
                bool amd;
        } cases[] = {
                { "processor\t: 0\nvendor_id\t: AuthenticAMD\n", true },
                { "vendor_id\t: HygonGenuine", true },
                { "vendor_id\t: GenuineIntel\n", false },
                { "model name\t: AuthenticAMD\n", false },
                { "", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                tree_file(f->root, "proc/cpuinfo", cases[i].text);
                scan(f);
                assert_int_equal(f->inv->amd, cases[i].amd);
        }
}

TEST_WITH(test_architecture, setup, teardown) {
        Fixture *f = *state;
        static const struct {
                const char *text, *architecture;
                bool domains;
        } cases[] = {
                { "", ARCHITECTURE_X86_64, true },
                { "processor\t: 0\naddress sizes\t: 46 bits physical, 48 bits virtual\n", ARCHITECTURE_X86_64, true },
                { "processor\t: 0\nBogoMIPS\t: 2000.00\nCPU implementer\t: 0x41\n", ARCHITECTURE_AARCH64, true },
                { "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n", "ppc64le", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                tree_file(f->root, "proc/cpuinfo", cases[i].text);
                scan(f);
                assert_string_equal(inventory_architecture(f->inv), cases[i].architecture);
                assert_int_equal(inventory_has_domains(f->inv), cases[i].domains);
        }
        tree_file(f->root, "proc/sys/kernel/arch", "s390x");
        scan(f);
        assert_string_equal(inventory_architecture(f->inv), "s390x");
        assert_false(inventory_has_domains(f->inv));
}

TEST_WITH(test_kernel, setup, teardown) {
        Fixture *f = *state;
        static const struct {
                const char *text;
                unsigned kernel;
        } cases[] = {
                { "6.12.48+deb13-amd64", 6012 }, { "6.19.0-rc1", 6019 }, { "7.2", 7002 }, { "Linux", 0 }, { "", 0 },
        };

        scan(f);
        assert_int_equal(f->inv->kernel, 0);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                tree_file(f->root, "proc/sys/kernel/osrelease", cases[i].text);
                scan(f);
                assert_int_equal(f->inv->kernel, cases[i].kernel);
        }
}

TEST_WITH(test_links, setup, teardown) {
        Fixture *f = *state;
        static const struct {
                const char *text;
                unsigned speed;
        } cases[] = {
                { "16.0 GT/s PCIe", 16000 },
                { "2.5 GT/s PCIe", 2500 },
                { "8 GT/s", 8000 },
                { "Unknown", 0 },
                { "16.0", 0 },
                { "99999 GT/s", 0 },
        };

        nic_has(f, "max_link_width", "8");
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                nic_has(f, "max_link_speed", cases[i].text);
                assert_int_equal(scan_nic(f)->link_speed, cases[i].speed);
                assert_int_equal(scan_nic(f)->link_width, 8);
                assert_null(scan_nic(f)->fault);
        }
        nic_has(f, "max_link_width", "255");
        assert_int_equal(scan_nic(f)->link_width, 0);

        nic_has(f, "current_link_speed", "8.0 GT/s PCIe");
        nic_has(f, "current_link_width", "4");
        assert_int_equal(scan_nic(f)->current_speed, 8000);
        assert_int_equal(scan_nic(f)->current_width, 4);
        nic_has(f, "power_state", "D3cold"); /* reading would resume the device */
        assert_int_equal(scan_nic(f)->current_speed, 0);
        assert_int_equal(scan_nic(f)->current_width, 0);
}

TEST_WITH(test_kernel_names, setup, teardown) {
        Fixture *f = *state;

        assert_null(scan_nic(f)->kernel_names);
        nic_has(f, "accel/accel0/dev", "261:0");
        nic_has(f, "drm/card1/dev", "226:1");
        nic_has(f, "infiniband/mlx5_0/node_type", "1: CA");
        nic_has(f, "net/eth1/type", "1");
        nic_has(f, "net/eth0/type", "1");
        nic_has(f, "net/odd name/type", "1");
        nic_has(f, "nvme/nvme0/model", "x");
        assert_string_equal(scan_nic(f)->kernel_names, "mlx5_0 eth0 eth1 nvme0 card1 accel0");
        assert_null(scan_nic(f)->fault);

        /* A driver that was bound after the scan created another interface. */
        nic_has(f, "net/eth2/type", "1");
        assert_int_equal(
                scan_refresh(f->fs, &f->inv->devices[inventory_device_index(f->inv, find(f, "0000:01:00.0"))], false),
                0);
        assert_string_equal(find(f, "0000:01:00.0")->kernel_names, "mlx5_0 eth0 eth1 eth2 nvme0 card1 accel0");
}

/* The master of an interface is a bond or a team, not another kind of interface with ports. */
TEST_WITH(test_bond, setup, teardown) {
        static const struct {
                const char *name, *uevent;
                bool is_bond;
        } cases[] = {
                { "bond0", "DEVTYPE=bond\nINTERFACE=bond0\nIFINDEX=9", true },
                { "br0", "DEVTYPE=bridge\nINTERFACE=br0\nIFINDEX=9", false },
                { "red", "DEVTYPE=vrf\nINTERFACE=red\nIFINDEX=9", false },
                { "team0", "INTERFACE=team0\nIFINDEX=9", true },
                { "ovs-system", "INTERFACE=ovs-system\nIFINDEX=9", false },
        };
        Fixture *f = *state;

        nic_has(f, "net/eth0/type", "1");
        nic_has(f, "net/eth1/type", "1");
        assert_null(scan_nic(f)->bond);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *uevent = string_format("sys/devices/virtual/net/%s/uevent", cases[i].name),
                                    *target = string_format("../../../../../virtual/net/%s", cases[i].name);
                PciDevice *nic = &f->inv->devices[inventory_device_index(f->inv, find(f, "0000:01:00.0"))];

                tree_file(f->root, uevent, cases[i].uevent);
                tree_attribute_link(f->root, "0000:01:00.0", "net/eth1/master", target);
                assert_int_equal(scan_refresh(f->fs, nic, false), 0);
                assert_int_equal(streq_ptr(nic->bond, cases[i].name), cases[i].is_bond);
                assert_int_equal(streq_ptr(scan_nic(f)->bond, cases[i].name), cases[i].is_bond);
        }
}

static void block_device(const Fixture *f, const char *path) {
        _cleanup_free_ char *link = string_format("sys/class/block/%s", strrchr(path, '/') + 1),
                            *target = string_format("../../devices/%s", path);

        tree_link(f->root, link, target);
}

TEST_WITH(test_disks, setup, teardown) {
        Fixture *f = *state;
        const char *names = "nvme0 nvme0n1 nvme1n2 sda";

        nic_has(f, "class", "0x020000");
        block_device(f, NIC "/x/block/sdz");
        assert_null(scan_nic(f)->kernel_names); /* no storage controller */
        nic_has(f, "class", "0x010802");
        tree_unlink(f->root, "sys/class/block/sdz");
        nic_has(f, "nvme/nvme0/model", "x");
        block_device(f, NIC "/nvme/nvme0/nvme0n1");
        block_device(f, NIC "/nvme/nvme0/nvme0n1/nvme0n1p1");
        block_device(f, NIC "/nvme/nvme1/nvme1c3n2"); /* a path of a multipath disk */
        block_device(f, NIC "/ata1/host0/target0:0:0/0:0:0:0/block/sda");
        block_device(f, NIC "/ata1/host0/target0:0:0/0:0:0:0/block/sda/sda1");
        block_device(f, "virtual/block/loop0");
        assert_string_equal(scan_nic(f)->kernel_names, names);
        assert_int_equal(
                scan_refresh(f->fs, &f->inv->devices[inventory_device_index(f->inv, find(f, "0000:01:00.0"))], false),
                0);
        assert_string_equal(find(f, "0000:01:00.0")->kernel_names, names);
}

static void interface(const Fixture *f, const char *path) {
        _cleanup_free_ char *link = string_format("sys/class/net/%s", strrchr(path, '/') + 1),
                            *target = string_format("../../devices/%s", path);

        tree_link(f->root, link, target);
}

/* Interfaces below other directories than the device's net. */
TEST_WITH(test_interfaces_below, setup, teardown) {
        Fixture *f = *state;
        static const char *const classes[] = { "0x020000", "0x0d4000", "0xff0000", "0x0c0010", "0x0c0330",
                                               "0x080501", "0x088000", "0x0c0340", "0x120000" };
        const char *names = "eth0 en1f0pf0sf1 en1f0pf0sf2 enx02 firewire0 net thunderbolt0 wlan0 wwan0";

        nic_has(f, "net/eth0/type", "1");
        interface(f, NIC "/net/eth0");
        interface(f, NIC "/mlx5_core.sf.2/net/en1f0pf0sf1");
        interface(f, NIC "/mlx5_core.sf.3/net/en1f0pf0sf2");
        interface(f, NIC "/usb1/1-2/1-2.1/1-2.1:1.0/net/enx02");
        interface(f, NIC "/mhi0/wwan/wwan0/net/wwan0");
        interface(f, NIC "/usb1/1-3/1-3:1.0/net/net");
        interface(f, NIC "/fw0/fw0.0/net/firewire0");
        interface(f, NIC "/mmc_host/mmc0/mmc0:0001/mmc0:0001:1/net/wlan0");
        interface(f, NIC "/domain0/0-0/0-1/0-1.0/net/thunderbolt0");
        interface(f, "virtual/net/lo");
        interface(f, "pci0000:00/0000:00:1f.7/net/gone0");
        for (size_t i = 0; i < ELEMENTSOF(classes); i++) {
                nic_has(f, "class", classes[i]);
                assert_string_equal(scan_nic(f)->kernel_names, names);
                assert_int_equal(scan_refresh(f->fs,
                                              &f->inv->devices[inventory_device_index(f->inv, find(f, "0000:01:00.0"))],
                                              false),
                                 0);
                assert_string_equal(find(f, "0000:01:00.0")->kernel_names, names);
        }
        nic_has(f, "class", "0x030000");
        assert_string_equal(scan_nic(f)->kernel_names, "eth0");
}

#define ALIASES "lib/modules/6.1.0-x/modules.alias"
#define MLX5    "alias vfio_pci:v000015B3d0000101Esv*sd*bc*sc*i* mlx5_vfio_pci\n"

/* expected: the variant driver; NULL: vfio-pci. */
static void assert_variant(Fixture *f, const char *aliases, const char *expected) {
        PciDevice vf = { .vendor = 0x15b3, .device = 0x101e, .class = 0x020700 };
        const char *driver;

        tree_file(f->root, ALIASES, aliases);
        scan(f);
        driver = inventory_variant_driver(f->inv, &vf);
        assert_true(streq_ptr(driver, expected));
        vf.device++;
        assert_null(inventory_variant_driver(f->inv, &vf));
}

#define GRACE "alias vfio_pci:v000010DEd00002342sv*sd*bc*sc*i* nvgrace_gpu_vfio_pci\n"

/* A variant driver counts even if it is not loaded: without it, the guest gets the GPU without its memory. */
TEST_WITH(test_coherent, setup, teardown) {
        PciDevice gpu = { .vendor = 0x10de, .device = 0x2342, .class = 0x030200, .numa_node = -1 };
        _cleanup_free_ char *text = NULL, *none = NULL;
        const char *remedy;
        Fixture *f = *state;

        tree_file(f->root, "proc/sys/kernel/osrelease", "6.1.0-x");
        tree_file(f->root, ALIASES, GRACE);
        scan(f);
        assert_true(inventory_is_coherent(f->inv, &gpu));
        assert_null(inventory_variant_driver(f->inv, &gpu));
        assert_int_equal(inventory_explain_lost_memory(f->inv, &gpu, "vfio-pci", &text, &remedy), 0);
        assert_non_null(strstr(text, COHERENT_DRIVER));
        assert_non_null(strstr(remedy, "modprobe@" COHERENT_DRIVER));
        tree_dir(f->root, "sys/bus/pci/drivers/nvgrace-gpu-vfio-pci");
        scan(f);
        assert_string_equal(inventory_variant_driver(f->inv, &gpu), "nvgrace-gpu-vfio-pci");
        assert_int_equal(inventory_explain_lost_memory(f->inv, &gpu, "nvgrace-gpu-vfio-pci", &none, &remedy), 0);
        assert_null(none);
        gpu.device++;
        assert_false(inventory_is_coherent(f->inv, &gpu));
}

TEST_WITH(test_variants, setup, teardown) {
        static const char *const no_names[] = { "", ".", "..", "b-vfio-pci/.", "b_vfio_pci more" };
        Fixture *f = *state;

        assert_variant(f, MLX5, NULL); /* the kernel's version is unknown */
        tree_file(f->root, "proc/sys/kernel/osrelease", "6.1.0-x");
        assert_variant(f, MLX5, NULL); /* not loaded */
        tree_dir(f->root, "sys/bus/pci/drivers/mlx5_vfio_pci");
        tree_dir(f->root, "sys/bus/pci/drivers/b-vfio-pci");
        tree_dir(f->root, "sys/bus/pci/drivers/vfio-pci");
        assert_variant(f, MLX5, "mlx5_vfio_pci");
        assert_variant(f, "alias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci\n", NULL);
        assert_variant(f, "alias pci:v000015B3d0000101Esv*sd*bc*sc*i* mlx5_vfio_pci\n", NULL);
        assert_variant(f, "# alias vfio_pci:v*d*sv*sd*bc*sc*i* mlx5_vfio_pci\n", NULL);
        /* The most specific alias counts, in any line. The driver may have '-' where its module has '_'. */
        assert_variant(f, MLX5 "alias vfio_pci:v000015B3d0000101Esv*sd*bc02sc*i* b_vfio_pci\n", "b-vfio-pci");
        assert_variant(f, "alias vfio_pci:v000015B3d0000101Esv*sd*bc02sc*i* b_vfio_pci\n" MLX5, "b-vfio-pci");
        assert_variant(f, "alias vfio_pci:v000015B3\nalias vfio_pci: \nalias vfio_pci:v* ../x\n" MLX5, "mlx5_vfio_pci");
        for (size_t i = 0; i < ELEMENTSOF(no_names); i++) {
                char line[64];

                (void) snprintf(line, sizeof(line), "alias vfio_pci:v000015B3d0000101Esv* %s\n", no_names[i]);
                assert_variant(f, line, NULL);
        }
        tree_file(f->root, "proc/sys/kernel/osrelease", "../modules/6.1.0-x");
        assert_variant(f, MLX5, NULL);
}

TEST_WITH(test_vfio_cdev, setup, teardown) {
        Fixture *f = *state;

        tree_dir(f->root, "sys/devices/" NIC "/vfio-dev/vfio0");
        assert_true(scan_nic(f)->vfio && !*scan_nic(f)->vfio_cdev);
        tree_file(f->root, "sys/devices/" NIC "/vfio-dev/vfio0/dev", "511:0");
        assert_string_equal(scan_nic(f)->vfio_cdev, "vfio0");
}
