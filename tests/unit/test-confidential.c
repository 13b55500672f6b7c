/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The rules for confidential guests, each broken alone. tests/golden/confidential.txt has their sentences. */

#include "unit.h"

#include "domxml-fixture.h"
#include "guest/confidential.h"
#include "guest/domain-facts.h"

/* A host that permits the guest: with a device, libvirt 12.8 and QEMU 11.1. */
static ConfidentialFacts facts_of(Confidential type) {
        ConfidentialFacts f = {
                .type = type,
                .libvirt = domain_facts_features(12008000, 11001003, NULL),
                .x86 = true,
                .memory = 64 * GIB,
                .vcpus = 16,
                .n_cells = 1,
        };

        f.host.parameters[type] = MODULE_PARAMETER_YES;
        f.libvirt.security[type] = f.libvirt.firmware[type] = true;
        f.iommufd = (IommufdFacts) {
                .libvirt = f.libvirt, .kernel = 6019, .n_devices = 1, .confidential = confidential_is_private(type)
        };
        return f;
}

static void assert_remedy(const ConfidentialFacts *f, const char *about, const char *word, const char *remedy) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        assert_int_equal(confidential_check(f, &refusal), VERDICT_NOT_SUPPORTED);
        assert_has(refusal.message, word);
        assert_non_null(refusal.remedy);
        assert_has(refusal.remedy, remedy);
        record(about, refusal.message);
        record(about, refusal.remedy);
}

static void assert_broken(const ConfidentialFacts *f, const char *about, const char *word) {
        assert_remedy(f, about, word, "");
}

static void assert_kept(const ConfidentialFacts *f) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        if (confidential_check(f, &refusal) != VERDICT_NONE)
                fail_msg("%s: %s", confidential_to_string(f->type), refusal.message);
}

TEST(test_host) {
        for (Confidential c = CONFIDENTIAL_SEV; c <= CONFIDENTIAL_TDX; c++) {
                const ConfidentialFacts good = facts_of(c);
                ConfidentialFacts f = good;

                assert_kept(&f);
                f.xen = true;
                assert_broken(&f, "Xen", "needs KVM");
                f = good;
                f.x86 = false;
                assert_broken(&f, "aarch64", "needs KVM");
                f = good;
                f.host.parameters[c] = MODULE_PARAMETER_NO;
                assert_remedy(&f, "a parameter that is off", "parameter", "rescan");
                f.host.parameters[c] = MODULE_PARAMETER_ABSENT;
                assert_remedy(&f, "no parameter", "parameter", "rescan");
                f = good;
                f.libvirt.security[c] = false;
                assert_broken(&f, "libvirt without it", "libvirt does not list");
                f.libvirt.known = false;
                assert_kept(&f);
                f = good;
                f.host.slots[c] = 2;
                f.others = 1;
                assert_kept(&f);
                f.others = 2;
                assert_remedy(&f, "no slot", "keys for 2", "rescan");
        }
}

TEST(test_passthrough) {
        ConfidentialFacts f = facts_of(CONFIDENTIAL_SNP);

        f.host.passthrough = true;
        assert_kept(&f);
        f.host.parameters[CONFIDENTIAL_SNP] = MODULE_PARAMETER_NO;
        assert_broken(&f, "iommu=pt", "iommu=pt");
        f = facts_of(CONFIDENTIAL_TDX);
        f.host.passthrough = true;
        assert_kept(&f);
}

