/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Domain documents without a template. */

#include "unit.h"

#include "domxml-fixture.h"
#include "guest/domain-facts.h"
#include "ledger/ledger.h"

TEST(test_one_node) {
        _cleanup_case_ Case c = one_node("vm7");

        assert_golden(&c, NULL, "domxml-one-node.xml");
}

TEST(test_two_nodes) {
        _cleanup_case_ Case c = case_new("vm8", 2, (int[]) { 0, 1 }, false);

        add_gpu(&c, "0000:02:00.0", 0, 8 * GIB, "gpu0");
        add_gpu(&c, "0000:82:00.0", 1, 8 * GIB, "gpu1");
        add_vf(&c, "0000:03:00.1", "0000:03:00.0", 0, "ib-vf0");
        add_vf(&c, "0000:83:00.1", "0000:83:00.0", 1, "ib-vf1");
        pin(&c, "2-7,18-23", 64 * GIB, 0);
        assert_golden(&c, NULL, "domxml-two-nodes.xml");
}

/* Two root complexes of node 0, one with a switch, and one of node 1: as many expanders, one of them with a switch. */
static Case mirrored(const char *name) {
        Case c = case_new(name, 2, (int[]) { 0, 1 }, false);

        add_gpu(&c, "0000:13:00.0", 0, 128 * GIB, "gpu0");
        take_path(&c, "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0");
        add_gpu(&c, "0000:82:00.0", 1, 128 * GIB, "gpu1");
        take_path(&c, "pci0000:80/0000:80:01.0/0000:82:00.0");
        add_vf(&c, "0000:14:00.1", "0000:14:00.0", 0, "ib-vf0");
        take_path(&c, "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.1");
        add_vf(&c, "0000:23:00.1", "0000:23:00.0", 0, "ib-vf1");
        take_path(&c, "pci0000:20/0000:20:01.0/0000:23:00.1");
        c.a->topology = GUEST_TOPOLOGY_MIRROR;
        c.a->spare_ports = 1;
        pin(&c, "2-7,18-23", 64 * GIB, 0);
        return c;
}

TEST(test_mirror) {
        _cleanup_case_ Case c = mirrored("vm30");

        assert_golden(&c, NULL, "domxml-mirror.xml");
}

