/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: the NUMA node of GPUs and NICs. */

#include "check-internal.h"
#include "util/strings.h"

void check_numa(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        const PciDevice *first = NULL;
        size_t n = 0;

        if (inv->n_nodes == 0)
                check_add(report, CHECK_UNKNOWN, NULL, "The NUMA nodes are not known.");
        if (inv->n_nodes < 2)
                return;
        for (size_t i = 0; i < inv->n_devices; i++)
                if (inv->devices[i].numa_node < 0 &&
                    (pci_device_is_accelerator(&inv->devices[i]) || pci_device_is_nic(&inv->devices[i]))) {
                        first = first ?: &inv->devices[i];
                        n++;
                }
        if (first)
                check_add(report, CHECK_WARNING, "Update the firmware; its ACPI tables lack the proximity domain.",
                          "%s%s: the NUMA node is unknown, so CPUs and memory near the device cannot be chosen.",
                          PCI_ADDRESS_STR(first->address), AND_MORE(n - 1));
}
