/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: the IOMMU is on, isolates, and remaps interrupts. */

#include "check-internal.h"
#include "model/cmdline.h"

void check_iommu(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        const char *key = cmdline_iommu_off(facts->cmdline);

        if (inv->xen)
                check_add(report, CHECK_UNKNOWN, NULL,
                          "Xen has the IOMMU: it is on when virt_caps of 'xl info' has hvm_directio. IOMMU groups are "
                          "derived from ACS.");
        else if (!inv->iommu && key)
                check_add(report, CHECK_FAILURE, "Remove it from the kernel command line and reboot.",
                          "The kernel command line has %s=off, so no device has an IOMMU group.", key);
        else if (!inv->iommu)
                check_add(report, CHECK_FAILURE, inventory_iommu_remedy(inv), "No device has an IOMMU group.");
        if (cmdline_has(facts->cmdline, "pcie_acs_override"))
                check_add(report, CHECK_WARNING, "Remove it from the kernel command line and reboot.",
                          "The kernel command line has pcie_acs_override=, so IOMMU groups claim an isolation that the "
                          "hardware may lack.");
}

void check_interrupts(const CheckFacts *facts, CheckReport *report) {
        if (facts->policy->inventory->xen) {
                check_add(report, CHECK_UNKNOWN, NULL, "Whether Xen remaps interrupts is unknown: see 'xl dmesg'.");
                return;
        }
        if (!*facts->cmdline)
                check_add(report, CHECK_UNKNOWN, NULL,
                          "The kernel command line is not known, so interrupt remapping may be off.");
        if (cmdline_says(facts->cmdline, "intremap", "off") || cmdline_has(facts->cmdline, "nointremap"))
                check_add(report, CHECK_FAILURE, "Remove intremap=off or nointremap from it and reboot.",
                          "The kernel command line turns interrupt remapping off, and VFIO refuses devices then.");
        if (facts->unsafe_interrupts)
                check_add(report, CHECK_WARNING,
                          "Turn on interrupt remapping in the firmware, and remove the option from modprobe.d and the "
                          "kernel command line.",
                          "VFIO's allow_unsafe_interrupts is on, so a guest can send any interrupt to the host.");
}
