/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The findings of each check of a node. A ready node has none. */

#include <stdio.h>

#include "unit.h"

#include "model/cmdline.h"
#include "nodefixture.h"
#include "plan/check.h"

#define GPU   "0000:01:00.0"
#define NIC   "0000:02:00.0"
#define READY "[Daemon]\nHousekeepingCpus=0\n[Pool gpu]\nMatch=class=0302\n"

/* A node on which all checks pass with the configuration READY. */
static TestNode *node_good(void) {
        TestNode *t = node_new();

        node_hugepages(node_numa(t, 0, 0, 8, 1, 64 * GIB), GIB, 16, 16);
        node_hugepages(node_numa(t, 1, 8, 8, 1, 64 * GIB), GIB, 16, 16);
        node_bridge(t, "pci0000:00/0000:00:01.0", 0, 1);
        node_gpu(t, "pci0000:00/0000:00:01.0/" GPU, 0, 2);
        t->inventory->iommu = t->inventory->drivers_known = true;
        t->inventory->drivers = calloc(1, sizeof(char *));
        assert_non_null(t->inventory->drivers);
        assert_int_equal(string_copy(&t->inventory->drivers[t->inventory->n_drivers++], "vfio-pci"), 0);
        return t;
}

static PciDevice *add_nic(TestNode *t, int numa) {
        PciDevice *nic = node_device(t, "pci0000:00/0000:00:02.0/" NIC, 0x020000, numa, 3);

        nic->vendor = 0x15b3;
        nic->device = 0x1021;
        return nic;
}

/* Runs all checks. check: the only one that may find a problem, with this result; NULL: none may. words: parts of its
 * first message; NULL: any. */
static void assert_finds(TestNode *t, const CheckFacts *facts, const char *check, CheckResult result,
                         const char *words) {
        CheckFacts all = *facts;
        CheckReport report = { 0 };
        const Finding *found = NULL;

        all.policy = t->policy;
        all.cmdline = facts->cmdline ?: "quiet intel_iommu=on";
        assert_int_equal(check_node(&all, &report), 0);
        for (size_t i = 0; i < report.n; i++) {
                const Finding *f = &report.findings[i];

                assert_true(f->check && f->message && *f->message);
                if (f->result <= CHECK_UNKNOWN)
                        assert_null(f->remedy);
                else if (!check || strcmp(f->check, check) != 0)
                        fail_msg("%s: %s", f->check, f->message);
                else if (!found)
                        found = f;
        }
        assert_int_equal(report.result, check ? result : CHECK_OK);
        assert_int_equal(found != NULL, check != NULL);
        if (words && !strstr(found->message, words))
                fail_msg("'%s' without '%s'", found->message, words);
        check_report_done(&report);
}
#define NO_FACTS (&(CheckFacts) { 0 })

TEST(test_ready) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, READY);
        assert_finds(t, NO_FACTS, NULL, CHECK_OK, NULL);
}

static void assert_cmdline(TestNode *t, const char *cmdline, const char *check, CheckResult result) {
        assert_finds(t, &(CheckFacts) { .cmdline = cmdline }, check, result, NULL);
}

TEST(test_cmdline) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, READY);
        assert_cmdline(t, "", NULL, CHECK_OK);
        assert_cmdline(t, "intremap=on,nosid x=intremap=off", NULL, CHECK_OK);
        assert_cmdline(t, "a intremap=nosid,off\n", "interrupts", CHECK_FAILURE);
        assert_cmdline(t, "nointremap", "interrupts", CHECK_FAILURE);
        assert_cmdline(t, "pcie-acs-override=downstream", "iommu", CHECK_WARNING);
        assert_cmdline(t, "quiet vfio_pci.ids=10de:2330", "drivers", CHECK_WARNING);
        assert_cmdline(t, "pci-stub.ids=10de:2330", "drivers", CHECK_WARNING);
        assert_cmdline(t, "isolcpus=managed_irq,domain,1-7", NULL, CHECK_OK);
        assert_cmdline(t, "isolcpus=2 isolcpus=managed_irq,0-3", "cpus", CHECK_WARNING);
        assert_cmdline(t, "isolcpus=0-7:1/2 isolcpus isolcpus=", NULL, CHECK_OK);
}

