/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: drivers and settings that take devices before passthroughd or after it. */

#include "check-internal.h"
#include "model/cmdline.h"
#include "util/strings.h"

static void check_cmdline_ids(const char *cmdline, CheckReport *report) {
        static const char *const keys[] = { "vfio-pci.ids", "pci-stub.ids" };

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (cmdline_has(cmdline, keys[i]))
                        check_add(report, CHECK_WARNING,
                                  "Remove it, and set Bind=start in the pools that need the driver from the start.",
                                  "The kernel command line has %s=, which takes every device of a model from the host.",
                                  keys[i]);
}

static void check_nouveau(const Inventory *inv, CheckReport *report) {
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (streq_ptr(inv->devices[i].driver, "nouveau") && !pci_device_is_display(&inv->devices[i])) {
                        first = first ?: &inv->devices[i];
                        n++;
                }
        if (first)
                check_add(report, CHECK_WARNING,
                          "Add modprobe.blacklist=nouveau to the kernel command line, unless the host needs the GPU.",
                          "GPU %s%s: nouveau is bound, which may hang when it is unbound.",
                          PCI_ADDRESS_STR(first->address), AND_MORE(n - 1));
}

/* An override that names another driver than the bound one: the next probe changes the driver. */
static void check_overrides(const Inventory *inv, CheckReport *report) {
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *dev = &inv->devices[i];

                if (dev->driver_override && !streq_ptr(dev->driver, dev->driver_override)) {
                        first = first ?: dev;
                        n++;
                }
        }
        if (first)
                check_add(report, CHECK_WARNING,
                          "If no allocation has the device, remove the setting of driverctl, udev or the admin.",
                          "%s%s: driver_override is %s, but the bound driver is %s.", PCI_ADDRESS_STR(first->address),
                          AND_MORE(n - 1), first->driver_override, first->driver ?: "none");
}

/* driverctl binds the device at boot and after it is plugged in, so allocations and it take turns. */
static void check_driverctl(const CheckFacts *facts, CheckReport *report) {
        for (size_t i = 0; i < facts->n_settings; i++) {
                const DriverSetting *s = &facts->settings[i];
                const PciDevice *dev = inventory_find(facts->policy->inventory, s->device);

                if (dev && policy_pool(facts->policy, dev))
                        check_add(report, CHECK_WARNING,
                                  "Run 'driverctl unset-override' for it; passthroughd binds it.",
                                  "%s of pool '%s': driverctl binds it to %s.", PCI_ADDRESS_STR(s->device),
                                  policy_pool(facts->policy, dev)->name, QUOTABLE(s->driver));
        }
}

static void check_network_manager(const CheckFacts *facts, CheckReport *report) {
        PciAddress first;
        size_t n = 0;

        for (size_t i = 0; i < facts->n_managed_vfs; i++) {
                const PciDevice *vf = inventory_find(facts->policy->inventory, facts->managed_vfs[i]);

                if (vf && policy_pool(facts->policy, vf) && n++ == 0)
                        first = vf->address;
        }
        if (n > 0)
                check_add(report, CHECK_WARNING,
                          "Set unmanaged-devices= in NetworkManager.conf, or unbind the driver of the VFs.",
                          "VF %s%s: NetworkManager configures the interface, so the host uses the VF.",
                          PCI_ADDRESS_STR(first), AND_MORE(n - 1));
}

void check_drivers(const CheckFacts *facts, CheckReport *report) {
        check_cmdline_ids(facts->cmdline, report);
        check_nouveau(facts->policy->inventory, report);
        check_overrides(facts->policy->inventory, report);
        check_driverctl(facts, report);
        check_network_manager(facts, report);
        if (!facts->running)
                check_add(report, CHECK_UNKNOWN, NULL,
                          "A recording does not tell what driverctl and NetworkManager do.");
}