TEST(test_devices) {
        for (Confidential c = CONFIDENTIAL_SNP; c <= CONFIDENTIAL_TDX; c++) {
                ConfidentialFacts f = facts_of(c);

                f.libvirt.qemu = 10000013;
                assert_broken(&f, "QEMU 10.0", "QEMU 10.0");
                f.iommufd.n_devices = 0;
                assert_kept(&f);
                f = facts_of(c);
                f.iommufd.libvirt.libvirt = 11003000;
                f.iommufd.libvirt.iommufd = false;
                assert_remedy(&f, "no iommufd", "libvirt 12.1", "rescan");
                f.host.dma_entries = f.memory / 4096 + 32767;
                assert_broken(&f, "no iommufd, few mappings", "iommufd");
                f.host.dma_entries++;
                assert_kept(&f);
                f = facts_of(c);
                f.iommufd.mode = IOMMUFD_MODE_NO;
                assert_remedy(&f, "Iommufd=no", "turns it off", "Iommufd=auto");
                /* With an unknown libvirt, the document has iommufd. */
                f = facts_of(c);
                f.libvirt = f.iommufd.libvirt = (LibvirtFeatures) { 0 };
                assert_kept(&f);
                assert_int_equal(iommufd_choose(&f.iommufd), IOMMUFD_CONFIDENTIAL);
        }
        ConfidentialFacts sev = facts_of(CONFIDENTIAL_SEV);

        sev.libvirt.qemu = 7002000;
        sev.iommufd.libvirt.iommufd = false;
        assert_kept(&sev);
}

TEST(test_guest) {
        for (Confidential c = CONFIDENTIAL_SEV; c <= CONFIDENTIAL_TDX; c++) {
                ConfidentialFacts f = facts_of(c);

                f.page_size = GIB;
                if (c == CONFIDENTIAL_SEV)
                        assert_kept(&f);
                else
                        assert_broken(&f, "hugepages", "hugepages");
                f = facts_of(c);
                f.shares_memory = true;
                if (c == CONFIDENTIAL_SEV)
                        assert_kept(&f);
                else
                        assert_broken(&f, "shared memory", "share memory");
                f = facts_of(c);
                f.vcpus = 255;
                assert_kept(&f);
                f.vcpus = 256;
                assert_broken(&f, "256 vCPUs", "255");
                f = facts_of(c);
                f.has_vgpu = true;
                assert_broken(&f, "a vGPU", "vGPU");
        }
}

#define ON       CONFIDENTIAL_MODE_BIT(CONFIDENTIAL_MODE_ON)
#define OFF      CONFIDENTIAL_MODE_BIT(CONFIDENTIAL_MODE_OFF)
#define DEVTOOLS CONFIDENTIAL_MODE_BIT(CONFIDENTIAL_MODE_DEVTOOLS)
#define PPCIE    CONFIDENTIAL_MODE_BIT(CONFIDENTIAL_MODE_PROTECTED_PCIE)

