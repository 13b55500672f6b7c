/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The attributes of the VFs of an allocation: from the pool, from the request, and a generated MAC and GUIDs for VFs
 * that have none. MACs and GUIDs are unique on the node. Pure; host/vfattr.h writes attributes to the PF.
 */

#include "plan/plan.h"

/*
 * The stable identities of all VFs of the node, allocated or not; a VF has its own while unallocated. VFs of PFs with
 * VirtualFunctions=external have none.
 */
typedef struct VfIdentities VfIdentities;

/*
 * Computes the identities. node: a permanent string that is unique to this machine; copied. The result is valid as long
 * as inv and policy do not change. 0 or -ENOMEM.
 */
int vf_identities_new(const Inventory *inv, const Policy *policy, const char *node, VfIdentities **ret);
VfIdentities *vf_identities_free(VfIdentities *l);
DEFINE_CLEANUP(VfIdentities *, vf_identities_free)

/*
 * Merges the attributes of each assigned VF from its pool, from the request for all slots of the pool, and from the
 * request for the VF's slot; the later source wins. Priority and protocol always come from the same source as the VLAN.
 * VERDICT_NOT_SUPPORTED: attributes for a device that is no VF. VERDICT_INVALID_REQUEST: the attributes contradict each
 * other. VERDICT_ALLOCATED: another allocation has the MAC or GUID. VERDICT_LIMIT: out of memory.
 */
Verdict vf_identity_merge(Allocation *a, const HostView *view, const Request *r, Refusal *ret);

/*
 * Generates the MAC, node GUID and port GUIDs that the VFs of `a` lack, and the link policy "auto" for a VF with a
 * generated GUID. Records in AllocationDevice.generated the attributes that were generated, which the PF need not
 * support; for a VF that has a link only with GUIDs records none, because its PF must support them. Call it after
 * vf_identity_merge(), when `a` has its id and is not in the ledger yet. Class and card of a VF decide which identities
 * it can have. A VF whose PF has VirtualFunctions=external gets none. VERDICT_ALLOCATED: the request asks for the
 * stable identity of another VF of the node. VERDICT_LIMIT: out of memory.
 */
Verdict vf_identity_assign(Allocation *a, const HostView *view, const VfIdentities *l, Refusal *ret);

/*
 * Computes the stable identity of the VF of pf with this index, which is constant for node, PF and index. Empty when pf
 * is no network device. 0 or -ENOMEM.
 */
int vf_identity_stable(const char *node, const PciDevice *pf, unsigned index, VfAttributes *ret);

/*
 * Generates MAC, node GUID and port GUIDs from seed; each attempt gives other values. They are locally administered,
 * unicast and not zero. The seven numbers after a node GUID are reserved for its ports; the port GUIDs are the first
 * two of them.
 */
void vf_identity_make(const char *seed, unsigned attempt, VfAttributes *ret);
