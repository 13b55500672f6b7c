/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: devices on a VFIO driver that the kernel may put in D3 while no guest has them. */

#include "check-internal.h"
#include "util/strings.h"

/* Variant drivers have no such module option of their own. */
static bool may_suspend(const CheckFacts *facts, const PciDevice *dev) {
        return dev->vfio && dev->runtime_pm && !(facts->idle_d3_disabled && streq_ptr(dev->driver, "vfio-pci"));
}

void check_power(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (may_suspend(facts, &inv->devices[i])) {
                        first = first ?: &inv->devices[i];
                        n++;
                }
        if (first)
                check_add(
                        report, CHECK_WARNING,
                        "Write 'on' to the file power/control of the device, and 0 to d3cold_allowed. Or load vfio-pci "
                        "with disable_idle_d3=1.",
                        "%s%s may go to %s while no guest has it, and some devices do not come back from D3.",
                        PCI_ADDRESS_STR(first->address), AND_MORE(n - 1), first->d3cold ? "D3cold" : "D3hot");
}
