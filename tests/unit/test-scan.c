/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>

#include "unit.h"

#include "scanfixture.h"

TEST_WITH(test_plain_device, setup, teardown) {
        Fixture *f = *state;
        const PciDevice *nic;

        nic_has(f, "subsystem_vendor", "0x15d9");
        nic_has(f, "subsystem_device", "0x0611");
        nic_has(f, "driver_override", "(null)");
        nic_has(f, "power_state", "D0");
        nic_has(f, "reset_method", "flr bus");
        nic_has(f, "resource",
                "0x00000000dfb00000 0x00000000dfb1ffff 0x0000000000040200\n"
                "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                "0x0000000000000000 0x000000000000001f 0x0000000000040101");
        tree_attribute_link(f->root, "0000:01:00.0", "driver", "../../../../bus/pci/drivers/igb");
        nic = scan_nic(f);

        assert_null(nic->fault);
        assert_int_equal(nic->vendor, 0x8086);
        assert_int_equal(nic->device, 0x10c9);
        assert_int_equal(nic->subsystem_vendor, 0x15d9);
        assert_int_equal(nic->subsystem_device, 0x0611);
        assert_int_equal(nic->class, 0x020000);
        assert_string_equal(nic->path, NIC);
        assert_string_equal(nic->driver, "igb");
        assert_true(nic->has_override);
        assert_null(nic->driver_override);
        assert_false(nic->vfio);
        assert_string_equal(nic->reset_methods, "flr bus");
        assert_string_equal(nic->power_state, "D0");
        assert_int_equal(nic->bar_size[0], 0x20000);
        assert_int_equal(nic->bar_size[1], 0);
        assert_int_equal(nic->bar_size[2], 0x20);
        assert_int_equal(nic->parent, 0);
        assert_int_equal(nic->acs, PCI_ACS_CLEAN);
        assert_int_equal(nic->type, PCI_TYPE_DEVICE);
        assert_true(find(f, "0000:00:01.0")->is_bridge);
        if (access("/usr/share/misc/pci.ids", R_OK) == 0)
                assert_string_equal(nic->name, "Intel Corporation 82576 Gigabit Network Connection");
}

TEST_WITH(test_power, setup, teardown) {
        static const struct {
                const char *control, *d3cold; /* NULL: no such file */
                bool runtime_pm, allowed;
        } cases[] = {
                { NULL, NULL, false, false }, { "on", "1", false, true }, { "auto", "1", true, true },
                { "auto", "0", true, false }, { "", "x", false, false },
        };
        Fixture *f = *state;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const PciDevice *nic;

                if (cases[i].control)
                        nic_has(f, "power/control", cases[i].control);
                if (cases[i].d3cold)
                        nic_has(f, "d3cold_allowed", cases[i].d3cold);
                nic = scan_nic(f);
                assert_null(nic->fault);
                assert_true(nic->runtime_pm == cases[i].runtime_pm && nic->d3cold == cases[i].allowed);
        }
        tree_attribute_link(f->root, "0000:01:00.0", "physfn", "../0000:00:01.0");
        nic_has(f, "power/control", "auto");
        assert_false(scan_nic(f)->runtime_pm);
}

TEST_WITH(test_unknown_ids, setup, teardown) {
        Fixture *f = *state;

        nic_has(f, "device", "0xfffe");
        if (access("/usr/share/misc/pci.ids", R_OK) == 0)
                assert_string_equal(scan_nic(f)->name, "Intel Corporation Ethernet controller [8086:fffe]");
}

TEST_WITH(test_E4_numa_node, setup, teardown) {
        static const struct {
                const char *text;
                int node;
                bool fault;
        } cases[] = {
                { "1", 1, false }, { "0", 0, false },     { "-1", -1, false }, { "invalid content", -1, true },
                { "", -1, true },  { "99999", -1, true }, { "7", -1, false }, /* the machine does not list this node */
        };
        Fixture *f = *state;
        const PciDevice *nic;

        add_node(f);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                nic_has(f, "numa_node", cases[i].text);
                nic = scan_nic(f);
                assert_int_equal(nic->numa_node, cases[i].node);
                assert_int_equal(!!nic->fault, cases[i].fault);
        }
        /* A directory, which even root cannot read as a file. */
        tree_unlink(f->root, "sys/devices/" NIC "/numa_node");
        tree_dir(f->root, "sys/devices/" NIC "/numa_node");
        nic = scan_nic(f);
        assert_int_equal(nic->numa_node, -1);
        assert_fault(nic, "numa_node");
}

