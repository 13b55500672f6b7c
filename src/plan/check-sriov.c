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

/* The number of VFs that exist; check_node() may know more that would. */
static size_t count_vfs(const Inventory *inv, const PciDevice *pf) {
        return pf->n_vfs > 0 && !inventory_find(inv, pf->vfs[0])->expected ? pf->n_vfs : 0;
}

/* What an admin does about the VFs of a PF. */
typedef enum Lack {
        LACK_NONE,
        LACK_NUMBER, /* the PF cannot have as many */
        LACK_DRIVER,
        LACK_ALL, /* the daemon creates them */
        LACK_SOME,
        LACK_LAG,      /* of the host, because there are VFs */
        LACK_EXCLUDED, /* the configuration withholds them */
        _LACK_MAX,
} Lack;

static Lack find_lack(const Policy *policy, const Pool *pool, const PciDevice *pf) {
        size_t n = count_vfs(policy->inventory, pf);

        if (n > 0 && policy_pf_has_roce_lag(policy, pf) && !policy_names_pf(pool, pf))
                return LACK_LAG;
        switch (policy_check_vf_number(policy, pf, pool, NULL)) {
        case VERDICT_NONE:
                return n == 0 ? LACK_ALL : n < pool->virtual_functions ? LACK_SOME : LACK_NONE;
        case VERDICT_PF_ABSENT:
                return n == 0 ? LACK_DRIVER : LACK_NONE;
        case VERDICT_NOT_SUPPORTED:
                return LACK_NUMBER;
        case VERDICT_EXCLUDED:
                return n == 0 ? LACK_EXCLUDED : LACK_NONE;
        default:
                return LACK_NONE;
        }
}

static void tell_lack(const CheckFacts *facts, const Pool *pool, Lack lack, const PciDevice *pf, size_t n,
                      CheckReport *report) {
        bool runs = facts->daemon && !facts->daemon->unreachable;
        const char *address = PCI_ADDRESS_STR(pf->address);
        const char *mlx4 =
                pci_device_is_mlx4_pf(pf) ? "'passthroughctl explain PF' says when mlx4_core creates them." : NULL;
        _cleanup_refusal_ Refusal why = { 0 };

        if (lack == LACK_SOME)
                check_add(report, CHECK_WARNING,
                          mlx4 ?: "'passthroughctl sriov PF NUMBER' changes the number when no VF is in use.",
                          "PF %s%s: there %s %zu VF%s, but pool '%s' asks for %u.", address, AND_MORE(n - 1),
                          ARE(pf->n_vfs), pf->n_vfs, PLURAL(pf->n_vfs), pool->name, pool->virtual_functions);
        else if (lack == LACK_LAG)
                check_add(report, CHECK_WARNING,
                          "If the host can do without, name the PF with pf= in a Match= line of the pool; otherwise "
                          "'passthroughctl sriov PF 0' removes the VFs, and pf= in [Exclude] keeps them away.",
                          "PF %s%s: it is a port of %s, which has no RoCE LAG while the PF has VFs: the host has no "
                          "RDMA device for the bond.",
                          address, AND_MORE(n - 1), QUOTABLE(pf->bond));
        else if (lack == LACK_ALL)
                check_add(report, CHECK_WARNING,
                          mlx4   ? mlx4
                          : runs ? "Run 'passthroughctl reload', and look for errors in the journal of passthroughd."
                                 : "Start passthroughd, and look for errors in its journal.",
                          "PF %s%s: there are no VFs, but pool '%s' asks for %u.", address, AND_MORE(n - 1), pool->name,
                          pool->virtual_functions);
        else if (policy_check_vf_number(facts->policy, pf, pool, &why) == VERDICT_NONE || !why.message)
                report->failed = true;
        /* check_configuration() warns when a pool gets no VFs at all. An admin who excludes one PF of several needs no
         * warning. */
        else if (lack == LACK_EXCLUDED)
                check_add(report, CHECK_OK, NULL, "PF %s%s: %s", address, AND_MORE(n - 1), why.message);
        else
                check_add(report, CHECK_WARNING, why.remedy, "PF %s%s: %s", address, AND_MORE(n - 1), why.message);
}

/* Adds one finding for all PFs that lack the same. */
static void check_pool(const CheckFacts *facts, const Pool *pool, Lack lack, CheckReport *report) {
        const Inventory *inv = facts->policy->inventory;
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *pf = &inv->devices[i];

                if (policy_asking_pool(facts->policy, pf) == pool && find_lack(facts->policy, pool, pf) == lack) {
                        first = first ?: pf;
                        n++;
                }
        }
        if (first)
                tell_lack(facts, pool, lack, first, n, report);
}

void check_sriov(const CheckFacts *facts, CheckReport *report) {
        const Config *config = facts->policy->config;

        for (size_t i = 0; i < config->n_pools; i++)
                for (Lack lack = LACK_NONE + 1; lack < _LACK_MAX; lack++)
                        check_pool(facts, &config->pools[i], lack, report);
        check_firmware(facts->policy->inventory, report);
}
