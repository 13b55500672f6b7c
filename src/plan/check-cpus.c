/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: housekeeping CPUs, and whether isolcpus= contradicts them. */

#include "check-internal.h"

/* The CPUs of all isolcpus=; words such as "managed_irq" may precede the list. A list of another form is ignored. */
static CpuSet isolated_cpus(const char *cmdline, CheckReport *report) {
        CpuSet all = { 0 }, some;
        const char *value;
        size_t n;

        while (cmdline_next(&cmdline, "isolcpus", &value, &n)) {
                _cleanup_free_ char *list = strndup(value, n);

                if (!list)
                        report->failed = true;
                else if (cpuset_parse(list + strcspn(list, "0123456789"), &some) >= 0)
                        cpuset_merge(&all, &some);
        }
        return all;
}

void check_cpus(const CheckFacts *facts, CheckReport *report) {
        const CpuSet *housekeeping = &facts->policy->config->housekeeping;
        CpuSet isolated = isolated_cpus(facts->cmdline, report);

        if (cpuset_is_empty(housekeeping))
                check_add(report, CHECK_WARNING, "Set HousekeepingCpus= to a core or two of each NUMA node.",
                          "No CPUs are kept for the host, so a guest can take all of them.");
        if (cpuset_intersects(housekeeping, &isolated))
                check_add(report, CHECK_WARNING, "Take the CPUs from isolcpus= or from HousekeepingCpus=.",
                          "The kernel command line isolates CPUs (isolcpus=) that HousekeepingCpus= keeps for the "
                          "host.");
}
