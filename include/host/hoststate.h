/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The state of one machine: hardware, configuration and allocations. The daemon keeps the state of its machine, and a
 * replay (replay/replay.h) the state of a recorded machine. */

#include "model/health.h"
#include "plan/plan.h"
#include "plan/vfidentity.h"
#include "util/sysfs.h"

/* What is known about the machine. The state owns all pointers except sysroot and config_path. A fact whose pointer is
 * NULL is not known yet. policy refers to inventory and config, locality to inventory. */
typedef struct HostState {
        Config *config;
        Inventory *inventory;
        Locality *locality;
        Policy *policy;
        Mlx4 mlx4; /* the options of mlx4_core that the policy needs */
        Ledger *ledger;
        DeviceStatusTable status;
        char *identity;           /* set by host_state_read_machine_id() */
        VfIdentities *identities; /* MACs and GUIDs of VFs for this inventory and policy; NULL until one is needed */
        HealthList health;        /* health of the devices that were checked */
        VfReportList vfs;         /* what PFs last reported about allocated VFs */
        LibvirtStatus libvirt;
        EndpointStatusTable endpoints; /* status of the endpoints of services with Health=tcp */
        FabricTable fabric;            /* the partitions that Fabric Manager reported; valid if has_fabric */
        bool has_fabric;               /* Fabric Manager has reported */
        WithdrawnList withdrawn;
        /* --sysroot= and --config= of the daemon, borrowed. Both NULL for a recorded machine; config_path also NULL if
         * the daemon searches the default paths. */
        const char *sysroot, *config_path;
} HostState;

void host_state_done(HostState *s);

HostView host_state_view(const HostState *s);

/*
 * Replaces the inventory: marks the critical devices of inv, and derives a new locality and policy from inv and the
 * configuration. Takes ownership of inv, also on failure, which leaves the state unchanged. *ret_old: the former
 * inventory, which the caller frees; NULL the first time. Returns 0 or a negative errno.
 */
int host_state_take_inventory(HostState *s, const Sysfs *fs, Inventory *inv, Inventory **ret_old);

/* Replaces configuration and policy, takes ownership of both, and updates s->withdrawn. policy must be derived from
 * config and the present inventory. */
void host_state_take_config(HostState *s, Config *config, Policy *policy);

/* Makes the policy again, after members of the inventory have changed. 0 or a negative errno. */
int host_state_remake_policy(HostState *s);

/* Sets s->identity to the UUID of the firmware and the machine ID; one that cannot be read is left out. They make
 * generated VF identities stable and distinct between machines. Returns 0 or -ENOMEM. */
int host_state_read_machine_id(HostState *s, const Sysfs *fs);

/* As vf_identity_assign(), with the same verdicts. First gives the mediated devices of `a` their UUIDs. */
Verdict host_state_assign_identities(HostState *s, Allocation *a, Refusal *ret);