TEST(test_gpus) {
        static const struct {
                const char *about;
                bool plain; /* the guest is not confidential */
                unsigned modes, n_gpus;
                bool hopper, lacks_gpu, lacks_switch;
                const char *word; /* a word of the refusal; NULL: no rule is broken */
        } cases[] = {
                { "no GPU", false, 0, 0, false, true, true, NULL },
                { "a GPU in mode off", false, OFF, 0, false, false, false, "in the clear" },
                { "one GPU in mode on", false, ON, 1, true, true, true, NULL },
                { "one in mode devtools", false, DEVTOOLS, 1, true, true, true, NULL },
                { "two modes", false, ON | DEVTOOLS, 2, false, false, false, "the same mode" },
                { "on and off", false, ON | OFF, 1, false, false, false, "in the clear" },
                { "two Hoppers", false, ON, 2, true, false, false, "one Hopper" },
                { "two of eight Blackwells", false, ON, 2, false, true, false, "one GPU in this mode, or all" },
                { "all Blackwells", false, ON, 8, false, false, true, NULL },
                { "a whole board", false, PPCIE, 8, true, false, false, NULL },
                { "a board without its switches", false, PPCIE, 8, true, false, true, "all NVSwitches" },
                { "seven GPUs of a board", false, PPCIE, 7, true, true, false, "all GPUs" },
                { "a plain guest", true, OFF, 0, false, true, true, NULL },
                { "a plain guest with a GPU in mode on", true, ON, 1, true, true, true,
                  "only in a confidential guest" },
                { "a plain guest with a board", true, PPCIE, 8, true, false, false, "only in a confidential guest" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                ConfidentialFacts f = facts_of(CONFIDENTIAL_SNP);

                if (cases[i].plain)
                        f = (ConfidentialFacts) { .vcpus = 4 };
                f.modes = cases[i].modes;
                f.n_gpus = cases[i].n_gpus;
                f.has_hopper = cases[i].hopper;
                f.lacks_gpu = cases[i].lacks_gpu;
                f.lacks_switch = cases[i].lacks_switch;
                if (cases[i].word)
                        assert_broken(&f, cases[i].about, cases[i].word);
                else
                        assert_kept(&f);
                /* An allocation of devices alone, for a guest of another program. */
                f.vcpus = 0;
                if (cases[i].plain)
                        assert_kept(&f);
        }
}

static void assert_notes(const ConfidentialFacts *f, size_t n, const char *word) {
        const char *notes[CONFIDENTIAL_NOTES_MAX];
        size_t found = confidential_notes(f, notes);
        bool has = false;

        for (size_t i = 0; i < found; i++) {
                record("a note", notes[i]);
                has |= strstr(notes[i], word) != NULL;
        }
        assert_int_equal(found, n);
        assert_true(has);
}

TEST(test_notes) {
        ConfidentialFacts f = facts_of(CONFIDENTIAL_SNP);

        assert_notes(&f, 4, "GPUDirect");
        f.n_cells = 2;
        assert_notes(&f, 5, "NUMA node");
        f.libvirt.qemu = 10001000;
        assert_notes(&f, 6, "reboot");
        f.modes = DEVTOOLS;
        assert_notes(&f, 7, "devtools");
        f.assumes_mode = true;
        assert_notes(&f, 8, "has not told");
        f.assumes_mode = false;
        f.iommufd.n_devices = 0;
        assert_notes(&f, 6, "fw_cfg");
        f = facts_of(CONFIDENTIAL_SEV);
        assert_notes(&f, 2, "swiotlb");
        f = (ConfidentialFacts) { 0 };
        assert_int_equal(confidential_notes(&f, (const char *[CONFIDENTIAL_NOTES_MAX]) { 0 }), 0);
}

#define VENDOR_NVIDIA 0x10de

static PciDevice *add_nvidia(Case *c, const char *address, uint16_t id, uint32_t class, const char *pool) {
        PciDevice *dev = add_fact(c, address, 0, class);

        dev->vendor = VENDOR_NVIDIA;
        dev->device = id;
        if (pool)
                take(c, address, DEVICE_ROLE_ASSIGNED, address, pool);
        return dev;
}

/* The GPUs and switches that the guest has and lacks, and their modes by the pool. */
TEST(test_facts) {
        _cleanup_case_ Case c = case_new("vm", 1, (int[]) { 0 }, false);
        static const char conf[] = "[Pool gpu]\nMatch=vendor=10de class=03\nConfidentialMode=protected-pcie\n"
                                   "[Pool switch]\nMatch=vendor=10de class=0680\nConfidentialMode=protected-pcie\n"
                                   "[Pool plain]\nMatch=address=0000:01:00.0\n";
        ConfidentialFacts f;

        config_free(c.config);
        assert_int_equal(config_parse("x.conf", conf, strlen(conf), &c.config), 0);
        assert_int_equal(c.config->n_problems, 0);
        add_nvidia(&c, "0000:11:00.0", 0x2330, CLASS_3D, "gpu");
        add_nvidia(&c, "0000:12:00.0", 0x22a3, 0x068000, "switch");
        add_nvidia(&c, "0000:13:00.0", 0x2330, CLASS_3D, NULL);
        pin(&c, "2-5", 8 * GIB, GIB);
        f = confidential_facts(c.inv, c.config, c.a, CONFIDENTIAL_SNP);
        assert_int_equal(f.modes, PPCIE);
        assert_int_equal(f.n_gpus, 1);
        assert_true(f.has_hopper && f.lacks_gpu && !f.lacks_switch && f.x86 && f.iommufd.confidential);
        assert_int_equal(f.memory, 8 * GIB);
        assert_int_equal(f.page_size, GIB);
        assert_int_equal(f.vcpus, 4);
        take(&c, "0000:13:00.0", DEVICE_ROLE_ASSIGNED, "gpu1", "gpu");
        add_nvidia(&c, "0000:14:00.0", 0x22a3, 0x068000, NULL);
        assert_int_equal(inventory_finish(c.inv), 0);
        f = confidential_facts(c.inv, c.config, c.a, CONFIDENTIAL_TDX);
        assert_true(!f.lacks_gpu && f.lacks_switch);
        assert_int_equal(f.n_gpus, 2);
        /* A NIC has no confidential mode. */
        add_fact(&c, "0000:15:00.0", 0, CLASS_INFINIBAND);
        take(&c, "0000:15:00.0", DEVICE_ROLE_ASSIGNED, "nic0", "plain");
        assert_int_equal(inventory_finish(c.inv), 0);
        assert_int_equal(confidential_facts(c.inv, c.config, c.a, CONFIDENTIAL_TDX).modes, PPCIE);
}

/* The devices that can have the mode of their pool. */
TEST(test_modes) {
        static const struct {
                uint16_t vendor, device;
                uint32_t class;
                PciType type;
                ConfidentialMode asked;
                unsigned modes, n_gpus;
        } cases[] = {
                { VENDOR_NVIDIA, 0x2330, CLASS_3D, PCI_TYPE_DEVICE, CONFIDENTIAL_MODE_ON, ON, 1 }, /* H100 */
                { VENDOR_NVIDIA, 0x2901, CLASS_3D, PCI_TYPE_DEVICE, CONFIDENTIAL_MODE_DEVTOOLS, DEVTOOLS,
                  1 }, /* B200 */
                { VENDOR_NVIDIA, 0x2901, CLASS_3D, PCI_TYPE_DEVICE, CONFIDENTIAL_MODE_PROTECTED_PCIE, OFF, 0 },
                { VENDOR_NVIDIA, 0x22a3, 0x068000, PCI_TYPE_DEVICE, CONFIDENTIAL_MODE_PROTECTED_PCIE, PPCIE, 0 },
                { VENDOR_NVIDIA, 0x20b2, CLASS_3D, PCI_TYPE_DEVICE, CONFIDENTIAL_MODE_ON, OFF, 0 },       /* A100 */
                { VENDOR_NVIDIA, 0x26b5, CLASS_3D, PCI_TYPE_DEVICE, CONFIDENTIAL_MODE_DEVTOOLS, OFF, 0 }, /* L40 */
                { VENDOR_NVIDIA, 0x2330, CLASS_3D, PCI_TYPE_VF, CONFIDENTIAL_MODE_ON, OFF, 0 },
                { 0x1002, 0x74b5, 0x120000, PCI_TYPE_VF, CONFIDENTIAL_MODE_OFF, OFF, 0 }, /* MI300X VF */
                { 0x1002, 0x74b5, 0x120000, PCI_TYPE_VF, CONFIDENTIAL_MODE_ON, OFF, 0 },
                { 0x8086, 0x56c0, 0x038000, PCI_TYPE_VF, CONFIDENTIAL_MODE_OFF, OFF, 0 }, /* Flex 170 */
                { 0x1002, 0x74a1, 0x120000, PCI_TYPE_DEVICE, CONFIDENTIAL_MODE_ON, OFF, 0 },
                { 0x15b3, 0x101e, CLASS_INFINIBAND, PCI_TYPE_VF, CONFIDENTIAL_MODE_ON, 0, 0 },
        };
        static const char conf[] = "[Pool x]\nMatch=class=03\n";

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_case_ Case c = case_new("vm", 1, (int[]) { 0 }, false);
                PciDevice *dev = add_fact(&c, "0000:11:00.0", 0, cases[i].class);
                ConfidentialFacts f;

                dev->vendor = cases[i].vendor;
                dev->device = cases[i].device;
                dev->type = cases[i].type;
                take(&c, "0000:11:00.0", DEVICE_ROLE_ASSIGNED, "x0", "x");
                config_free(c.config);
                assert_int_equal(config_parse("x.conf", conf, strlen(conf), &c.config), 0);
                c.config->pools[0].confidential_mode = cases[i].asked;
                f = confidential_facts(c.inv, c.config, c.a, CONFIDENTIAL_SNP);
                assert_int_equal(f.modes, cases[i].modes);
                assert_int_equal(f.n_gpus, cases[i].n_gpus);
                assert_int_equal(f.assumes_mode, cases[i].n_gpus > 0);
                dev->mode = CONFIDENTIAL_MODE_ON;
                assert_false(confidential_facts(c.inv, c.config, c.a, CONFIDENTIAL_SNP).assumes_mode);
        }
}

