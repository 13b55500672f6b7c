/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: Hypervisor= fits the node, and what Linux in dom0 sees of it. */

#include "check-internal.h"

void check_xen(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        bool wanted = facts->policy->config->hypervisor == HYPERVISOR_XEN;

        if (wanted != inv->xen)
                check_add(report, CHECK_FAILURE,
                          wanted ? "Boot Xen, or remove Hypervisor=xen and restart the daemon."
                                 : "In dom0, set Hypervisor=xen in section [Daemon] and restart the daemon.",
                          wanted ? "The configuration has Hypervisor=xen, but the node is not dom0 of Xen."
                                 : "The node runs Xen, but the configuration does not have Hypervisor=xen.");
        if (!inv->xen)
                return;
        if (facts->xen_cpus == 0)
                check_add(report, CHECK_WARNING, "Ask for devices alone, or give dom0 all CPUs and pin them.",
                          "How many CPUs the machine has is not known, so CPU pins may name other CPUs than meant.");
        else if (facts->xen_cpus > inv->n_cpus)
                check_add(report, CHECK_WARNING,
                          "Ask for devices alone, or remove dom0_max_vcpus= from Xen's command line.",
                          "dom0 has %zu of %u CPUs, so no guest can be pinned to the others.", inv->n_cpus,
                          facts->xen_cpus);
        check_add(report, CHECK_WARNING, "Ask for devices alone, and let Xen place the guest.",
                  "dom0 sees its own memory and no NUMA nodes: a plan with memory or NUMA nodes does not know those of "
                  "the machine.");
}