TEST(test_iommu) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, READY);
        assert_finds(t, &(CheckFacts) { .unsafe_interrupts = true }, "interrupts", CHECK_WARNING, NULL);
}

TEST(test_iommu_off) {
        CheckReport report = { 0 };
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, READY);
        t->inventory->iommu = false;
        assert_int_equal(check_node(&(CheckFacts) { .policy = t->policy, .cmdline = "amd_iommu=off" }, &report), 0);
        assert_string_equal(report.findings[0].check, "iommu");
        assert_int_equal(report.findings[0].result, CHECK_FAILURE);
        assert_non_null(strstr(report.findings[0].message, "amd_iommu"));
        assert_non_null(report.findings[0].remedy);
        check_report_done(&report);

        /* A remedy must not suggest what the command line already has. */
        report = (CheckReport) { 0 };
        t->inventory->iommu_boot = cmdline_iommu("intel_iommu=on");
        assert_int_equal(check_node(&(CheckFacts) { .policy = t->policy, .cmdline = "intel_iommu=on" }, &report), 0);
        assert_int_equal(report.findings[0].result, CHECK_FAILURE);
        assert_null(strstr(report.findings[0].remedy, "intel_iommu"));
        check_report_done(&report);
}

/* Counts the findings with the words in message or remedy. */
static size_t count_findings(const CheckReport *report, const char *words) {
        size_t n = 0;

        for (size_t i = 0; i < report->n; i++)
                n += strstr(report->findings[i].message, words) ||
                     (report->findings[i].remedy && strstr(report->findings[i].remedy, words));
        return n;
}

/* The check that finds a cause reports it; other checks refer to it. */
TEST(test_cause_once) {
        DaemonReport daemon = { .problems = { (char *) "x.conf:1: wrong", (char *) "only here" }, .n_problems = 2 };
        _cleanup_node_ TestNode *t = node_good();
        CheckReport report = { 0 };

        node_ready(t, READY);
        t->inventory->iommu = false;
        for (size_t i = 0; i < t->inventory->n_devices; i++)
                t->inventory->devices[i].iommu_group = -1;
        assert_int_equal(inventory_add_note(t->inventory, "%s", NOTE_NO_IOMMU), 0);
        assert_int_equal(inventory_add_note(t->inventory, NOTE_ACS_OVERRIDE "downstream"), 0);
        policy_free(t->policy);
        assert_int_equal(policy_new(t->config, t->inventory, &t->policy), 0);
        assert_int_equal(config_add_problem(t->config, "x.conf", 1, "wrong"), 0);
        assert_int_equal(check_node(&(CheckFacts) { .policy = t->policy,
                                                    .daemon = &daemon,
                                                    .cmdline = "pcie_acs_override=downstream" },
                                    &report),
                         0);
        assert_int_equal(count_findings(&report, "IOMMU group."), 1);
        assert_int_equal(count_findings(&report, "VT-d"), 1);
        assert_int_equal(count_findings(&report, "pcie_acs_override"), 1);
        assert_int_equal(count_findings(&report, "'iommu'"), 1);
        assert_int_equal(count_findings(&report, "x.conf:1"), 1);
        assert_int_equal(count_findings(&report, "only here"), 1);
        check_report_done(&report);
}

TEST(test_vfio) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, "[Daemon]\nHousekeepingCpus=0\n[Pool gpu]\nMatch=class=0302\n[Exclude]\nMatch=class=0302\n");
        assert_int_equal(string_copy(&t->inventory->drivers[0], "pci-stub"), 0);
        assert_finds(t, NO_FACTS, "vfio", CHECK_FAILURE, "vfio-pci");
        t->inventory->drivers_known = false;
        assert_finds(t, NO_FACTS, "vfio", CHECK_WARNING, "vfio-pci");
}

