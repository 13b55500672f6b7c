/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: there are pools with devices, or services, and each device of a pool can be allocated. */

#include "check-internal.h"

/* Adds one finding for all devices of the pools that the policy refuses for the same reason. */
static void check_verdict(const Policy *policy, Verdict verdict, CheckReport *report) {
        const Inventory *inv = policy->inventory;
        _cleanup_refusal_ Refusal why = { 0 };
        const PciDevice *first = NULL;
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (policy_pool(policy, &inv->devices[i]) && policy_verdict(policy, &inv->devices[i]) == verdict) {
                        first = first ?: &inv->devices[i];
                        n++;
                }
        if (!first)
                return;
        (void) policy_check(policy, first, &why);
        if (!why.message)
                report->failed = true;
        else
                check_add(report, CHECK_WARNING, why.remedy, "%s%s of pool '%s' cannot be allocated. %s",
                          PCI_ADDRESS_STR(first->address), CHECK_OTHERS(n), policy_pool(policy, first)->name,
                          why.message);
}

static bool has_devices(const Policy *policy, const Pool *pool) {
        const Inventory *inv = policy->inventory;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (policy_pool(policy, &inv->devices[i]) == pool)
                        return true;
        return false;
}

void check_pools(const CheckFacts *facts, CheckReport *report) {
        const Config *config = facts->policy->config;

        if (config->n_pools == 0 && config->n_services == 0)
                check_add(report, CHECK_FAILURE,
                          "'passthroughctl suggest' prints pools for this node; see passthroughd.conf(5).",
                          "The configuration has no pool and no service, so no device can be allocated.");
        for (size_t i = 0; i < config->n_pools; i++)
                /* check_sriov() reports VFs that do not exist yet. */
                if (config->pools[i].virtual_functions == 0 && !has_devices(facts->policy, &config->pools[i]))
                        check_add(report, CHECK_WARNING, "Compare its Match= lines with 'passthroughctl list --all'.",
                                  "No device of this node is in pool '%s'.", config->pools[i].name);
        /* An admin who excludes a device knows that it cannot be allocated. */
        for (Verdict v = VERDICT_NONE + 1; v < _VERDICT_MAX; v++)
                if (v != VERDICT_EXCLUDED)
                        check_verdict(facts->policy, v, report);
}
