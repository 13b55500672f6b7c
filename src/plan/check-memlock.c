/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: how much memory a guest may lock. VFIO locks all memory of a guest that has a device. */

#include "check-internal.h"
#include "util/strings.h"

void check_memory_lock(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        uint64_t memory = 0;

        for (size_t i = 0; i < inv->n_nodes; i++)
                memory += inv->nodes[i].memory;
        if (inv->xen)
                check_add(report, CHECK_UNKNOWN, NULL, "A guest of Xen locks no memory of dom0.");
        else if (facts->memory_lock == 0)
                check_add(report, CHECK_UNKNOWN, NULL,
                          facts->running ? "The limit is not known, because no daemon of libvirt runs."
                                         : "A recording does not tell how much memory QEMU may lock.");
        else if (facts->memory_lock < memory)
                check_add(report, CHECK_WARNING,
                          "Set LimitMEMLOCK=infinity for virtqemud.service or libvirtd.service, and restart it.",
                          "The daemon of libvirt may lock %s, and may not raise this limit for a larger guest.",
                          FORMAT_SIZE(facts->memory_lock));
}