TEST(test_facts) {
        _cleanup_node_ TestNode *t = node_good();

        assert_int_equal(pci_device_add_fault(add_nic(t, 0), "numa_node is junk"), 0);
        t->inventory->devices[t->inventory->n_devices - 1].vendor = 0x8086;
        node_ready(t, READY);
        assert_finds(t, NO_FACTS, "facts", CHECK_WARNING, NIC);
        assert_int_equal(string_copy(&t->inventory->critical_error, "No mounts."), 0);
        assert_finds(t, NO_FACTS, "facts", CHECK_FAILURE, "No mounts.");
}

TEST(test_configuration) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, READY);
        assert_int_equal(config_add_problem(t->config, "a.conf", 3, "Colour= is unknown."), 0);
        assert_finds(t, NO_FACTS, "configuration", CHECK_WARNING, "Colour");
}

TEST(test_pools) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, READY "[Pool disk]\nMatch=class=0108\n");
        assert_finds(t, NO_FACTS, "pools", CHECK_WARNING, "'disk'");
}

TEST(test_vgpu_type_of_no_gpu) {
        static const char pools[] = READY "[Pool vgpu]\nMatch=class=0108\nVgpuType=NVIDIA A\n";
        static const struct {
                const char *types;
                unsigned present; /* type of an existing vGPU */
                bool warns;
        } cases[] = {
                { "7 : NVIDIA B\n", 0, true },
                { NULL, 0, true },
                { "7 : NVIDIA A\n", 0, false },
                { "", 7, false }, /* the GPU is full, and the list has what can be created now */
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_good();
                PciDevice *dev = node_device(t, "pci0000:00/0000:00:04.0", 0x010802, 0, 4);

                dev->vgpu_type = cases[i].present;
                if (cases[i].types)
                        assert_int_equal(string_copy(&dev->vgpu_types, cases[i].types), 0);
                node_ready(t, pools);
                assert_finds(t, NO_FACTS, cases[i].warns ? "pools" : NULL, cases[i].warns ? CHECK_WARNING : CHECK_OK,
                             cases[i].warns ? "'vgpu'" : NULL);
        }
}

/* A GPU with an unknown module id may be in any partition. */
TEST(test_pool_without_partition) {
        static const struct {
                const char *lines;
                unsigned module;
                bool warns;
        } cases[] = {
                { "Partition=1=7", 3, true },
                { "Partition=1=3,7", 3, true },
                { "Partition=1=7", 0, false },
                { "Partition=1=7\nPartition=2=3", 3, false },
        };

        _cleanup_node_ TestNode *t = node_good();

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *n = node_good();
                _cleanup_free_ char *text = string_format(READY "Fabric=yes\n[Fabric]\n%s\n", cases[i].lines);

                node_ready(n, text);
                n->inventory->devices[inventory_find(n->inventory, address_of(GPU)) - n->inventory->devices].module =
                        cases[i].module;
                assert_finds(n, NO_FACTS, cases[i].warns ? "pools" : NULL, cases[i].warns ? CHECK_WARNING : CHECK_OK,
                             cases[i].warns ? "'gpu'" : NULL);
        }
        node_ready(t, READY "Fabric=yes\n[Fabric]\nPartition=1=7\n");
        t->config->fabric.n = 0;
        assert_finds(t, NO_FACTS, "pools", CHECK_WARNING, "no partitions");
}

TEST(test_no_pool) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, "[Daemon]\nHousekeepingCpus=0\n");
        assert_finds(t, NO_FACTS, "pools", CHECK_FAILURE, NULL);
}

TEST(test_services_alone) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, "[Daemon]\nHousekeepingCpus=0\n[Service remote-gpu]\nKind=rcuda\nEndpoint=gpu1:9999 slots=2\n");
        assert_finds(t, NO_FACTS, NULL, CHECK_OK, NULL);
}

static void add_sound(TestNode *t) {
        PciDevice *sound = node_device(t, "pci0000:00/0000:00:03.0", 0x040300, 0, 2);

        assert_int_equal(string_copy(&sound->driver, "snd_hda_intel"), 0);
}

TEST(test_group_of_pool) {
        _cleanup_node_ TestNode *t = node_good();

        add_sound(t);
        node_ready(t, READY);
        assert_finds(t, NO_FACTS, "pools", CHECK_WARNING, GPU);
}

