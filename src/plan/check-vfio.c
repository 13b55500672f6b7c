/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: the driver for guests, that of VfioDriver= or for Xen pciback. check_pools() reports devices that need another
 * one. */

#include "check-internal.h"

void check_vfio(const CheckFacts *facts, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        const char *driver = facts->policy->config->vfio_driver;

        if (!inv->drivers_known)
                check_add(report, CHECK_WARNING, NULL, "The list of PCI drivers cannot be read, so %s may be missing.",
                          driver);
        else if (!inventory_may_have_driver(inv, driver))
                check_add(report, CHECK_FAILURE,
                          streq(driver, PCIBACK_DRIVER)
                                  ? "Run 'systemctl start modprobe@xen-pciback.service', and name xen-pciback in "
                                    "/etc/modules-load.d."
                                  : "Start passthroughd.service, which loads vfio-pci; name another driver in "
                                    "/etc/modules-load.d.",
                          "The driver %s is not loaded.", driver);
}
