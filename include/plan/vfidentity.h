/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which attributes the VFs of an allocation are given: what their pool says, what the request says, and a MAC and GUIDs
 * made up for those that nobody gave any. No two VFs of a node have the same. Pure: host/vfattr.h tells a PF.
 */

#include "plan/plan.h"

/* What each VF of a node has that is in no allocation, vf_identity_stable(), but for those of a PF that is left to
 * others (VirtualFunctions=external). */
typedef struct VfIdentities VfIdentities;

/* node: what tells this machine from all others, and stays; a copy is taken. True as long as inv and policy are the
 * same. 0 or -ENOMEM. */
int vf_identities_new(const Inventory *inv, const Policy *policy, const char *node, VfIdentities **ret);
VfIdentities *vf_identities_free(VfIdentities *l);
DEFINE_CLEANUP(VfIdentities *, vf_identities_free)

/*
 * For each assigned VF: those of its pool, those that the request has for all slots of the pool, those for its slot,
 * the later ones before the earlier ones; a VLAN always with the priority and protocol said beside it.
 * VERDICT_NOT_SUPPORTED: some are for what is no VF. VERDICT_INVALID_REQUEST: they do not go together.
 * VERDICT_ALLOCATED: another allocation has that MAC or GUID.
 */
Verdict vf_identity_merge(Allocation *a, const HostView *c, const Request *r, Refusal *ret);

/*
 * After that, once a has its id: VERDICT_ALLOCATED where the request wants what another VF of the node was made with
 * and goes back to, vf_identity_stable(). Makes up what its VFs lack of MAC, node GUID and port GUIDs, and the link
 * policy "auto" that goes with a GUID; tells so in AllocationDevice.generated. What a VF can have hangs on its class
 * and card;
 * one whose PF is left to others gets nothing. a is not in the ledger yet. VERDICT_LIMIT: out of memory.
 */
Verdict vf_identity_assign(Allocation *a, const HostView *c, const VfIdentities *l, Refusal *ret);

/* What a VF of pf has that is in no allocation: always the same for this node, PF and index. None when pf is no network
 * device. -ENOMEM. */
int vf_identity_stable(const char *node, const PciDevice *pf, unsigned index, VfAttributes *ret);

/*
 * MAC, node GUID and port GUIDs from a seed, others with each attempt: locally administered, none zero or a group's.
 * The seven numbers after a node GUID are free for its ports, the first two of which are the port GUIDs.
 */
void vf_identity_make(const char *seed, unsigned attempt, VfAttributes *ret);