TEST(test_group_without_pool) {
        _cleanup_node_ TestNode *t = node_good();
        PciDevice *disk;

        add_sound(t);
        disk = node_device(t, "pci0000:00/0000:00:04.0", 0x010802, 0, 4);
        disk->numa_node = 0;
        node_ready(t, "[Daemon]\nHousekeepingCpus=0\n[Pool disk]\nMatch=class=0108\n");
        assert_finds(t, NO_FACTS, "groups", CHECK_WARNING, "0000:00:03.0");
}

TEST(test_firmware_without_sriov) {
        _cleanup_node_ TestNode *t = node_good();

        (void) add_nic(t, 0);
        node_ready(t, READY);
        assert_finds(t, NO_FACTS, "sriov", CHECK_WARNING, NIC);
}

TEST(test_pf_without_vfs) {
        static const char config[] = READY "[Pool vf]\nMatch=vendor=15b3 type=vf\nVirtualFunctions=8\n";

        for (int driver = 0; driver < 2; driver++) {
                _cleanup_node_ TestNode *t = node_good();
                PciDevice *pf = add_nic(t, 0);

                pf->type = PCI_TYPE_PF;
                pf->total_vfs = 16;
                if (driver)
                        assert_int_equal(string_copy(&pf->driver, "mlx5_core"), 0);
                node_ready(t, config);
                assert_finds(t, NO_FACTS, "sriov", CHECK_WARNING, NIC);
        }
}

/* VFs created before the bond: the host has no RoCE LAG. The admin is told, unless a Match= line names the PF. */
TEST(test_vfs_below_a_bond) {
        static const struct {
                const char *match, *other_bond;
                bool tells;
        } cases[] = { { "", "bond0", true }, { " pf=" NIC, "bond0", false }, { "", "bond1", false } };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_good();
                _cleanup_free_ char *config =
                        string_format(READY "[Pool vf]\nMatch=vendor=15b3 type=vf%s\nVirtualFunctions=1\n"
                                            "[Exclude]\nMatch=address=0000:02:00.1\n",
                                      cases[i].match);

                for (unsigned port = 0; port < 2; port++) {
                        PciDevice *pf =
                                port ? node_nic(t, "pci0000:00/0000:00:02.0/0000:02:00.1", 0, 60) : add_nic(t, 0);

                        pf->type = PCI_TYPE_PF;
                        pf->total_vfs = 8;
                        assert_int_equal(string_copy(&pf->driver, "mlx5_core"), 0);
                        assert_int_equal(string_copy(&pf->bond, port ? cases[i].other_bond : "bond0"), 0);
                        pf->n_virtfns = !port;
                }
                (void) node_vf(t, "pci0000:00/0000:00:02.0/0000:02:00.2", NIC, 0, 50);
                node_ready(t, config);
                assert_finds(t, NO_FACTS, cases[i].tells ? "sriov" : NULL, CHECK_WARNING, cases[i].tells ? NIC : NULL);
        }
}

