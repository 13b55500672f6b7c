/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: hugepages on the NUMA nodes that have CPUs and memory. */

#include "check-internal.h"
#include "model/cmdline.h"
#include "util/strings.h"

static bool has_pages(const NumaNode *node) {
        for (size_t i = 0; i < node->n_pages; i++)
                if (node->pages[i].total > 0)
                        return true;
        return false;
}

void check_hugepages(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        const NumaNode *first = NULL;
        size_t n = 0, others = 0; /* nodes without and with hugepages */

        for (size_t i = 0; i < inv->n_nodes; i++) {
                const NumaNode *node = &inv->nodes[i];

                if (node->memory == 0 || cpuset_is_empty(&node->cpus))
                        continue;
                if (has_pages(node)) {
                        others++;
                        continue;
                }
                first = first ?: node;
                n++;
        }
        if (inv->xen)
                check_add(report, CHECK_UNKNOWN, NULL, "Guests of Xen do not use the hugepages of dom0.");
        else if (n + others == 0)
                check_add(report, CHECK_UNKNOWN, NULL, "The memory of the NUMA nodes is not known.");
        else if (n > 0 && others > 0)
                check_add(report, CHECK_WARNING, "Reserve as many on each node: nodeN/hugepages in sysfs.",
                          "NUMA node %d%s: no hugepages, but other nodes have some.", first->id, AND_MORE(n - 1));
        else if (n > 0)
                check_add(report, CHECK_WARNING,
                          cmdline_has(facts->cmdline, "hugepages")
                                  ? "The kernel command line asks for some, but the kernel had no room: ask for fewer."
                                  : "Add hugepagesz=1G and hugepages=NUMBER to the kernel command line; guests start "
                                    "faster.",
                          "No hugepages are reserved, so the memory of guests uses ordinary pages.");
}
