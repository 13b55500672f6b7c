/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Check: devices of pools that a release cannot reset. */

#include "check-internal.h"
#include "resets.h"
#include "util/strings.h"

/* One finding for each pool. */
static void check_pool(const Policy *policy, const Pool *pool, CheckReport *report) {
        const Inventory *inv = policy->inventory;
        _cleanup_refusal_ Refusal why = { 0 };
        size_t n = 0;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (policy_pool(policy, &inv->devices[i]) == pool &&
                    !device_can_be_reset(policy, &inv->devices[i], n == 0 ? &why : NULL))
                        n++;
        if (n > 0)
                check_add(report, CHECK_WARNING, why.remedy, "Pool '%s': %s%s", pool->name, why.message ?: "",
                          n > 1 ? " Others of the pool too." : "");
}

void check_reset(const CheckFacts *facts, CheckReport *report) {
        const Config *config = facts->policy->config;

        for (size_t i = 0; i < config->n_pools; i++)
                check_pool(facts->policy, &config->pools[i], report);
}