/* With fewer VFs than the pool asks for, or a number that no reload can give, the check names both numbers. */
TEST(test_too_few_vfs) {
        static const char config[] = READY "[Pool vf]\nMatch=vendor=15b3 type=vf\nVirtualFunctions=2\n";
        static const struct {
                unsigned total, n_vfs;
                const char *says;
        } cases[] = {
                { 8, 0, "journal" }, { 8, 1, "passthroughctl sriov" }, { 1, 0, "NUM_OF_VFS" }, { 1, 1, "NUM_OF_VFS" },
                { 8, 2, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_good();
                CheckReport report = { 0 };
                PciDevice *pf = add_nic(t, 0);

                pf->type = PCI_TYPE_PF;
                pf->total_vfs = cases[i].total;
                assert_int_equal(string_copy(&pf->driver, "mlx5_core"), 0);
                for (unsigned k = 0; k < cases[i].n_vfs; k++)
                        node_vf(t,
                                k == 0 ? "pci0000:00/0000:00:02.0/0000:02:00.1"
                                       : "pci0000:00/0000:00:02.0/0000:02:00.2",
                                NIC, 0, 50 + (int) k);
                node_ready(t, config);
                assert_finds(t, NO_FACTS, cases[i].says ? "sriov" : NULL, CHECK_WARNING, NULL);
                if (!cases[i].says)
                        continue;
                assert_int_equal(check_node(&(CheckFacts) { .policy = t->policy, .cmdline = "" }, &report), 0);
                assert_int_equal(count_findings(&report, cases[i].says), 1);
                check_report_done(&report);
        }
}

/* VirtualFunctions= without a PF: one finding, with the cause. */
TEST(test_pool_without_pf) {
        static const struct {
                const char *more, *check, *says;
        } cases[] = {
                { "", "pools", "'none'" },
                { "[Exclude]\nMatch=address=" NIC "\n", "configuration", "[Exclude]" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_good();
                _cleanup_free_ char *config = NULL;
                PciDevice *pf = add_nic(t, 0);

                pf->type = PCI_TYPE_PF;
                pf->total_vfs = 8;
                assert_int_equal(string_replace(&config,
                                                READY "[Pool none]\nMatch=type=vf vendor=%s\n"
                                                      "VirtualFunctions=2\n%s",
                                                i == 0 ? "8086" : "15b3", cases[i].more),
                                 0);
                node_ready(t, config);
                assert_finds(t, NO_FACTS, cases[i].check, CHECK_WARNING, cases[i].says);
        }
}

/* One PF of two has VFs. The check says why the other one gets none, unless its VFs exist. */
TEST(test_withheld_vfs) {
        static const struct {
                const char *exclude;
                bool has_vf, is_told;
        } cases[] = {
                { "address=" NIC, false, true },
                { "address=" NIC, true, false },
                { "pf=" NIC, false, true },
                { "type=pf address=" NIC, false, true },
                { "address=0000:77:00.0", false, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_good();
                _cleanup_free_ char *config = NULL;
                CheckReport report = { 0 };
                PciDevice *pf = add_nic(t, 0), *other;

                pf->type = PCI_TYPE_PF;
                pf->total_vfs = 8;
                assert_int_equal(string_copy(&pf->driver, "mlx5_core"), 0);
                if (cases[i].has_vf || !cases[i].is_told)
                        node_vf(t, "pci0000:00/0000:00:02.0/0000:02:00.1", NIC, 0, 50);
                other = node_nic(t, "pci0000:00/0000:00:05.0/0000:05:00.0", 0, 60);
                other->type = PCI_TYPE_PF;
                other->total_vfs = 8;
                assert_int_equal(string_copy(&other->driver, "mlx5_core"), 0);
                node_vf(t, "pci0000:00/0000:00:05.0/0000:05:00.1", "0000:05:00.0", 0, 61);
                assert_int_equal(string_replace(&config,
                                                READY "[Pool vf]\nMatch=vendor=15b3 type=vf\nVirtualFunctions=1\n"
                                                      "[Exclude]\nMatch=%s\n",
                                                cases[i].exclude),
                                 0);
                node_ready(t, config);
                assert_finds(t, NO_FACTS, NULL, CHECK_OK, NULL);
                assert_int_equal(
                        check_node(&(CheckFacts) { .policy = t->policy, .cmdline = "intel_iommu=on" }, &report), 0);
                assert_int_equal(count_findings(&report, "PF " NIC), cases[i].is_told);
                assert_int_equal(count_findings(&report, "PF 0000:05:00.0"), 0);
                check_report_done(&report);
        }
}

TEST(test_drivers) {
        _cleanup_node_ TestNode *t = node_good();
        PciDevice *gpu = &t->inventory->devices[t->inventory->n_devices - 1];

        assert_int_equal(string_copy(&gpu->driver, "nouveau"), 0);
        node_ready(t, READY);
        assert_finds(t, NO_FACTS, "drivers", CHECK_WARNING, GPU);
        gpu = (PciDevice *) node_find(t, GPU);
        assert_int_equal(string_copy(&gpu->driver, "nvidia"), 0);
        assert_finds(t, NO_FACTS, NULL, CHECK_OK, NULL);
        assert_int_equal(string_copy(&gpu->driver_override, "none"), 0);
        assert_finds(t, NO_FACTS, "drivers", CHECK_WARNING, GPU);
}

/* Online memory of GPUs that cannot be assigned to a GPU. */
TEST(test_memory) {
        _cleanup_node_ TestNode *t = node_good();
        PciDevice *gpu = (PciDevice *) node_find(t, GPU);

        (void) node_numa(t, 2, 0, 0, 1, 188 * GIB);
        assert_int_equal(string_copy(&gpu->driver, "nvidia"), 0);
        node_ready(t, READY);
        assert_finds(t, NO_FACTS, NULL, CHECK_OK, NULL);
        assert_int_equal(inventory_add_variant(t->inventory, "v000010DE*", "nvgrace_gpu_vfio_pci", true), 0);
        assert_finds(t, NO_FACTS, "memory", CHECK_WARNING, "node 2");
        gpu->has_memory_node = true;
        assert_finds(t, NO_FACTS, NULL, CHECK_OK, NULL);
        t->inventory->variants[0].loaded = false;
        assert_finds(t, NO_FACTS, "memory", CHECK_WARNING, GPU);
}

/* Other memory without CPUs, such as that of CXL, is not that of a GPU. */
TEST(test_memory_of_gpu_beside_others) {
        _cleanup_node_ TestNode *t = node_good();
        PciDevice *gpu = (PciDevice *) node_find(t, GPU);

        strcpy(t->inventory->architecture, ARCHITECTURE_AARCH64);
        (void) node_numa(t, 2, 0, 0, 1, 188 * GIB);
        (void) node_numa(t, 3, 0, 0, 1, 96 * GIB);
        gpu->numa_node = 3;
        assert_int_equal(string_copy(&gpu->driver, "nvidia"), 0);
        node_ready(t, READY);
        assert_int_equal(inventory_add_variant(t->inventory, "v000010DE*", "nvgrace_gpu_vfio_pci", true), 0);
        assert_finds(t, NO_FACTS, "memory", CHECK_WARNING, "NUMA node 3 without CPUs");
}

TEST(test_reset) {
        static const struct {
                const char *keys, *methods;
                bool audio;        /* another function on the bus */
                const char *words; /* words of the finding; NULL: none */
        } cases[] = {
                { "", "flr", true, NULL },
                { "", NULL, false, GPU },
                { "AllowNoReset=yes\n", NULL, false, NULL },
                /* The kernel refuses the method, and no other reset replaces it. */
                { "AllowNoReset=yes\nResetMethod=bus\n", NULL, false, "none" },
                { "ResetMethod=bus\n", "flr cxl_bus", false, "flr cxl_bus" },
                { "ResetMethod=bus\n", "flr bus", false, NULL },
                { "ResetMethod=bus\n", "flr bus", true, "0000:01:00.1" },
                { "ResetMethod=flr\n", "flr bus", true, NULL },
                /* The kernel lists this only for the first function on the bus. */
                { "", "bus", true, "0000:01:00.1" },
                { "", "bus", false, NULL },
                { "AllowNoReset=yes\n", "bus", true, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = node_good();
                _cleanup_free_ char *config = string_format("%s%s", READY, cases[i].keys);
                PciDevice *gpu = (PciDevice *) node_find(t, GPU);

                assert_non_null(config);
                assert_int_equal(string_copy(&gpu->reset_methods, cases[i].methods), 0);
                if (cases[i].audio)
                        (void) node_device(t, "pci0000:00/0000:00:01.0/0000:01:00.1", 0x040300, 0, 2);
                node_ready(t, config);
                assert_finds(t, NO_FACTS, cases[i].words ? "reset" : NULL, cases[i].words ? CHECK_WARNING : CHECK_OK,
                             cases[i].words);
        }
}

/* With any driver for guests, and whoever bound the device. */
TEST(test_power) {
        _cleanup_node_ TestNode *t = node_good();
        PciDevice *gpu = (PciDevice *) node_find(t, GPU);

        gpu->vfio = gpu->d3cold = true;
        node_ready(t, READY);
        assert_finds(t, NO_FACTS, NULL, CHECK_OK, NULL);
        gpu->runtime_pm = true;
        assert_finds(t, NO_FACTS, "power", CHECK_WARNING, "D3cold");
        gpu->d3cold = false;
        assert_finds(t, NO_FACTS, "power", CHECK_WARNING, "D3hot");
        assert_int_equal(string_copy(&gpu->driver, "vfio-pci"), 0);
        assert_finds(t, &(CheckFacts) { .idle_d3_disabled = true }, NULL, CHECK_OK, NULL);
        assert_int_equal(string_copy(&gpu->driver, "mlx5_vfio_pci"), 0);
        assert_finds(t, &(CheckFacts) { .idle_d3_disabled = true }, "power", CHECK_WARNING, GPU);
        gpu->vfio = false;
        assert_finds(t, NO_FACTS, NULL, CHECK_OK, NULL);
}

TEST(test_numa) {
        _cleanup_node_ TestNode *t = node_good();

        add_nic(t, -1)->vendor = 0x8086;
        node_ready(t, READY);
        assert_finds(t, NO_FACTS, "numa", CHECK_WARNING, NIC);
}

TEST(test_cpus) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, "[Pool gpu]\nMatch=class=0302\n");
        assert_finds(t, NO_FACTS, "cpus", CHECK_WARNING, NULL);
}

TEST(test_hugepages) {
        _cleanup_node_ TestNode *t = node_good();

        t->inventory->nodes[1].n_pages = 0;
        node_ready(t, READY);
        assert_finds(t, NO_FACTS, "hugepages", CHECK_WARNING, "node 1:");
        t->inventory->nodes[1].memory = 0;
        assert_finds(t, NO_FACTS, NULL, CHECK_OK, NULL);
        t->inventory->nodes[0].n_pages = 0;
        assert_finds(t, NO_FACTS, "hugepages", CHECK_WARNING, NULL);
}

/* Compares the first message of a check, and its result. */
static void assert_says_of(TestNode *t, const CheckFacts *facts, const char *check, CheckResult result,
                           const char *words) {
        CheckFacts all = *facts;
        CheckReport report = { 0 };
        const Finding *f = NULL;

        all.policy = t->policy;
        all.cmdline = facts->cmdline ?: "quiet";
        assert_int_equal(check_node(&all, &report), 0);
        for (size_t i = 0; i < report.n && !f; i++)
                if (strcmp(report.findings[i].check, check) == 0)
                        f = &report.findings[i];
        assert_non_null(f);
        assert_int_equal(f->result, result);
        if (!strstr(f->message, words))
                fail_msg("'%s' without '%s'", f->message, words);
        check_report_done(&report);
}

/* Facts that a recording lacks are neither a problem nor in order. */
TEST(test_kinds_of_cores) {
        _cleanup_node_ TestNode *t = node_good();

        t->inventory->cpus[0].kind = CORE_LOW_POWER;
        node_ready(t, READY);
        assert_says_of(t, NO_FACTS, "cpus", CHECK_OK, "0 on efficient and 1 on low-power cores");
}

TEST(test_recorded) {
        static const char *const checks[] = { "drivers", "memlock", "libvirt", "daemon" };
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, READY);
        for (size_t i = 0; i < ELEMENTSOF(checks); i++) {
                assert_says_of(t, NO_FACTS, checks[i], CHECK_UNKNOWN, "record");
                assert_says_of(
                        t,
                        &(CheckFacts) { .running = true, .memory_lock = UINT64_MAX, .daemon = &(DaemonReport) { 0 } },
                        checks[i], CHECK_OK, "");
        }
        assert_says_of(t, &(CheckFacts) { .cmdline = "" }, "interrupts", CHECK_UNKNOWN, "command line");
        assert_says_of(t, &(CheckFacts) { .running = true }, "memlock", CHECK_UNKNOWN, "libvirt");
}

TEST(test_memory_lock) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, READY);
        assert_finds(t, &(CheckFacts) { .memory_lock = 128 * GIB }, NULL, CHECK_OK, NULL);
        assert_finds(t, &(CheckFacts) { .memory_lock = 8 << 20 }, "memlock", CHECK_WARNING, "8 MiB");
}

