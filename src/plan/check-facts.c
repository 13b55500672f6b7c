/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: the facts that decisions depend on can be read. */

#include "check-internal.h"
#include "util/strings.h"

static void check_faults(const Inventory *inv, CheckReport *report) {
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (inv->devices[i].fault) {
                        first = first ?: &inv->devices[i];
                        n++;
                }
        if (first)
                check_add(report, CHECK_WARNING, "'passthroughctl show' says what is wrong with each.",
                          "%s%s: attributes in sysfs cannot be used: %s", PCI_ADDRESS_STR(first->address),
                          AND_MORE(n - 1), first->fault);
}

/* check_iommu() reports these with a remedy. */
static bool is_about_iommu(const char *note) {
        return streq(note, NOTE_NO_IOMMU) || strncmp(note, NOTE_ACS_OVERRIDE, strlen(NOTE_ACS_OVERRIDE)) == 0;
}

void check_facts(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;

        if (inv->critical_error)
                check_add(report, CHECK_FAILURE, NULL,
                          "The devices that the host needs are unknown, so no device is allocated: %s",
                          inv->critical_error);
        for (size_t i = 0; i < inv->n_notes; i++)
                if (!is_about_iommu(inv->notes[i]))
                        check_add(report, CHECK_WARNING, NULL, "%s", inv->notes[i]);
        check_faults(inv, report);
}