TEST_WITH(test_numa_node_of_the_bridge, setup, teardown) {
        Fixture *f = *state;

        add_node(f);
        nic_has(f, "numa_node", "-1");
        tree_attribute(f->root, "0000:00:01.0", "numa_node", "0");
        assert_int_equal(scan_nic(f)->numa_node, 0);
        nic_has(f, "numa_node", "junk"); /* damaged, unlike unknown to firmware */
        assert_int_equal(scan_nic(f)->numa_node, -1);
}

TEST_WITH(test_numa_node_of_the_machine, setup, teardown) {
        Fixture *f = *state;

        nic_has(f, "numa_node", "-1");
        assert_int_equal(scan_nic(f)->numa_node, 0);
        nic_has(f, "numa_node", "junk");
        assert_int_equal(scan_nic(f)->numa_node, 0);
        tree_unlink(f->root, "sys/devices/" NIC "/numa_node"); /* as on a kernel without NUMA */
        assert_int_equal(scan_nic(f)->numa_node, 0);
        add_node(f);
        nic_has(f, "numa_node", "-1");
        assert_int_equal(scan_nic(f)->numa_node, -1);
}

/* As text, 10000 sorts before 2000. */
TEST_WITH(test_C12_32bit_domain, setup, teardown) {
        static const char *const ascending[] = { "2000:00:02.0", "10000:00:02.0", "10000:01:00.0" };
        Fixture *f = *state;

        tree_device(f->root, "pci10000:00/10000:00:02.0", "0x8086", "0x2032", "0x060400");
        tree_device(f->root, "pci10000:00/10000:00:02.0/10000:01:00.0", "0x8086", "0x0a54", "0x010802");
        tree_device(f->root, "pci2000:00/2000:00:02.0", "0x8086", "0x2032", "0x060400");
        scan(f);
        assert_int_equal(f->inv->n_devices, 5);
        for (size_t i = 0; i < ELEMENTSOF(ascending); i++)
                assert_string_equal(PCI_ADDRESS_STR(f->inv->devices[2 + i].address), ascending[i]);
        assert_ptr_equal(&f->inv->devices[find(f, "10000:01:00.0")->parent], find(f, "10000:00:02.0"));
}

TEST_WITH(test_D8_iommu_group, setup, teardown) {
        Fixture *f = *state;
        const PciDevice *nic;

        nic = scan_nic(f);
        assert_int_equal(nic->iommu_group, -1);
        assert_null(nic->fault);
        assert_false(f->inv->iommu);
        assert_note(f->inv, "IOMMU", true);

        tree_dir(f->root, "sys/devices/" NIC "/iommu_group");
        nic = scan_nic(f);
        assert_int_equal(nic->iommu_group, -1);
        assert_fault(nic, "iommu_group");

        tree_unlink(f->root, "sys/devices/" NIC "/iommu_group");
        tree_attribute_link(f->root, "0000:01:00.0", "iommu_group", "../../../../kernel/iommu_groups/twelve");
        nic = scan_nic(f);
        assert_int_equal(nic->iommu_group, -1);
        assert_fault(nic, "twelve");

        tree_attribute_link(f->root, "0000:01:00.0", "iommu_group", "../../../../kernel/iommu_groups/12");
        nic = scan_nic(f);
        assert_int_equal(nic->iommu_group, 12);
        assert_null(nic->fault);
        assert_true(f->inv->iommu);
        assert_note(f->inv, "IOMMU", false);
}

TEST_WITH(test_D10_group_membership, setup, teardown) {
        Fixture *f = *state;
        const IommuGroup *group;

        tree_device(f->root, "pci0000:00/0000:00:01.0/0000:01:00.2", "0x15b3", "0x1016", "0x020000");
        tree_attribute_link(f->root, "0000:01:00.2", "physfn", "../0000:01:00.0");
        tree_attribute_link(f->root, "0000:01:00.2", "iommu_group", "../../../../kernel/iommu_groups/1");
        tree_attribute_link(f->root, "0000:01:00.0", "iommu_group", "../../../../kernel/iommu_groups/1");
        tree_attribute_link(f->root, "0000:00:01.0", "iommu_group", "../../../kernel/iommu_groups/1");
        scan(f);
        group = inventory_find_group(f->inv, 1);
        assert_non_null(group);
        assert_int_equal(group->n_members, 3);
        assert_int_equal(find(f, "0000:01:00.0")->n_vfs, 1);
}