TEST(test_other_programs) {
        _cleanup_node_ TestNode *t = node_good();
        CheckFacts facts = { .running = true, .n_settings = 1, .settings[0] = { .driver = "nvidia" } };

        node_vf(t, "pci0000:00/0000:00:03.0/0000:03:00.1", "0000:03:00.0", 0, 5)->device = 0x101e;
        node_ready(t, READY "[Pool vf]\nMatch=type=vf\n[Exclude]\nMatch=type=vf\n");
        facts.settings[0].device = address_of("0000:03:00.1");
        assert_finds(t, &facts, "drivers", CHECK_WARNING, "driverctl");
        facts.settings[0].device = address_of("0000:04:00.0"); /* in no pool */
        assert_finds(t, &facts, NULL, CHECK_OK, NULL);
        facts.managed_vfs[facts.n_managed_vfs++] = address_of("0000:03:00.1");
        assert_finds(t, &facts, "drivers", CHECK_WARNING, "NetworkManager");
}

TEST(test_libvirt) {
        _cleanup_node_ TestNode *t = node_good();
        DaemonReport d = { .asks_libvirt = true,
                           .libvirt_version = (char *) "11.3.0",
                           .qemu_version = (char *) "10.0.2",
                           .libvirt_features = (char *) "maxphysaddr driver-model" };
        const CheckFacts facts = { .daemon = &d };

        node_ready(t, READY);
        assert_says_of(t, &facts, "libvirt", CHECK_OK, "libvirt 11.3.0 with QEMU 10.0.2 can do: maxphysaddr");
        d.libvirt_features = NULL;
        assert_finds(t, &facts, "libvirt", CHECK_WARNING, "11.3.0");
        d.libvirt_reason = (char *) "libvirt does not run.";
        assert_finds(t, &facts, "libvirt", CHECK_WARNING, "does not run");
        d.unreachable = (char *) "passthroughd is not running.";
        assert_finds(t, &facts, "daemon", CHECK_WARNING, "not running");
        assert_says_of(t, &facts, "libvirt", CHECK_UNKNOWN, "passthroughd");
}