/* The NCCL topology: no XML declaration, one root, firmware's bus numbers, and the known links of the host. */
TEST(test_nccl) {
        _cleanup_case_ Case c = mirrored("vm31");
        _cleanup_free_ char *text = NULL, *bare = NULL;

        assert_int_equal(domxml_nccl_topology(c.inv, c.config, c.a, NULL, &text, NULL), VERDICT_NONE);
        assert_int_equal(strncmp(text, "<system version=\"1\">", 20), 0);
        assert_has(text, "<cpu numaid=\"0\" affinity=\"0000003f\" arch=\"x86_64\">");
        assert_has(text, "<cpu numaid=\"1\" affinity=\"00000fc0\" arch=\"x86_64\">");
        assert_has(text, "class=\"0x060400\">\n      <pci busid=");
        assert_has_not(text, "link_speed"); /* unknown */
        for (size_t i = 0; i < c.inv->n_devices; i++) {
                c.inv->devices[i].link_speed = i == 0 ? 2500 : 32000;
                c.inv->devices[i].link_width = 16;
        }
        assert_int_equal(domxml_nccl_topology(c.inv, c.config, c.a, NULL, &bare, NULL), VERDICT_NONE);
        assert_has(bare, "class=\"0x030200\" link_speed=\"2.5 GT/s PCIe\" link_width=\"16\"/>");
        assert_has(bare, "class=\"0x030200\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"/>");

        c.a->n_pins = 0;
        assert_int_equal(domxml_nccl_topology(c.inv, c.config, c.a, NULL, &bare, NULL), VERDICT_INVALID_REQUEST);
}

/* For people who read the domain. libvirt keeps the contents of metadata. */
TEST(test_vf_attributes) {
        _cleanup_case_ Case c = case_new("vm20", 1, (int[]) { 0 }, false);
        VfAttributes *v;

        add_gpu(&c, "0000:02:00.0", 0, 8 * GIB, "gpu0");
        add_vf(&c, "0000:03:00.1", "0000:03:00.0", 0, "ib-vf0");
        v = &c.a->devices[1].attributes;
        vf_attributes_put(v, VF_NODE_GUID, 0x0200000000000008);
        vf_attributes_put(v, VF_PORT_GUID, 0x0200000000000009);
        vf_attributes_put(v, VF_LINK, VF_LINK_AUTO);
        add_vf(&c, "0000:03:00.2", "0000:03:00.0", 0, "eth-vf0");
        v = &c.a->devices[2].attributes;
        vf_attributes_put(v, VF_MAC, 0x020000000001);
        vf_attributes_put(v, VF_VLAN, 100);
        vf_attributes_put(v, VF_SPOOF_CHECK, false);
        pin(&c, "2-5", 8 * GIB, 0);
        assert_golden(&c, NULL, "domxml-vf-attributes.xml");
}

TEST(test_multifunction) {
        _cleanup_case_ Case c = case_new("vm9", 1, (int[]) { 0 }, false);

        add_card_of_group(&c);
        pin(&c, "4-7", 8 * GIB, 0);
        assert_golden(&c, NULL, "domxml-multifunction.xml");
}

TEST(test_hugepages_1g) {
        _cleanup_case_ Case c = case_new("vm10", 2, (int[]) { 0, 1 }, false);

        add_gpu(&c, "0000:82:00.0", 1, 0, "gpu0");
        pin(&c, "18-25", 20 * GIB, GIB);
        assert_golden(&c, NULL, "domxml-hugepages-1g.xml");
}

/* Host nodes 0, 4 and 5 are guest cells 0, 1 and 2. A device of node 4 is behind the expander of cell 1. */
TEST(test_F1_sparse_nodes) {
        _cleanup_case_ Case c = case_new("vm11", 3, (int[]) { 0, 4, 5 }, false);

        add_gpu(&c, "0000:82:00.0", 4, 0, "gpu0");
        add_gpu(&c, "0000:c2:00.0", -1, 0, "gpu1");
        pin(&c, "2-3,18-19,34", 66ULL << 20, 2ULL << 20);
        assert_golden(&c, NULL, "domxml-sparse-nodes.xml");
}

TEST(test_large_bars) {
        _cleanup_case_ Case c = case_new("vm12", 1, (int[]) { 0 }, false);

        for (unsigned i = 0; i < 8; i++) {
                char address[PCI_ADDRESS_STRING_MAX], slot[8];

                (void) snprintf(slot, sizeof(slot), "gpu%u", i);
                add_gpu(&c, pci_address_format((PciAddress) { .bus = (uint8_t) (0x10 + i) }, address), 0, 128 * GIB,
                        slot);
        }
        pin(&c, "0-15", 512 * GIB, GIB);
        assert_golden(&c, NULL, "domxml-large-bars.xml");
}

/* UEFI firmware gets a hint for a window larger than its own, unless the template has one. */
TEST(test_firmware_hint) {
        _cleanup_case_ Case c = case_new("vm32", 1, (int[]) { 0 }, false);
        static const char hint[] = "<qemu:arg value=\"name=opt/ovmf/X-PciMmio64Mb,string=131072\"/>";
        _cleanup_free_ char *bios = NULL, *told = NULL, *other = NULL;

        add_gpu(&c, "0000:82:00.0", 0, 64 * GIB, "gpu0");
        pin(&c, "0-3", 8 * GIB, 0);
        c.inv->phys_bits = 39;
        assert_golden(&c, NULL, "domxml-firmware-hint.xml");
        bios = make(&c, "<domain type='kvm'/>");
        assert_has_not(bios, "X-PciMmio64Mb");
        told = make(&c, "<domain type='kvm' xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'><os firmware='efi'/>"
                        "<q:commandline><q:arg value='-fw_cfg'/><q:arg "
                        "value='name=opt/ovmf/X-PciMmio64Mb,string=7'/></q:commandline></domain>");
        assert_has_not(told, "131072");
        other = make(&c, "<domain type='kvm' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><os "
                         "firmware='efi'/><qemu:commandline><qemu:arg value='-d'/></qemu:commandline></domain>");
        assert_has(other, hint);
        c.inv->phys_bits = 46;
        _cleanup_free_ char *plain = make(&c, NULL);
        assert_has_not(plain, "X-PciMmio64Mb");
}

static Case aarch64_node(const char *name) {
        Case c = case_new(name, 2, (int[]) { 0, 1 }, false);

        strcpy(c.inv->architecture, ARCHITECTURE_AARCH64);
        c.inv->phys_bits = 39;
        add_gpu(&c, "0008:01:00.0", 0, 128 * GIB, "gpu0");
        add_gpu(&c, "0018:01:00.0", 1, 128 * GIB, "gpu1");
        return c;
}

TEST(test_aarch64) {
        _cleanup_case_ Case c = aarch64_node("vm40");
        _cleanup_free_ char *nccl = NULL;

        for (size_t i = 0; i < c.inv->n_cpus; i++)
                c.inv->cpus[i].die = c.inv->cpus[i].id / 4;
        pin(&c, "2-9,18-25", 64 * GIB, 0);
        assert_golden(&c, NULL, "domxml-aarch64.xml");
        assert_int_equal(domxml_nccl_topology(c.inv, c.config, c.a, NULL, &nccl, NULL), VERDICT_NONE);
        assert_has(nccl, "arch=\"arm64\"");
}

TEST(test_aarch64_template) {
        _cleanup_case_ Case c = aarch64_node("vm41");
        _cleanup_free_ char *plain = NULL;

        pin(&c, "2-9", 32 * GIB, 0);
        assert_golden(&c,
                      "<domain type='kvm'><os firmware='efi'><type arch='aarch64' machine='virt-7.2'>hvm</type></os>"
                      "<features><acpi/><gic version='host'/></features>"
                      "<devices/></domain>",
                      "domxml-aarch64-template.xml");
        plain = make(&c, "<domain type='kvm'/>");
        assert_has(plain, "<type arch=\"aarch64\" machine=\"virt\">hvm</type>");
        assert_has(plain, "<gic version=\"3\"/>");
        assert_refused(&c, "<domain type='kvm'><os><type arch='x86_64'>hvm</type></os></domain>",
                       VERDICT_INVALID_TEMPLATE, "aarch64");
        assert_refused(&c, "<domain type='kvm'><os><type machine='pc'>hvm</type></os></domain>",
                       VERDICT_INVALID_TEMPLATE, "virt");
}

/* 'virt' has a window of 512 GiB. Newer QEMU can enlarge it, newer libvirt has an element for that. */
TEST(test_aarch64_window) {
        static const struct {
                uint64_t bar;
                unsigned libvirt, qemu;
                const char *window; /* NULL: none, but a warning if warned */
                bool warned;
        } cases[] = {
                { 256 * GIB, 12008000, 11000000, NULL, false },
                { 256 * GIB, 9000000, 7002000, NULL, false },
                { 512 * GIB, 11003000, 10000000, "<qemu:arg value=\"highmem-mmio-size=2048G\"/>", false },
                { 512 * GIB, 12008000, 9002000, NULL, true },
                { 512 * GIB, 9000000, 7002000, NULL, true },
                { 512 * GIB, 0, 0, NULL, true },
                { 512 * GIB, 12008000, 10000000, "<pcihole64 unit=\"GiB\">2048</pcihole64>", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_case_ Case c = case_new("vm43", 2, (int[]) { 0, 1 }, false);
                _cleanup_free_ char *text = NULL;

                strcpy(c.inv->architecture, ARCHITECTURE_AARCH64);
                c.inv->phys_bits = 48;
                c.inv->libvirt.known = cases[i].libvirt > 0;
                c.inv->libvirt.libvirt = cases[i].libvirt;
                c.inv->libvirt.qemu = cases[i].qemu;
                add_gpu(&c, "0008:01:00.0", 0, cases[i].bar, "gpu0");
                add_gpu(&c, "0018:01:00.0", 1, cases[i].bar, "gpu1");
                pin(&c, "2-9", 32 * GIB, 0);
                text = make(&c, NULL);
                if (cases[i].window)
                        assert_has(text, cases[i].window);
                else
                        assert_has_not(text, "pcihole64");
                assert_int_equal(strstr(text, "<passthroughd:warning>") != NULL, cases[i].warned);
        }
}

/* GB200: two GPUs below each of two CPUs, on nodes of their own, and a NIC. */
static Case grace_node(const char *name, unsigned libvirt, unsigned qemu, const char *capabilities) {
        static const char *const gpus[] = { "0008:06:00.0", "0009:06:00.0", "0018:06:00.0", "0019:06:00.0" };
        Case c = case_new(name, 6, (int[]) { 0, 1, 2, 10, 18, 26 }, false);

        strcpy(c.inv->architecture, ARCHITECTURE_AARCH64);
        c.inv->kernel = 6017;
        if (libvirt > 0)
                c.inv->libvirt = domain_facts_features(libvirt, qemu, capabilities);
        c.inv->n_cpus = 32;
        for (size_t i = 0; i < ELEMENTSOF(gpus); i++) {
                _cleanup_free_ char *slot = string_format("gpu%zu", i), *path = NULL;
                PciDevice *dev = add_fact(&c, gpus[i], 2 + 8 * (int) i, CLASS_3D);

                dev->vendor = 0x10de;
                dev->bar_size[2] = 256 * GIB;
                take(&c, gpus[i], DEVICE_ROLE_ASSIGNED, slot, "gpu")->numa_node = i / 2;
                path = string_format("pci%.5s00/%.5s00:00.0/%s", gpus[i], gpus[i], gpus[i]);
                take_path(&c, path);
                assert_int_equal(string_copy(&c.a->devices[i].vfio_driver, COHERENT_DRIVER), 0);
        }
        assert_int_equal(inventory_add_variant(c.inv, "v000010DE*", COHERENT_DRIVER, true), 0);
        c.a->topology = GUEST_TOPOLOGY_MIRROR;
        pin(&c, "2-5,18-21", 16 * GIB, 0);
        return c;
}

#define LIBVIRT_12    12008000U, 11000000U, NULL
#define SMMU(more)    "<iommu model='smmuv3'><driver " more "/></iommu>"
#define SMMU_ON(more) "<domain type='kvm'><devices>" SMMU(more) "</devices></domain>"

/* Each GPU has memory cells after the others, up to the maximum of the guest's kernel. */
TEST(test_memory_cells) {
        _cleanup_case_ Case c = grace_node("vm50", LIBVIRT_12), few = grace_node("vm51", LIBVIRT_12);
        _cleanup_free_ char *text = NULL, *none = NULL;

        assert_golden(&few, SMMU_ON("accel='on' cmdqv='on'"), "domxml-libvirt-12-grace.xml");
        c.config->guest_nodes = 64;
        text = make(&c, NULL);
        assert_has(text, "<acpi nodeset=\"2-9\"/>");
        assert_has(text, "<acpi nodeset=\"26-33\"/>");
        assert_has(text, "<cell id=\"33\" memory=\"0\" unit=\"KiB\">");
        assert_has_not(text, "<cell id=\"34\"");
        assert_has_not(text, "GuestNodes=");
        c.config->guest_nodes = 2;
        none = make(&c, NULL);
        assert_has_not(none, "nodeset=\"2");
        assert_has_not(none, "memory=\"0\"");
        assert_has(none, "0 of 8");
}

/* The document names what this kernel, libvirt and QEMU lack. */
TEST(test_grace_lacks) {
        static const struct {
                unsigned libvirt, qemu;
                const char *words, *golden;
        } cases[] = {
                { 0, 0, "unknown", NULL },
                { 9000000, 7002022, "libvirt 9.0 and QEMU 7.2", "domxml-grace.xml" },
                { 11003000, 10000013, "libvirt 11.3 and QEMU 10.0", "domxml-libvirt-11-grace.xml" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_case_ Case c = grace_node("vm52", cases[i].libvirt, cases[i].qemu, NULL);
                _cleanup_free_ char *text = make(&c, NULL), *lacks = NULL;

                if (cases[i].golden)
                        assert_golden(&c, NULL, cases[i].golden);

                assert_has_not(text, "nodeset=\"2");
                assert_has_not(text, "memory=\"0\"");
                assert_has(text, "libvirt 11.8");
                assert_has(text, cases[i].words);
                assert_int_equal(domxml_explain_lacks(c.inv, c.config, c.a, &lacks), 0);
                record("lacks", lacks);
        }
}

/* libvirt before 10.0 starts no guest with a device on a driver that VfioDriver= names, but one on vfio-pci. */
TEST(test_named_driver) {
        static const char *const drivers[] = { COHERENT_DRIVER, "vfio-pci" };

        for (unsigned i = 0; i < ELEMENTSOF(drivers); i++) {
                _cleanup_case_ Case c = grace_node("vm57", 9000000, 7002022, NULL);
                _cleanup_free_ char *lacks = NULL;

                for (size_t k = 0; k < c.a->n_devices; k++)
                        assert_int_equal(string_copy(&c.a->devices[k].vfio_driver, NULL), 0);
                assert_int_equal(string_copy(&c.a->vfio_driver, drivers[i]), 0);
                assert_int_equal(domxml_explain_lacks(c.inv, c.config, c.a, &lacks), 0);
                assert_int_equal(strstr(lacks, "starts no guest with 0008:06:00.0 on " COHERENT_DRIVER) != NULL,
                                 i == 0);
        }
}

/* A coherent GPU on vfio-pci: its own driver is not loaded, unknown to the kernel, or excluded by the configuration. */
TEST(test_lost_memory) {
        for (unsigned i = 0; i < 3; i++) {
                _cleanup_case_ Case c = grace_node("vm53", LIBVIRT_12);
                _cleanup_free_ char *text = NULL, *lacks = NULL;

                for (size_t k = 0; k < c.a->n_devices; k++)
                        assert_int_equal(string_copy(&c.a->devices[k].vfio_driver, NULL), 0);
                assert_int_equal(string_copy(&c.a->vfio_driver, "vfio-pci"), 0);
                c.inv->variants[0].loaded = i > 0;
                if (i == 2)
                        c.inv->n_variants = 0;
                text = make(&c, NULL);
                c.inv->n_variants = 1;
                assert_has(text, "without its memory");
                assert_has_not(text, "memory=\"0\"");
                if (i == 2)
                        c.inv->n_variants = 0;
                assert_int_equal(domxml_explain_lacks(c.inv, c.config, c.a, &lacks), 0);
                c.inv->n_variants = 1;
                record("lost memory", lacks);
                /* VfioDriver= may name that driver. */
                assert_int_equal(string_copy(&c.a->vfio_driver, COHERENT_DRIVER), 0);
                free(text);
                text = make(&c, NULL);
                assert_has_not(text, "without its memory");
                assert_has(text, "memory=\"0\"");
        }
}

/* VFIO devices cannot be behind an SMMU that QEMU emulates alone. */
TEST(test_smmu_refused) {
        static const struct {
                unsigned libvirt, qemu;
                const char *template, *words;
        } cases[] = {
                { 12008000, 11000000, "<domain type='kvm'><devices><iommu model='smmuv3'/></devices></domain>",
                  "alone" },
                { 12008000, 11000000, SMMU_ON("accel='off'"), "alone" },
                { 12006000, 11000000, SMMU_ON("accel='on'"), "12.7" },
                { 11003000, 10000000, SMMU_ON("accel='on'"), "12.7" },
                { 0, 0, SMMU_ON("accel='on'"), "not known" },
                { 11003000, 10000000, SMMU_ON("pciBus='1'"), "pciBus" },
                { 12008000, 11000000, SMMU_ON("accel='on' pciBus='1'"), "pciBus" },
                { 12008000, 11000000,
                  "<domain type='kvm'><devices>" SMMU("accel='on'") SMMU("accel='on' pciBus='0'") "</devices></domain>",
                  "pciBus" },
                { 12008000, 11000000,
                  "<domain type='kvm'><devices>" SMMU("accel='on'") SMMU("accel='on'") "</devices></domain>",
                  "more than one" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_case_ Case c = grace_node("vm54", cases[i].libvirt, cases[i].qemu, NULL);

                assert_refused(&c, cases[i].template, VERDICT_INVALID_TEMPLATE, cases[i].words);
        }
}

/* An SMMU of the host serves one host bridge, an SMMU of the guest one expander. */
TEST(test_smmu_places) {
        _cleanup_case_ Case c = grace_node("vm56", LIBVIRT_12);
        _cleanup_free_ char *flat = NULL, *one = NULL;

        c.a->topology = GUEST_TOPOLOGY_FLAT;
        flat = make(&c, NULL);
        assert_refused(&c, SMMU_ON("accel='on'"), VERDICT_INVALID_TEMPLATE, "host bridge");
        for (size_t i = 1; i < c.a->n_devices; i += 2)
                c.a->devices[i].role = DEVICE_ROLE_HELD;
        one = make(&c, SMMU_ON("accel='on'"));
        assert_has(one, "pciBus=\"3\"");
        c.a->devices[0].numa_node = -1;
        assert_refused(&c, SMMU_ON("accel='on'"), VERDICT_INVALID_TEMPLATE, "NUMA node");
        c.a->devices[2].numa_node = -1;
        assert_refused(&c, SMMU_ON("accel='on'"), VERDICT_INVALID_TEMPLATE, "NUMA node");
}

/* An accelerated SMMU needs iommufd even if auto would not use it. */
TEST(test_smmu_iommufd) {
        _cleanup_case_ Case c = grace_node("vm55", LIBVIRT_12);
        _cleanup_free_ char *text = make(&c, SMMU_ON("accel='on'")), *without = make(&c, NULL);

        assert_has(text, "iommufd=\"yes\"");
        assert_has_not(without, "iommufd=\"yes\"");
        c.config->iommufd = IOMMUFD_MODE_NO;
        assert_refused(&c, SMMU_ON("accel='on'"), VERDICT_INVALID_TEMPLATE, "iommufd");
}

/* AArch64 has no local APIC, and so no <iommu> for many vCPUs. */
TEST(test_aarch64_many_vcpus) {
        _cleanup_case_ Case c = aarch64_node("vm42");
        _cleanup_free_ char *text = NULL;

        c.inv->cpus = realloc(c.inv->cpus, 512 * sizeof(Cpu));
        assert_non_null(c.inv->cpus);
        for (; c.inv->n_cpus < 512; c.inv->n_cpus++)
                c.inv->cpus[c.inv->n_cpus] =
                        (Cpu) { .id = (unsigned) c.inv->n_cpus, .node = 1, .core = (unsigned) c.inv->n_cpus };
        pin(&c, "0-299", 64 * GIB, 0);
        text = make(&c, NULL);
        assert_has_not(text, "<iommu");
        assert_has_not(text, "ioapic");
}

TEST(test_other_architecture) {
        _cleanup_case_ Case c = aarch64_node("vm43");

        pin(&c, "2-9", 32 * GIB, 0);
        strcpy(c.inv->architecture, "ppc64le");
        assert_refused(&c, NULL, VERDICT_NOT_SUPPORTED, "ppc64le");
}

TEST(test_no_devices) {
        _cleanup_case_ Case c = case_new("vm13", 1, (int[]) { 0 }, false);

        pin(&c, "3", GIB / 2, 0);
        assert_golden(&c, NULL, "domxml-no-devices.xml");
}

TEST(test_allocation_refused) {
        _cleanup_case_ Case c = one_node("vm23");

        c.a->pins[3].vcpu = 9;
        assert_refused(&c, NULL, VERDICT_INVALID_REQUEST, "vCPU 3");
        c.a->pins[3].vcpu = 3;
        cpuset_remove(&c.a->cells[0].vcpus, 5);
        assert_refused(&c, NULL, VERDICT_INVALID_REQUEST, "vCPU 5");
        c.a->devices[0].address.domain = 0x10000;
        cpuset_add(&c.a->cells[0].vcpus, 5);
        assert_refused(&c, NULL, VERDICT_NOT_SUPPORTED, "10000:82:00.0");
        c.a->devices[0].address.domain = 0;
        for (unsigned i = 0; i < 256; i++)
                assert_non_null(allocation_add_device(c.a, (PciAddress) { .domain = 1, .bus = (uint8_t) i },
                                                      DEVICE_ROLE_ASSIGNED));
        assert_refused(&c, NULL, VERDICT_INVALID_REQUEST, "256 PCI buses");
        c.a->n_pins = 0;
        assert_refused(&c, NULL, VERDICT_INVALID_REQUEST, "devices only");
}

static Case sharing(const char *name) {
        Case c = one_node(name);
        Allocation *a = c.a;

        a->regions[0] = (Region) { .name = "mpi-node1", .size = 256ULL << 20, .node = 1 };
        a->regions[1] = (Region) { .name = "halo", .size = 32 * GIB, .page_size = 2ULL << 20, .node = 1 };
        a->n_regions = 2;
        return c;
}

/* BARs of shared memory count in the guest's window. */
TEST(test_shared_memory) {
        _cleanup_case_ Case c = sharing("vm30");
        _cleanup_(cleanup_allocation_free) Allocation *other = allocation_new("vm29");
        const Allocation *members[] = { other, c.a };
        SharedRegion shared = { .region = c.a->regions[0], .members = members, .n_members = 2 };

        c.a->shared[0] = &shared;
        assert_golden(&c, NULL, "domxml-shared-memory.xml");
}

static unsigned root_ports(const Case *c) {
        _cleanup_free_ char *text = make(c, NULL);
        unsigned n = 0;

        for (const char *at = text; (at = strstr(at, "pcie-root-port")); at++)
                n++;
        return n;
}

/* The bridge to conventional PCI takes none of the spare ports. */
TEST(test_shared_memory_takes_no_spare_port) {
        _cleanup_case_ Case c = sharing("vm34");
        unsigned with, without;

        c.a->spare_ports = 1;
        with = root_ports(&c);
        c.a->n_regions = 0;
        without = root_ports(&c);
        assert_int_equal(with, without + 1);
}

TEST(test_shared_memory_with_a_server) {
        _cleanup_case_ Case c = sharing("vm31");

        assert_int_equal(string_copy(&c.config->shared_memory_server, "/run/ivshmem/%n.sock"), 0);
        assert_golden(&c, NULL, "domxml-shared-memory-server.xml");
}

TEST(test_shared_memory_is_not_the_templates) {
        _cleanup_case_ Case c = sharing("vm32");
        _cleanup_free_ char *text = NULL;

        assert_refused(&c, "<domain type='kvm'><devices><shmem name='passthroughd-other'/></devices></domain>",
                       VERDICT_INVALID_TEMPLATE, "shared memory of allocations");
        text = make(&c, "<domain type='kvm'><devices><shmem name='looking-glass'><model type='ivshmem-plain'/><size "
                        "unit='M'>32</size></shmem></devices></domain>");
        assert_has(text, "looking-glass");
        assert_has(text, "passthroughd-halo");
}

/* The addresses in JSON are those of the document. */
TEST(test_guest_addresses) {
        _cleanup_case_ Case c = one_node("vm24");
        _cleanup_free_ GuestAddress *addresses = NULL;
        _cleanup_free_ char *text = make(&c, NULL);
        size_t n = 0;

        assert_int_equal(domxml_guest_addresses(c.inv, c.config, c.a, &addresses, &n), 0);
        assert_int_equal(n, 2);
        for (size_t i = 0; i < n; i++) {
                char part[128];

                assert_true(pci_address_equal(addresses[i].host, c.a->devices[i].address));
                (void) snprintf(part, sizeof(part), "address=\"%s\" guest=\"%s\"", PCI_ADDRESS_STR(addresses[i].host),
                                PCI_ADDRESS_STR(addresses[i].guest));
                assert_has(text, part);
        }
        assert_has_not(text, "multifunction");
}

TEST(test_sentences) {
        assert_sentences("documents.txt");
}

TEST_GROUP(NULL, teardown)
