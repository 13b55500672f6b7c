/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the checks in the order of a table, and collects their findings. */
#include <errno.h>
#include <stdio.h>

#include "check-internal.h"
#include "util/strings.h"
#include "util/stringtable.h"

static const struct Check {
        const char *name;
        void (*run)(const CheckFacts *facts, CheckReport *report);
        const char *ok; /* message of the finding CHECK_OK when the check has added none */
} checks[] = {
        { "iommu", check_iommu, "The IOMMU is on." },
        { "interrupts", check_interrupts, "Interrupt remapping is not turned off." },
        { "vfio", check_vfio, "The driver for guests is loaded." },
        { "xen", check_xen, "The node does not run Xen." },
        { "facts", check_facts, "All facts about the node can be read." },
        { "configuration", check_configuration, "The configuration has no errors." },
        { "pools", check_pools, "Each device of the pools can be allocated." },
        { "groups", check_groups, "No IOMMU group withholds a GPU outside of the pools." },
        { "sriov", check_sriov, "Each PF that needs VFs has them." },
        { "drivers", check_drivers, "No other program or driver claims the devices." },
        { "numa", check_numa, "The NUMA nodes of GPUs and NICs are known, or there is only one node." },
        { "memory", check_memory, "No memory of a GPU is memory of the host." },
        { "reset", check_reset, "Each device of the pools has a reset method." },
        { "power", check_power, "No device on a VFIO driver goes to D3 while it is idle." },
        { "cpus", check_cpus, "CPUs are kept for the host." },
        { "hugepages", check_hugepages, "The NUMA nodes have hugepages." },
        { "memlock", check_memory_lock, "Guests may lock all of their memory." },
        { "libvirt", check_libvirt, "libvirt is not asked, because Libvirt= is empty." },
        { "iommufd", check_iommufd, "Documents use no iommufd." },
        { "confidential", check_confidential, "The host has no confidential guests, and no pool is for them." },
        { "daemon", check_daemon, "passthroughd runs and reports no problem." },
};

int check_node(const CheckFacts *facts, CheckReport *ret) {
        for (size_t i = 0; i < ELEMENTSOF(checks); i++) {
                size_t before = ret->n;

                checks[i].run(facts, ret);
                if (ret->n == before)
                        check_add(ret, CHECK_OK, NULL, "%s", checks[i].ok);
                for (size_t k = before; k < ret->n; k++)
                        ret->findings[k].check = checks[i].name;
        }
        return ret->failed ? -ENOMEM : 0;
}

static const char *const check_result_table[_CHECK_RESULT_MAX] = {
        [CHECK_OK] = "ok",
        [CHECK_UNKNOWN] = "unknown",
        [CHECK_WARNING] = "warning",
        [CHECK_FAILURE] = "failure",
};
DEFINE_STRING_TABLE_TO_STRING(check_result, CheckResult, _CHECK_RESULT_MAX)

void check_add(CheckReport *report, CheckResult result, const char *remedy, const char *format, ...) {
        Finding f = { .result = result, .message = FORMAT_ARGUMENTS(format) };

        if (!f.message || string_copy(&f.remedy, remedy) < 0 || ARRAY_RESERVE(report->findings, report->n) < 0) {
                free(f.message);
                free(f.remedy);
                report->failed = true;
                return;
        }
        report->findings[report->n++] = f;
        if (result != CHECK_UNKNOWN)
                report->result = MAX(report->result, result);
}

void check_report_done(CheckReport *report) {
        for (size_t i = 0; i < report->n; i++) {
                free(report->findings[i].message);
                free(report->findings[i].remedy);
        }
        free(report->findings);
        *report = (CheckReport) { 0 };
}