/* Why iommufd is not used, and settings that restrict guests or cannot be satisfied. */
TEST(test_iommufd) {
        _cleanup_node_ TestNode *t = node_good();
        DaemonReport d = { .asks_libvirt = true,
                           .libvirt_version = (char *) "12.8.0",
                           .qemu_version = (char *) "10.0.2",
                           .libvirt_features = (char *) "maxphysaddr driver-model iommufd" };
        const CheckFacts facts = { .daemon = &d };

        node_ready(t, READY);
        t->inventory->kernel = 6012;
        assert_says_of(t, &facts, "iommufd", CHECK_OK, "QEMU 10.0");
        t->config->iommufd = IOMMUFD_MODE_YES;
        assert_finds(t, &facts, "iommufd", CHECK_WARNING, "GPUDirect");
        d.qemu_version = (char *) "11.1.3";
        t->inventory->kernel = 6019;
        assert_says_of(t, &facts, "iommufd", CHECK_OK, "template");
        d.libvirt_features = (char *) "maxphysaddr driver-model";
        assert_finds(t, &facts, "iommufd", CHECK_WARNING, "/dev/iommu");
        t->config->iommufd = IOMMUFD_MODE_AUTO;
        assert_says_of(t, &facts, "iommufd", CHECK_OK, "/dev/iommu");
}

TEST(test_daemon) {
        _cleanup_node_ TestNode *t = node_good();
        DaemonReport d = { .problems = { (char *) "0000:01:00.0 is stuck." }, .n_problems = 1 };
        const CheckFacts facts = { .daemon = &d };

        node_ready(t, READY);
        assert_finds(t, &facts, "daemon", CHECK_WARNING, "stuck");
        d.read_only = (char *) "The state directory cannot be written.";
        assert_finds(t, &facts, "daemon", CHECK_FAILURE, "cannot be written");
}