TEST_WITH(test_direct_regions, setup, teardown) {
        Fixture *f = *state;

        tree_attribute_link(f->root, "0000:01:00.0", "iommu_group", "../../../../kernel/iommu_groups/12");
        tree_file(f->root, "sys/kernel/iommu_groups/12/reserved_regions",
                  "0x000000008b800000 0x000000008b9fffff direct-relaxable\n0x00000000fee00000 0x00000000feefffff msi");
        scan(f);
        assert_false(inventory_find_group(f->inv, 12)->direct);
        tree_file(f->root, "sys/kernel/iommu_groups/12/reserved_regions",
                  "0x00000000fee00000 0x00000000feefffff msi\n0x000000008b800000 0x000000008b9fffff direct");
        scan(f);
        assert_true(inventory_find_group(f->inv, 12)->direct);
}

TEST_WITH(test_directory_with_only_class, setup, teardown) {
        Fixture *f = *state;
        const PciDevice *nic;

        add_node(f);
        tree_unlink(f->root, "sys/devices/" NIC "/vendor");
        tree_unlink(f->root, "sys/devices/" NIC "/device");
        nic = scan_nic(f);
        assert_int_equal(nic->vendor, 0);
        assert_int_equal(nic->class, 0x020000);
        assert_fault(nic, "vendor");
        assert_fault(nic, "device");
        assert_int_equal(nic->numa_node, -1);
        assert_false(nic->has_override);
        assert_null(nic->name);
        tree_unlink(f->root, "sys/devices/" NIC "/class");
        assert_fault(scan_nic(f), "class");
}

/* A link on the bus whose device was removed meanwhile. */
TEST_WITH(test_vanished_device, setup, teardown) {
        Fixture *f = *state;

        tree_link(f->root, "sys/bus/pci/devices/0000:02:00.0", "../../../devices/pci0000:00/0000:02:00.0");
        scan(f);
        assert_int_equal(f->inv->n_devices, 2);
}

TEST_WITH(test_no_pci, setup, teardown) {
        Fixture *f = *state;
        _cleanup_free_ char *path = tree_path(f->root, "sys/bus"), *away = tree_path(f->root, "sys/away");

        assert_int_equal(rename(path, away), 0);
        scan(f);
        assert_int_equal(f->inv->n_devices, 0);
        assert_note(f->inv, "no PCI", true);
        assert_int_equal(f->inv->n_cpus, 2);
}

/* A FIFO: reading it would block for ever, as reading sriov_numvfs may. */
TEST_WITH(test_never_reads_numvfs, setup, teardown) {
        Fixture *f = *state;
        _cleanup_free_ char *path = tree_path(f->root, "sys/devices/" NIC "/sriov_numvfs");

        assert_int_equal(mkfifo(path, 0600), 0);
        (void) alarm(120);
        (void) scan_nic(f);
        (void) alarm(0);
}

/* driver_override may block while the kernel holds the device lock. */
TEST_WITH(test_around_a_busy_device, setup, teardown) {
        Fixture *f = *state;
        _cleanup_free_ char *path = tree_path(f->root, "sys/devices/" NIC "/driver_override");
        const PciAddress busy[] = { { .bus = 7 }, { .bus = 1 } };
        const PciDevice *nic;

        assert_int_equal(mkfifo(path, 0600), 0);
        (void) alarm(120);
        assert_int_equal(scan_inventory_except(f->fs, NULL, false, busy, ELEMENTSOF(busy), &f->inv), 0);
        (void) alarm(0);
        nic = find(f, "0000:01:00.0");
        assert_true(nic->has_override);
        assert_null(nic->driver_override);
        assert_null(nic->fault);
}

