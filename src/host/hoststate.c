/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Holds the state of a machine, and replaces the parts of it that depend on each other together. */

#include "host/hoststate.h"

#include <errno.h>

#include "host/critical.h"
#include "util/strings.h"

void host_state_done(HostState *n) {
        probe_cache_done(&n->eswitches);
        health_list_done(&n->health);
        vf_report_list_done(&n->vfs);
        ledger_free(n->ledger);
        vf_identities_free(n->identities);
        mlx4_done(&n->mlx4);
        policy_free(n->policy);
        locality_free(n->locality);
        inventory_free(n->inventory);
        config_free(n->config);
        free(n->identity);
}

/* Replaces the policy, and drops what was derived from the former one. */
static void take_policy(HostState *n, Policy *policy) {
        policy_free(n->policy);
        n->policy = policy;
        mlx4_done(&n->mlx4);
        /* Without memory the module options stay as they are. */
        if (mlx4_decide(policy, &n->mlx4) < 0)
                n->mlx4 = (Mlx4){ .unknown = true };
        n->identities = vf_identities_free(n->identities);
}

HostView host_state_view(const HostState *n) {
        return (HostView){
                .inventory = n->inventory,
                .locality = n->locality,
                .config = n->config,
                .policy = n->policy,
                .mlx4 = &n->mlx4,
                .ledger = n->ledger,
                .eswitches = &n->eswitches,
                .health = &n->health,
                .vfs = &n->vfs,
        };
}

int host_state_take_inventory(HostState *n, const Sysfs *fs, Inventory *inv, Inventory **ret_old) {
        _cleanup_(cleanup_inventory_free) Inventory *fresh = inv;
        _cleanup_(cleanup_locality_free) Locality *locality = NULL;
        Policy *policy;
        int r = critical_mark(fs, n->config, inv);

        if (r >= 0)
                r = locality_new(inv, &locality);
        if (r >= 0)
                r = policy_new(n->config, inv, &policy);
        if (r < 0)
                return r;
        take_policy(n, policy);
        locality_free(n->locality);
        *ret_old = n->inventory;
        n->locality = TAKE_PTR(locality);
        n->inventory = TAKE_PTR(fresh);
        return 0;
}

void host_state_take_config(HostState *n, Config *config, Policy *policy) {
        take_policy(n, policy);
        config_free(n->config);
        n->config = config;
}

int host_state_remake_policy(HostState *n) {
        Policy *policy;
        int r = policy_new(n->config, n->inventory, &policy);

        if (r < 0)
                return r;
        take_policy(n, policy);
        return 0;
}

int host_state_read_machine_id(HostState *n, const Sysfs *fs) {
        /* Both are read: some firmware gives all boards the same UUID, and cloned images share a machine ID. */
        static const char *const sources[] = { "sys/class/dmi/id/product_uuid", "etc/machine-id" };
        _cleanup_free_ char *identity = NULL;

        for (size_t i = 0; i < ELEMENTSOF(sources); i++) {
                char text[SYSFS_ATTRIBUTE_MAX];

                if (sysfs_read(fs, sources[i], text, sizeof(text)) < 0)
                        continue;
                if (string_replace(&identity, "%s%s ", identity ?: "", text) < 0)
                        return -ENOMEM;
        }
        if (!identity && string_copy(&identity, "") < 0)
                return -ENOMEM;
        free(n->identity);
        n->identity = TAKE_PTR(identity);
        return 0;
}

Verdict host_state_assign_identities(HostState *n, Allocation *a, Refusal *ret) {
        HostView c = host_state_view(n);

        if (!n->identities && vf_identities_new(n->inventory, n->policy, n->identity, &n->identities) < 0)
                return refuse_no_memory(ret);
        return vf_identity_assign(a, &c, n->identities, ret);
}
