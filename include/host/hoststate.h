/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A machine as a whole: what it has, what is wished of it, what is promised on it. The daemon has the one it runs on,
 * a replay a recorded one.
 */

#include "plan/plan.h"
#include "plan/vfidentity.h"
#include "util/sysfs.h"

/* All owned, NULL until known. policy and locality speak of inventory, policy of config too. */
typedef struct HostState {
        Config *config;
        Inventory *inventory;
        Locality *locality;
        Policy *policy;
        Mlx4 mlx4; /* options that the policy wants of mlx4_core */
        Ledger *ledger;
        ProbeCache eswitches;     /* what has been asked so far */
        char *identity;           /* host_state_read_machine_id() */
        VfIdentities *identities; /* of this inventory and policy, once somebody has asked */
        HealthList health;        /* of devices that were looked at */
        VfReportList vfs;         /* VFs of allocations, as their PFs reported them last */
} HostState;

void host_state_done(HostState *n);

HostView host_state_view(const HostState *n);

/*
 * Completes what scan_inventory() read by what the host stands on, and what follows from both with the configuration;
 * then takes all of it. Takes over inv, also on failure, when all stays as it was. The old one goes to *ret_old (caller
 * frees, NULL the first time).
 */
int host_state_take_inventory(HostState *n, const Sysfs *fs, Inventory *inv, Inventory **ret_old);

/* Takes over both; policy was made from config and the inventory that is there. */
void host_state_take_config(HostState *n, Config *config, Policy *policy);

/* After a change of the inventory in place. */
int host_state_remake_policy(HostState *n);

/*
 * What tells this machine from others, for identities that are always the same: the firmware's UUID and the machine id,
 * as far as they are known. 0 or -ENOMEM.
 */
int host_state_read_machine_id(HostState *n, const Sysfs *fs);

/* As vf_identity_assign(), whose verdicts it has. */
Verdict host_state_assign_identities(HostState *n, Allocation *a, Refusal *ret);
