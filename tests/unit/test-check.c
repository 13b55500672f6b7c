/* SPDX-License-Identifier: GPL-2.0-or-later */

/* What each check of a node finds, and that a ready node has no finding. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

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

/* Runs all checks. check: the only one that may find something, with this result; NULL: none may. Its first message has
 * the words, if any. */
static void assert_finds(TestNode *t, const CheckFacts *facts, const char *check, CheckResult result,
                         const char *words) {
        CheckFacts all = { .policy = t->policy,
                           .cmdline = facts->cmdline ?: "quiet intel_iommu=on",
                           .unsafe_interrupts = facts->unsafe_interrupts };
        CheckReport report = { 0 };
        const Finding *found = NULL;

        assert_int_equal(check_node(&all, &report), 0);
        for (size_t i = 0; i < report.n; i++) {
                const Finding *f = &report.findings[i];

                assert_true(f->check && f->message && *f->message);
                if (f->result == CHECK_OK)
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
#define NO_FACTS (&(CheckFacts){ 0 })

static void test_ready(void **state) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, READY);
        assert_finds(t, NO_FACTS, NULL, CHECK_OK, NULL);
}

static void assert_cmdline(TestNode *t, const char *cmdline, const char *check, CheckResult result) {
        assert_finds(t, &(CheckFacts){ .cmdline = cmdline }, check, result, NULL);
}

static void test_cmdline(void **state) {
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

static void test_iommu(void **state) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, READY);
        assert_finds(t, &(CheckFacts){ .unsafe_interrupts = true }, "interrupts", CHECK_WARNING, NULL);
}

static void test_iommu_off(void **state) {
        CheckReport report = { 0 };
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, READY);
        t->inventory->iommu = false;
        assert_int_equal(check_node(&(CheckFacts){ .policy = t->policy, .cmdline = "amd_iommu=off" }, &report), 0);
        assert_string_equal(report.findings[0].check, "iommu");
        assert_int_equal(report.findings[0].result, CHECK_FAILURE);
        assert_non_null(strstr(report.findings[0].message, "amd_iommu"));
        assert_non_null(report.findings[0].remedy);
        check_report_done(&report);
}

static void test_vfio(void **state) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, "[Daemon]\nHousekeepingCpus=0\n[Pool gpu]\nMatch=class=0302\n[Exclude]\nMatch=class=0302\n");
        assert_int_equal(string_copy(&t->inventory->drivers[0], "pci-stub"), 0);
        assert_finds(t, NO_FACTS, "vfio", CHECK_FAILURE, "vfio-pci");
        t->inventory->drivers_known = false;
        assert_finds(t, NO_FACTS, "vfio", CHECK_WARNING, "vfio-pci");
}

static void test_facts(void **state) {
        _cleanup_node_ TestNode *t = node_good();

        assert_int_equal(pci_device_add_fault(add_nic(t, 0), "numa_node is junk"), 0);
        t->inventory->devices[t->inventory->n_devices - 1].vendor = 0x8086;
        node_ready(t, READY);
        assert_finds(t, NO_FACTS, "facts", CHECK_WARNING, NIC);
        assert_int_equal(string_copy(&t->inventory->critical_error, "No mounts."), 0);
        assert_finds(t, NO_FACTS, "facts", CHECK_FAILURE, "No mounts.");
}

static void test_configuration(void **state) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, READY);
        assert_int_equal(config_add_problem(t->config, "a.conf", 3, "Colour= is unknown."), 0);
        assert_finds(t, NO_FACTS, "configuration", CHECK_WARNING, "Colour");
}

static void test_pools(void **state) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, READY "[Pool disk]\nMatch=class=0108\n");
        assert_finds(t, NO_FACTS, "pools", CHECK_WARNING, "'disk'");
}

static void test_no_pool(void **state) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, "[Daemon]\nHousekeepingCpus=0\n");
        assert_finds(t, NO_FACTS, "pools", CHECK_FAILURE, NULL);
}

static void add_sound(TestNode *t) {
        PciDevice *sound = node_device(t, "pci0000:00/0000:00:03.0", 0x040300, 0, 2);

        assert_int_equal(string_copy(&sound->driver, "snd_hda_intel"), 0);
}

static void test_group_of_pool(void **state) {
        _cleanup_node_ TestNode *t = node_good();

        add_sound(t);
        node_ready(t, READY);
        assert_finds(t, NO_FACTS, "pools", CHECK_WARNING, GPU);
}

static void test_group_without_pool(void **state) {
        _cleanup_node_ TestNode *t = node_good();
        PciDevice *disk;

        add_sound(t);
        disk = node_device(t, "pci0000:00/0000:00:04.0", 0x010802, 0, 4);
        disk->numa_node = 0;
        node_ready(t, "[Daemon]\nHousekeepingCpus=0\n[Pool disk]\nMatch=class=0108\n");
        assert_finds(t, NO_FACTS, "groups", CHECK_WARNING, "0000:00:03.0");
}

static void test_firmware_without_sriov(void **state) {
        _cleanup_node_ TestNode *t = node_good();

        (void) add_nic(t, 0);
        node_ready(t, READY);
        assert_finds(t, NO_FACTS, "sriov", CHECK_WARNING, NIC);
}

static void test_pf_without_vfs(void **state) {
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

static void test_drivers(void **state) {
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

static void test_numa(void **state) {
        _cleanup_node_ TestNode *t = node_good();

        add_nic(t, -1)->vendor = 0x8086;
        node_ready(t, READY);
        assert_finds(t, NO_FACTS, "numa", CHECK_WARNING, NIC);
}

static void test_cpus(void **state) {
        _cleanup_node_ TestNode *t = node_good();

        node_ready(t, "[Pool gpu]\nMatch=class=0302\n");
        assert_finds(t, NO_FACTS, "cpus", CHECK_WARNING, NULL);
}

static void test_hugepages(void **state) {
        _cleanup_node_ TestNode *t = node_good();

        t->inventory->nodes[1].n_pages = 0;
        node_ready(t, READY);
        assert_finds(t, NO_FACTS, "hugepages", CHECK_WARNING, "node 1:");
        t->inventory->nodes[1].memory = 0;
        assert_finds(t, NO_FACTS, NULL, CHECK_OK, NULL);
        t->inventory->nodes[0].n_pages = 0;
        assert_finds(t, NO_FACTS, "hugepages", CHECK_WARNING, NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ready),
                cmocka_unit_test(test_cmdline),
                cmocka_unit_test(test_iommu),
                cmocka_unit_test(test_iommu_off),
                cmocka_unit_test(test_vfio),
                cmocka_unit_test(test_facts),
                cmocka_unit_test(test_configuration),
                cmocka_unit_test(test_pools),
                cmocka_unit_test(test_no_pool),
                cmocka_unit_test(test_group_of_pool),
                cmocka_unit_test(test_group_without_pool),
                cmocka_unit_test(test_firmware_without_sriov),
                cmocka_unit_test(test_pf_without_vfs),
                cmocka_unit_test(test_drivers),
                cmocka_unit_test(test_numa),
                cmocka_unit_test(test_cpus),
                cmocka_unit_test(test_hugepages),
        };

        return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