/* The switches belong to Fabric Manager on the host, or to the guest. */
TEST(test_configuration) {
        static const char conf[] =
                "[Fabric]\nPartitions=hgx-h100\n"
                "[Pool gpu]\nMatch=vendor=10de class=03\nFabric=yes\nConfidentialMode=protected-pcie\n"
                "[Pool vgpu]\nMatch=vendor=10de type=vf\nVgpuType=NVIDIA H100L-12C\nConfidentialMode=on\n"
                "[Pool odd]\nMatch=vendor=10df\nConfidentialMode=maybe\n";
        Config *config;

        assert_int_equal(config_parse("x.conf", conf, strlen(conf), &config), 0);
        assert_int_equal(config->n_problems, 3);
        for (size_t i = 0; i < config->n_problems; i++)
                record("a problem of the configuration", config->problems[i].message);
        assert_false(config_find_pool(config, "gpu")->fabric);
        assert_int_equal(config_find_pool(config, "gpu")->confidential_mode, CONFIDENTIAL_MODE_PROTECTED_PCIE);
        assert_int_equal(config_find_pool(config, "vgpu")->confidential_mode, CONFIDENTIAL_MODE_OFF);
        assert_int_equal(config_find_pool(config, "odd")->confidential_mode, CONFIDENTIAL_MODE_OFF);
        config_free(config);
}

