/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The state of one machine: hardware, configuration and allocations. The daemon keeps it for its own machine, a replay
 * for a recorded machine. */

#include "model/health.h"
#include "plan/plan.h"
#include "plan/vfidentity.h"
#include "util/sysfs.h"

/* All pointers are owned, and NULL until known. policy and locality refer to inventory, and policy also to config. */
typedef struct HostState {
        Config *config;
        Inventory *inventory;
        Locality *locality;
        Policy *policy;
        Mlx4 mlx4; /* the mlx4_core module options that the policy requires */
        Ledger *ledger;
        DeviceStatusTable status;
        char *identity;           /* host_state_read_machine_id() */
        VfIdentities *identities; /* for this inventory and policy; NULL until first needed */
        HealthList health;        /* of the devices that were checked */
        VfReportList vfs;         /* the last report of the PFs about allocated VFs */
        LibvirtStatus libvirt;
        EndpointStatusTable endpoints; /* of services with Health=tcp */
        FabricTable fabric;            /* the partitions that Fabric Manager has, when has_fabric */
        bool has_fabric;               /* it has reported them */
        WithdrawnList withdrawn;
        /* Of the daemon, borrowed. NULL for a recorded machine, and config_path also for the default search. */
        const char *sysroot, *config_path;
} HostState;

void host_state_done(HostState *s);

HostView host_state_view(const HostState *s);

/*
 * Marks the critical devices of inv, derives locality and policy from inv and the configuration, and replaces the
 * present ones by all three. Takes ownership of inv even on failure; on failure the state is unchanged. *ret_old: the
 * former inventory (the caller frees it), NULL the first time. Returns 0 or a negative errno.
 */
int host_state_take_inventory(HostState *s, const Sysfs *fs, Inventory *inv, Inventory **ret_old);

/* Takes ownership of both. policy must be derived from config and the present inventory. */
void host_state_take_config(HostState *s, Config *config, Policy *policy);

/* Derives the policy again after a change of the inventory in place. Returns 0 or a negative errno. */
int host_state_remake_policy(HostState *s);

/* Reads the identifiers of this machine that are known, the UUID of the firmware and the machine ID. They make
 * generated VF identities stable and distinct between machines. Returns 0 or -ENOMEM. */
int host_state_read_machine_id(HostState *s, const Sysfs *fs);

/* As vf_identity_assign(), with the same verdicts. */
Verdict host_state_assign_identities(HostState *s, Allocation *a, Refusal *ret);
