/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: the VFIO driver of the configuration. check_pools() reports devices that need another one. */

#include "check-internal.h"

void check_vfio(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        const char *driver = facts->policy->config->vfio_driver;

        if (!inv->drivers_known)
                check_add(report, CHECK_WARNING, NULL, "The list of PCI drivers cannot be read, so %s may be missing.",
                          driver);
        else if (!inventory_may_have_driver(inv, driver))
                check_add(
                        report, CHECK_FAILURE,
                        "Start passthroughd.service, which loads vfio-pci; name another driver in /etc/modules-load.d.",
                        "The VFIO driver %s is not loaded.", driver);
}
