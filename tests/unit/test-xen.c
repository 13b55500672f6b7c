/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A node with Xen: what it offers and refuses, and the result of its check. */

#include <stdio.h>

#include "unit.h"

#include "nodefixture.h"
#include "plan/check.h"

#define GPU  "0000:01:00.0"
#define PORT "pci0000:00/0000:00:01.0"
#define XEN  "[Daemon]\nHypervisor=xen\n"
#define POOL "[Pool gpu]\nMatch=class=0302\n"

static void add_driver(TestNode *t, const char *name) {
        Inventory *inv = t->inventory;

        assert_int_equal(ARRAY_RESERVE(inv->drivers, inv->n_drivers), 0);
        inv->drivers[inv->n_drivers] = NULL;
        assert_int_equal(string_copy(&inv->drivers[inv->n_drivers++], name), 0);
        inv->drivers_known = true;
}

/* A GPU below an isolating port. */
static TestNode *node_with_gpu(bool xen, const char *config) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, 8, 1, 64 * GIB);
        node_bridge(t, PORT, 0, 1)->acs = PCI_ACS_ISOLATED;
        node_gpu(t, PORT "/" GPU, 0, 2)->acs = PCI_ACS_CLEAN;
        t->inventory->xen = xen;
        add_driver(t, xen ? PCIBACK_DRIVER : "vfio-pci");
        node_ready(t, config);
        return t;
}

static void assert_refused(bool xen, const char *config, Verdict verdict, const char *words, const char *remedy) {
        _cleanup_node_ TestNode *t = node_with_gpu(xen, config);
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(policy_check(t->policy, node_find(t, GPU), &why), verdict);
        if (verdict == VERDICT_NONE)
                return;
        assert_says(&why, words);
        assert_non_null(why.remedy);
        assert_non_null(strstr(why.remedy, remedy));
}

TEST(test_hypervisor) {
        assert_refused(true, XEN POOL, VERDICT_NONE, NULL, NULL);
        assert_refused(false, POOL, VERDICT_NONE, NULL, NULL);
        assert_refused(false, XEN POOL, VERDICT_NOT_SUPPORTED, "Hypervisor=xen", "Boot Xen");
        assert_refused(true, POOL, VERDICT_NOT_SUPPORTED, "Xen", "Hypervisor=xen");
        assert_refused(true, XEN "[Pool gpu]\nMatch=type=vf\nMatch=class=0302\nVgpuType=NVIDIA A16-4Q\n",
                       VERDICT_NOT_SUPPORTED, "'gpu'", "VgpuType=");
        assert_refused(true, XEN POOL "Fabric=yes\n[Fabric]\nPartition=1=1\n", VERDICT_NOT_SUPPORTED, "'gpu'",
                       "Fabric=");
}

TEST(test_driver_missing) {
        _cleanup_node_ TestNode *t = node_with_gpu(true, XEN POOL);
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(string_copy(&t->inventory->drivers[0], "pci-stub"), 0);
        policy_recheck(t->policy, node_find(t, GPU));
        assert_int_equal(policy_check(t->policy, node_find(t, GPU), &why), VERDICT_NO_VFIO_DRIVER);
        assert_says(&why, PCIBACK_DRIVER);
        assert_non_null(strstr(why.remedy, "modprobe@xen-pciback.service"));
}

/* pciback is the driver regardless of VfioDriver=. Xen has no variant drivers. */
TEST(test_plan) {
        _cleanup_node_ TestNode *t = node_with_gpu(true, XEN "VfioDriver=auto\n" POOL);
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;

        assert_false(t->config->variants);
        assert_int_equal(node_plan(t, ASK(.pools = "gpu=1"), &plan, NULL), VERDICT_NONE);
        assert_string_equal(allocation_driver(plan->allocation, &plan->allocation->devices[0]), PCIBACK_DRIVER);
}

TEST(test_shared_memory) {
        _cleanup_node_ TestNode *t = node_with_gpu(true, XEN POOL);
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_refusal_ Refusal why = { 0 };

        assert_int_equal(node_plan(t, ASK(.pools = "gpu=1", .cpus = 1, .shared = GIB), &plan, &why),
                         VERDICT_NOT_SUPPORTED);
        assert_says(&why, "'mpi'");
}

/* A device on pciback is not in use by the host. */
TEST(test_harmless) {
        PciDevice dev = { .driver = (char[]) { PCIBACK_DRIVER } };

        assert_true(pci_device_driver_is_harmless(&dev));
}

static CheckResult result_of(const CheckReport *report, const char *check, const char *words) {
        CheckResult worst = CHECK_OK;
        bool said = false;

        for (size_t i = 0; i < report->n; i++)
                if (strcmp(report->findings[i].check, check) == 0) {
                        worst = report->findings[i].result > worst ? report->findings[i].result : worst;
                        said = said || !words || strstr(report->findings[i].message, words);
                }
        assert_true(said);
        return worst;
}

static void assert_check(bool xen, const char *config, unsigned cpus, const char *check, CheckResult result,
                         const char *words) {
        _cleanup_node_ TestNode *t = node_with_gpu(xen, config);
        CheckReport report = { 0 };

        assert_int_equal(
                check_node(&(CheckFacts) { .policy = t->policy, .cmdline = "quiet", .xen_cpus = cpus }, &report), 0);
        assert_int_equal(result_of(&report, check, words), result);
        check_report_done(&report);
}

TEST(test_check) {
        assert_check(false, POOL, 0, "xen", CHECK_OK, NULL);
        assert_check(false, XEN POOL, 0, "xen", CHECK_FAILURE, "Hypervisor=xen");
        assert_check(true, POOL, 8, "xen", CHECK_FAILURE, "Hypervisor=xen");
        assert_check(true, XEN POOL, 8, "xen", CHECK_WARNING, "NUMA");
        assert_check(true, XEN POOL, 16, "xen", CHECK_WARNING, "8 of 16");
        assert_check(true, XEN POOL, 0, "xen", CHECK_WARNING, "not known");
        assert_check(true, XEN POOL, 8, "iommu", CHECK_UNKNOWN, "hvm_directio");
        assert_check(true, XEN POOL, 8, "hugepages", CHECK_UNKNOWN, NULL);
        assert_check(true, XEN POOL, 8, "memlock", CHECK_UNKNOWN, NULL);
        assert_check(true, XEN POOL, 8, "interrupts", CHECK_UNKNOWN, NULL);
        assert_check(true, XEN POOL, 8, "vfio", CHECK_OK, NULL);
}
