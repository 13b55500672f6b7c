/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: PFs without VFs, because of the firmware, the driver, or the configuration. */

#include "check-internal.h"
#include "util/strings.h"

/* A ConnectX without the SR-IOV capability, which its firmware shows when SR-IOV is on. */
static bool has_sriov_off(const PciDevice *dev) {
        return pci_device_is_connectx(dev) && dev->type == PCI_TYPE_DEVICE;
}

/* Says why a configuration can have no VFs, which is no problem of the node. */
static void tell_capability(const Inventory *inv, CheckReport *report) {
        for (size_t i = 0; i < inv->n_devices; i++)
                if (pci_device_is_nic(&inv->devices[i]) && inv->devices[i].type != PCI_TYPE_DEVICE)
                        return;
        check_add(report, CHECK_OK, NULL, "No NIC of this node has SR-IOV, so guests can only get whole NICs.");
}

static void check_firmware(const Inventory *inv, CheckReport *report) {
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (has_sriov_off(&inv->devices[i])) {
                        first = first ?: &inv->devices[i];
                        n++;
                }
        if (!first)
                tell_capability(inv, report);
        else
                check_add(report, CHECK_WARNING,
                          "If guests need their VFs: mlxconfig -d ADDRESS set SRIOV_EN=1 NUM_OF_VFS=8, then reboot.",
                          "NIC %s%s: there is no SR-IOV capability, which the firmware can turn on.",
                          PCI_ADDRESS_STR(first->address), AND_MORE(n - 1));
}

/* The VFs that exist; check_node() may know more that would. */
static bool has_vfs(const Inventory *inv, const PciDevice *pf) {
        return pf->n_vfs > 0 && !inventory_find(inv, pf->vfs[0])->expected;
}

/* PFs on which the pool asks for VFs; has_driver: those with a driver, which could have created the VFs. */
static void check_pool(const CheckFacts *facts, const Pool *pool, bool has_driver, CheckReport *report) {
        const Policy *policy = facts->policy;
        const Inventory *inv = policy->inventory;
        bool runs = facts->daemon && !facts->daemon->unreachable;
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *pf = &inv->devices[i];

                if (!has_vfs(inv, pf) && !pf->driver == !has_driver && policy_vf_pool(policy, pf) == pool) {
                        first = first ?: pf;
                        n++;
                }
        }
        if (first && has_driver)
                check_add(report, CHECK_WARNING,
                          runs ? "Run 'passthroughctl reload', and look for errors in the journal of passthroughd."
                               : "Start passthroughd, and look for errors in its journal.",
                          "PF %s%s: there are no VFs, but pool '%s' asks for %u.", PCI_ADDRESS_STR(first->address),
                          AND_MORE(n - 1), pool->name, pool->virtual_functions);
        else if (first)
                check_add(report, CHECK_WARNING, "Load the driver of the PF; only a driver creates VFs.",
                          "PF %s%s: no driver is bound, so pool '%s' gets no VFs.", PCI_ADDRESS_STR(first->address),
                          AND_MORE(n - 1), pool->name);
}

void check_sriov(const CheckFacts *facts, CheckReport *report) {
        const Config *config = facts->policy->config;

        for (size_t i = 0; i < config->n_pools; i++) {
                check_pool(facts, &config->pools[i], true, report);
                check_pool(facts, &config->pools[i], false, report);
        }
        check_firmware(facts->policy->inventory, report);
}
