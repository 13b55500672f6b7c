/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: housekeeping CPUs, and whether isolcpus= contradicts them. */

#include "check-internal.h"
#include "model/cmdline.h"

void check_cpus(const CheckFacts *facts, CheckReport *report) {
        const CpuSet *housekeeping = &facts->policy->config->housekeeping;
        CpuSet isolated = { 0 };

        report->failed |= cmdline_isolated(facts->cmdline, &isolated) < 0;
        if (cpuset_is_empty(housekeeping))
                check_add(report, CHECK_WARNING, "Set HousekeepingCpus= to a core or two of each NUMA node.",
                          "No CPUs are kept for the host, so a guest can take all of them.");
        if (cpuset_intersects(housekeeping, &isolated))
                check_add(report, CHECK_WARNING, "Take the CPUs from isolcpus= or from HousekeepingCpus=.",
                          "The kernel command line isolates CPUs (isolcpus=) that HousekeepingCpus= keeps for the "
                          "host.");
}