TEST_WITH(test_junk_everywhere, setup, teardown) {
        static const char *const attributes[] = {
                "vendor",
                "device",
                "class",
                "subsystem_vendor",
                "subsystem_device",
                "numa_node",
                "driver_override",
                "power_state",
                "reset_method",
                "resource",
                "boot_vga",
                "sriov_totalvfs",
                "sriov_vf_device",
                "config",
                "driver",
                "iommu_group",
                "physfn",
                "virtfn0",
                "virtfn99999999999999999999",
                "vfio-dev",
        };
        static const char *const junk[] = {
                "", "\n\n\n", "0x", "-", "99999999999999999999999", "0x1 0x0 0x0", "\x01\xff\xfe", "%s%n", "a b c"
        };
        Fixture *f = *state;

        for (size_t i = 0; i < ELEMENTSOF(junk); i++)
                for (size_t j = 0; j < ELEMENTSOF(attributes); j++) {
                        nic_has(f, attributes[j], junk[i]);
                        (void) scan_nic(f);
                }
        assert_fault(scan_nic(f), "vendor");
        assert_int_equal(f->inv->n_devices, 2);
}

TEST_WITH(test_too_long, setup, teardown) {
        _cleanup_free_ char *text = malloc(10001);
        Fixture *f = *state;

        assert_non_null(text);
        memset(text, '1', 10000);
        text[10000] = '\0';
        add_node(f);
        nic_has(f, "numa_node", text);
        assert_int_equal(scan_nic(f)->numa_node, -1);
}

/* Parameters of KVM, slots of cgroups, mappings of VFIO, and an IOMMU that translates. */
TEST_WITH(test_confidential, setup, teardown) {
        Fixture *f = *state;
        const ConfidentialHost *host;

        scan(f);
        host = &f->inv->confidential;
        assert_int_equal(host->parameters[CONFIDENTIAL_SNP], MODULE_PARAMETER_ABSENT);
        assert_int_equal(host->slots[CONFIDENTIAL_SNP], 0);
        assert_int_equal(host->dma_entries, 0);
        assert_false(host->passthrough);
        tree_file(f->root, "sys/module/kvm_amd/parameters/sev", "1");
        tree_file(f->root, "sys/module/kvm_amd/parameters/sev_snp", "N");
        tree_file(f->root, "sys/module/kvm_intel/parameters/tdx", "Y");
        tree_file(f->root, "sys/fs/cgroup/misc.capacity", "sev 410\nsev_es 99\ntdx 63\nother max\n");
        tree_file(f->root, "sys/module/vfio_iommu_type1/parameters/dma_entry_limit", "65535");
        tree_file(f->root, "proc/cmdline", "root=/dev/sda1 iommu=pt quiet");
        scan(f);
        host = &f->inv->confidential;
        assert_int_equal(host->parameters[CONFIDENTIAL_SEV], MODULE_PARAMETER_YES);
        assert_int_equal(host->parameters[CONFIDENTIAL_SNP], MODULE_PARAMETER_NO);
        assert_int_equal(host->parameters[CONFIDENTIAL_TDX], MODULE_PARAMETER_YES);
        assert_int_equal(host->slots[CONFIDENTIAL_SEV], 410);
        assert_int_equal(host->slots[CONFIDENTIAL_SNP], 99);
        assert_int_equal(host->slots[CONFIDENTIAL_TDX], 63);
        assert_int_equal(host->dma_entries, 65535);
        assert_true(host->passthrough);
        tree_file(f->root, "proc/cmdline", "iommu.passthrough=1");
        scan(f);
        assert_true(f->inv->confidential.passthrough);
        tree_file(f->root, "proc/cmdline", "iommu.passthrough=0");
        scan(f);
        assert_false(f->inv->confidential.passthrough);
}