static void set_host(Case *c, Confidential type) {
        c->inv->libvirt = domain_facts_features(12008000, 11001003, NULL);
        c->inv->kernel = 6019;
        for (Confidential i = CONFIDENTIAL_SEV; i <= CONFIDENTIAL_TDX; i++) {
                c->inv->confidential.parameters[i] = MODULE_PARAMETER_YES;
                c->inv->libvirt.security[i] = c->inv->libvirt.firmware[i] = true;
        }
        c->a->confidential = type;
}

/* A guest with a NIC's VF on one node. */
static Case new_guest(Confidential type) {
        Case c = case_new("vm", 1, (int[]) { 0 }, false);

        add_vf(&c, "0000:83:00.1", "0000:83:00.0", 0, "ib-vf0");
        pin(&c, "2-5", 8 * GIB, 0);
        set_host(&c, type);
        return c;
}

#define DOMAIN(os, rest) "<domain type='kvm'><os" os "><type machine='q35'>hvm</type>" rest "</domain>"
#define EFI(rest)        DOMAIN(" firmware='efi'", "</os>" rest)

TEST(test_templates) {
        static const struct {
                const char *text;
                bool sev, snp, tdx; /* the types that are refused */
                const char *word;
        } cases[] = {
                { EFI(""), false, false, false, NULL },
                { DOMAIN("", "<loader type='rom' readonly='yes'>/x.fd</loader></os>"), false, false, false, NULL },
                { "<domain type='qemu'/>", true, true, true, "needs KVM" },
                { DOMAIN("", "<loader type='pflash' readonly='yes'>/x.fd</loader></os>"), false, true, true, "flash" },
                { DOMAIN(" firmware='efi'", "<nvram>/x</nvram></os>"), false, true, true, "NVRAM" },
                { DOMAIN("", "</os>"), false, true, true, "UEFI" },
                { DOMAIN(" firmware='efi'", "<loader secure='yes'/></os>"), true, true, false, "secure boot" },
                { DOMAIN(" firmware='efi'", "<firmware><feature enabled='yes' name='secure-boot'/></firmware></os>"),
                  true, true, false, "secure boot" },
                { EFI("<features><smm state='on'/></features>"), false, true, true, "System Management" },
                { EFI("<features><smm state='off'/></features>"), false, false, false, NULL },
                { EFI("<features><pmu state='on'/></features>"), false, false, true, "counters" },
                { EFI("<features><ioapic driver='kvm'/></features>"), false, false, true, "interrupt controller" },
                { EFI("<devices><iommu model='virtio'/></devices>"), true, true, true, "no IOMMU" },
                { EFI("<devices><shmem name='x'><model type='ivshmem-plain'/></shmem></devices>"), false, true, true,
                  "share memory" },
                { EFI("<devices><filesystem type='mount'><driver type='virtiofs'/><source dir='/a'/><target dir='b'/>"
                      "</filesystem></devices>"),
                  false, true, true, "virtiofs" },
                { EFI("<devices><interface type='vhostuser'/></devices>"), false, true, true, "vhost-user" },
                { EFI("<devices><interface type='network'><boot order='1'/></interface></devices>"), true, true, true,
                  "from the network" },
                { DOMAIN(" firmware='efi'", "<boot dev='network'/></os>"), true, true, true, "from the network" },
                { EFI("<devices><disk type='file'><target dev='sda' bus='scsi'/></disk></devices>"), false, false, true,
                  "SCSI" },
                { EFI("<devices><disk type='file'><target dev='sda' bus='scsi'/></disk>"
                      "<disk type='file'><target dev='vda' bus='virtio'/><boot order='1'/></disk></devices>"),
                  false, false, false, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                for (Confidential type = CONFIDENTIAL_SEV; type <= CONFIDENTIAL_TDX; type++) {
                        _cleanup_case_ Case c = new_guest(type);
                        bool refused = type == CONFIDENTIAL_SEV   ? cases[i].sev
                                       : type == CONFIDENTIAL_SNP ? cases[i].snp
                                                                  : cases[i].tdx;

                        if (refused)
                                assert_refused(&c, cases[i].text, VERDICT_INVALID_TEMPLATE, cases[i].word);
                        else
                                free(make(&c, cases[i].text));
                }
}

/* A template with launchSecurity must pass the same rules. Another type than the requested one is refused. */
TEST(test_launch_security) {
        _cleanup_case_ Case c = new_guest(CONFIDENTIAL_NONE);
        _cleanup_free_ char *text = NULL, *sev = NULL;

        text = make(&c, EFI("<launchSecurity type='sev-snp'><policy>0xb0000</policy></launchSecurity>"));
        assert_has(text, "<policy>0xb0000</policy>");
        assert_has(text, "iommufd=\"yes\"");
        assert_has_not(text, "immediate");
        sev = make(&c, EFI("<launchSecurity type='sev'><policy>0x1</policy></launchSecurity>"));
        assert_has(sev, "<locked/>");
        assert_refused(&c, EFI("<launchSecurity type='s390-pv'/>"), VERDICT_INVALID_TEMPLATE, "s390-pv");
        c.a->page_size = GIB;
        assert_refused(&c, EFI("<launchSecurity type='tdx'/>"), VERDICT_NOT_SUPPORTED, "hugepages");
        c.a->page_size = 0;
        c.inv->libvirt.firmware[CONFIDENTIAL_TDX] = c.inv->libvirt.firmware[CONFIDENTIAL_SNP] = false;
        assert_refused(&c, EFI("<launchSecurity type='tdx'/>"), VERDICT_INVALID_TEMPLATE, "intel-tdx");
        assert_refused(&c, EFI("<launchSecurity type='sev-snp'/>"), VERDICT_INVALID_TEMPLATE, "amd-sev-snp");
        c.a->confidential = CONFIDENTIAL_TDX;
        assert_refused(&c, EFI("<launchSecurity type='sev-snp'/>"), VERDICT_INVALID_TEMPLATE, "allocated for TDX");
}

/* Other programs cannot map the memory of a private guest. */
TEST(test_memory_backing) {
        static const char template[] =
                DOMAIN(" firmware='efi'", "</os><memoryBacking><source type='memfd'/><access mode='shared'/><discard/>"
                                          "<locked/></memoryBacking>");

        for (Confidential type = CONFIDENTIAL_SEV; type <= CONFIDENTIAL_TDX; type++) {
                _cleanup_case_ Case c = new_guest(type);
                _cleanup_free_ char *text = make(&c, template);

                if (confidential_is_private(type)) {
                        assert_has_not(text, "memoryBacking");
                        continue;
                }
                assert_has(text, "memfd");
                assert_has(text, "mode=\"shared\"");
                assert_has(text, "<discard/>");
        }
}

/* 0.3 accepted a template with SEV beside a GPU. */
TEST(test_gpu_in_the_clear) {
        _cleanup_case_ Case c = one_node("vm");

        set_host(&c, CONFIDENTIAL_NONE);
        assert_refused(&c, EFI("<launchSecurity type='sev'><policy>0x1</policy></launchSecurity>"),
                       VERDICT_NOT_SUPPORTED, "in the clear");
        free(make(&c, EFI("")));
}

TEST(test_documents) {
        static const char conf[] = "[Pool gpu]\nMatch=vendor=10de class=03\nConfidentialMode=on\n";
        static const struct {
                Confidential type;
                const char *name;
        } files[] = { { CONFIDENTIAL_SNP, "domxml-libvirt-12-snp.xml" },
                      { CONFIDENTIAL_TDX, "domxml-libvirt-12-tdx.xml" } };

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                _cleanup_case_ Case c = one_node("vm");

                config_free(c.config);
                assert_int_equal(config_parse("x.conf", conf, strlen(conf), &c.config), 0);
                for (size_t k = 0; k < c.inv->n_devices; k++)
                        if (c.inv->devices[k].class == CLASS_3D) {
                                c.inv->devices[k].vendor = VENDOR_NVIDIA;
                                c.inv->devices[k].device = 0x2330;
                                c.inv->devices[k].mode = CONFIDENTIAL_MODE_ON;
                        }
                set_host(&c, files[i].type);
                assert_golden(&c, NULL, files[i].name);
        }
}

/* Debian 13 has libvirt 11.3 and QEMU 10.0, without devices for such guests and without a firmware. */
TEST(test_debian_13) {
        static const char template[] =
                DOMAIN("", "<loader type='rom' readonly='yes'>/usr/share/ovmf/OVMF.amdsev.fd</loader></os>"
                           "<features><acpi/><apic/></features>"
                           "<devices><interface type='network'><source network='default'/><model type='virtio'/>"
                           "</interface></devices>");
        _cleanup_case_ Case c = case_new("vm", 2, (int[]) { 0, 1 }, false);

        pin(&c, "2-3,18-19", 8 * GIB, 0);
        set_host(&c, CONFIDENTIAL_SNP);
        c.inv->libvirt = domain_facts_features(11003000, 10000013, NULL);
        c.inv->libvirt.security[CONFIDENTIAL_SNP] = true;
        assert_golden(&c, template, "domxml-libvirt-11-snp.xml");
        assert_refused(&c, NULL, VERDICT_INVALID_TEMPLATE, "amd-sev-snp");
        add_vf(&c, "0000:83:00.1", "0000:83:00.0", 0, "ib-vf0");
        assert_refused(&c, template, VERDICT_NOT_SUPPORTED, "QEMU 10.0");
}

TEST(test_sentences) {
        assert_sentences("confidential.txt");
}

TEST_GROUP(NULL, teardown)
