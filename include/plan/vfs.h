/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Checks for a change of the number of VFs of a PF, and the attributes of its VFs. Pure. */

#include "plan/plan.h"

/*
 * Checks that the PF can have this number of VFs. The number of VFs on a PF of mlx4_core comes from the driver's module
 * options, so any number other than the present one is refused.
 */
Verdict plan_check_pf(const HostView *view, const PciDevice *pf, unsigned count, Refusal *ret);
/* Checks that neither the PF nor a member of its IOMMU group is allocated, and that none of these and no VF of the PF
 * is in quarantine or has a finding that refuses requests. Allocated VFs of the PF are accepted, and then the IOMMU
 * group is not checked: if a boot removed the VFs, they may be created again. */
Verdict plan_check_pf_free(const HostView *view, const PciDevice *pf, Refusal *ret);
/*
 * Checks that a pool wants VFs on the PF, and that the pool leaves them to the daemon (no VirtualFunctions=external).
 * Refuses also as policy_check_vfs() does.
 */
Verdict plan_check_pf_pool(const HostView *view, const PciDevice *pf, Refusal *ret);
/* Checks that the VFs of the PF can be removed: none is allocated, in quarantine, used by a guest, blocked by a job or
 * bound to a host driver. */
Verdict plan_check_vfs_idle(const HostView *view, const PciDevice *pf, Refusal *ret);

/*
 * Computes the attributes of count VFs for the time when they are not allocated: the stable identity and the attributes
 * of the pool. If the PF has count VFs already: none for VFs of an mlx4 card, nor for a VF that is missing, that has a
 * driver or an allocation, or that ledger_check_kept() refuses. node: as in vf_identities_new(). The caller frees *ret.
 * 0 or -ENOMEM.
 */
int plan_vf_attributes(const HostView *view, const char *node, const PciDevice *pf, unsigned count, VfAttributes **ret);