TEST_WITH(test_notes, setup, teardown) {
        Fixture *f = *state;

        tree_file(f->root, "proc/cmdline", "root=/dev/sda1 quiet");
        tree_file(f->root, "sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "N");
        scan(f);
        assert_note(f->inv, "pcie_acs_override", false);
        assert_note(f->inv, "no-IOMMU", false);
        tree_file(f->root, "proc/cmdline", "root=/dev/sda1 pcie_acs_override=downstream,multifunction quiet");
        tree_file(f->root, "sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y");
        scan(f);
        assert_note(f->inv, "pcie_acs_override=downstream,multifunction", true);
        assert_note(f->inv, "no-IOMMU", true);
}

/* A17: a group of the no-IOMMU mode protects nothing. */
TEST_WITH(test_A17_noiommu_group, setup, teardown) {
        Fixture *f = *state;

        tree_attribute_link(f->root, "0000:00:01.0", "iommu_group", "../../../kernel/iommu_groups/1");
        tree_attribute_link(f->root, "0000:01:00.0", "iommu_group", "../../../../kernel/iommu_groups/12");
        tree_file(f->root, "sys/kernel/iommu_groups/12/name", "vfio-noiommu");
        tree_file(f->root, "sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y");
        assert_int_equal(scan_nic(f)->iommu_group, -1);
        assert_null(inventory_find_group(f->inv, 12));
        assert_non_null(inventory_find_group(f->inv, 1));
        assert_true(f->inv->iommu);
        assert_note(f->inv, "no-IOMMU mode are ignored (1)", true);
        tree_unlink(f->root, "sys/bus/pci/devices/0000:00:01.0/iommu_group");
        scan(f);
        assert_false(f->inv->iommu);
}

static PciDevice *writable(const Fixture *f, const PciDevice *dev) {
        return f->inv->devices + inventory_device_index(f->inv, dev);
}

/* The name of a vGPU type is read once, but again after it could not be read. */
TEST_WITH(test_vgpu_names, setup, teardown) {
        static const char type[] = "sys/devices/" NIC "/mdev_supported_types/nvidia-558";
        static const char *const names[] = { NULL, "GRID A100-8C", "another" };
        Fixture *f = *state;
        char path[256];
        PciDevice *gpu;

        (void) snprintf(path, sizeof(path), "%s/available_instances", type);
        tree_file(f->root, path, "2");
        (void) snprintf(path, sizeof(path), "%s/name", type);
        gpu = writable(f, scan_nic(f));
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                if (names[i])
                        tree_file(f->root, path, names[i]);
                assert_int_equal(scan_refresh(f->fs, gpu, false), 0);
                assert_string_equal(gpu->mdev_types,
                                    i == 0 ? "558 2 nvidia-558 : nvidia-558\n" : "558 2 nvidia-558 : GRID A100-8C\n");
        }
}

TEST_WITH(test_refresh, setup, teardown) {
        Fixture *f = *state;
        PciDevice *nic;

        nic_has(f, "driver_override", "(null)");
        tree_attribute_link(f->root, "0000:01:00.0", "driver", "../../../../bus/pci/drivers/igb");
        nic = writable(f, scan_nic(f));
        nic_has(f, "driver_override", "vfio-pci");
        tree_attribute_link(f->root, "0000:01:00.0", "driver", "../../../../bus/pci/drivers/vfio-pci");
        tree_dir(f->root, "sys/devices/" NIC "/vfio-dev");
        assert_int_equal(scan_refresh(f->fs, nic, false), 0);
        assert_string_equal(nic->driver, "vfio-pci");
        assert_string_equal(nic->driver_override, "vfio-pci");
        assert_true(nic->vfio);
        assert_int_equal(nic->iommu_group, -1);
        tree_attribute_link(f->root, "0000:01:00.0", "iommu_group", "../../../../kernel/iommu_groups/7");
        tree_attribute_link(f->root, "0000:01:00.0", "driver", "../../../../bus/pci/drivers/igb");
        assert_int_equal(scan_refresh(f->fs, nic, false), -ESTALE);
        assert_string_equal(nic->driver, "vfio-pci");
        assert_int_equal(nic->iommu_group, -1);
        tree_file(f->root, "sys/kernel/iommu_groups/7/name", "vfio-noiommu");
        assert_int_equal(scan_refresh(f->fs, nic, false), 0);
        tree_attribute_link(f->root, "0000:01:00.0", "driver", "../../../../bus/pci/drivers/vfio-pci");
        tree_attribute_link(f->root, "0000:01:00.0", "virtfn0", "../0000:01:10.0");
        assert_int_equal(scan_refresh(f->fs, nic, false), -ESTALE);
        nic = writable(f, scan_nic(f)); /* the virtfn link is dangling */
        assert_int_equal(nic->n_vfs, 0);
        assert_int_equal(scan_refresh(f->fs, nic, false), 0);
        tree_unlink(f->root, "sys/bus/pci/devices/0000:01:00.0");
        assert_int_equal(scan_refresh(f->fs, nic, false), -ENOENT);
        assert_string_equal(nic->driver, "vfio-pci");
}
