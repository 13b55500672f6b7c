/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Holds the state of a machine. A new inventory is entered together with a new locality and policy, which refer to
 * it. */

#include "host/hoststate.h"

#include <assert.h>
#include <errno.h>

#include "host/critical.h"
#include "util/strings.h"

void host_state_done(HostState *s) {
        health_list_done(&s->health);
        vf_report_list_done(&s->vfs);
        ledger_free(s->ledger);
        device_status_table_done(&s->status);
        endpoint_status_table_done(&s->endpoints);
        vf_identities_free(s->identities);
        mlx4_done(&s->mlx4);
        policy_free(s->policy);
        locality_free(s->locality);
        inventory_free(s->inventory);
        config_free(s->config);
        withdrawn_done(&s->withdrawn);
        free(s->identity);
        free(s->libvirt.reason);
}

/* Replaces the policy and the options of mlx4_core, and drops the identities, which were derived from the former
 * policy. */
static void take_policy(HostState *s, Policy *policy) {
        policy_free(s->policy);
        s->policy = policy;
        mlx4_done(&s->mlx4);
        /* Out of memory: an existing file with module options is kept. */
        if (mlx4_decide(policy, &s->mlx4) < 0)
                s->mlx4 = (Mlx4) { .unknown = true };
        s->identities = vf_identities_free(s->identities);
}

HostView host_state_view(const HostState *s) {
        return (HostView) {
                .inventory = s->inventory,
                .locality = s->locality,
                .config = s->config,
                .policy = s->policy,
                .mlx4 = &s->mlx4,
                .ledger = s->ledger,
                .status = &s->status,
                .vfs = &s->vfs,
                .libvirt = &s->libvirt,
                .endpoints = &s->endpoints,
                .fabric = s->has_fabric ? &s->fabric : NULL,
                .withdrawn = &s->withdrawn,
                .sysroot = s->sysroot,
                .config_path = s->config_path,
        };
}

int host_state_take_inventory(HostState *s, const Sysfs *fs, Inventory *inv, Inventory **ret_old) {
        _cleanup_(cleanup_inventory_free) Inventory *fresh = inv;
        _cleanup_(cleanup_locality_free) Locality *locality = NULL;
        Policy *policy;
        int r = critical_mark(fs, s->config, inv);

        if (r < 0)
                return r;
        r = locality_new(inv, &locality);
        if (r < 0)
                return r;
        r = policy_new(s->config, inv, &policy);
        if (r < 0)
                return r;
        take_policy(s, policy);
        locality_free(s->locality);
        *ret_old = s->inventory;
        s->locality = TAKE_PTR(locality);
        s->inventory = TAKE_PTR(fresh);
        return 0;
}

void host_state_take_config(HostState *s, Config *config, Policy *policy) {
        assert(policy->config == config && policy->inventory == s->inventory);
        /* Out of memory: clear the list, because it is out of date. Clients then see no withdrawn devices. */
        if (withdrawn_update(&s->withdrawn, s->policy, policy) < 0)
                withdrawn_done(&s->withdrawn);
        take_policy(s, policy);
        config_free(s->config);
        s->config = config;
}

int host_state_remake_policy(HostState *s) {
        Policy *policy;
        int r = policy_new(s->config, s->inventory, &policy);

        if (r < 0)
                return r;
        take_policy(s, policy);
        return 0;
}

int host_state_read_machine_id(HostState *s, const Sysfs *fs) {
        /* Read both: some firmware gives all boards the same UUID, and cloned images share a machine ID. */
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
        free(s->identity);
        s->identity = TAKE_PTR(identity);
        return 0;
}

Verdict host_state_assign_identities(HostState *s, Allocation *a, Refusal *ret) {
        HostView view = host_state_view(s);

        if (!s->identities && vf_identities_new(s->inventory, s->policy, s->identity, &s->identities) < 0)
                return refuse_no_memory(ret);
        allocation_assign_mdevs(a, s->inventory);
        return vf_identity_assign(a, &view, s->identities, ret);
}
