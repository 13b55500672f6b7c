/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Checks for a change of the number of VFs of a PF, and the attributes of its VFs. Pure. */

#include "plan/plan.h"

/*
 * Checks that the PF can have this number of VFs. A PF of mlx4_core only has the number in the driver's module options.
 */
Verdict plan_check_pf(const HostView *view, const PciDevice *pf, unsigned count, Refusal *ret);
/* Checks that neither the PF nor a member of its IOMMU group is allocated, and that none of these and no VF of the PF
 * is in quarantine or has a finding that refuses requests. Allocated VFs of the PF are accepted: if a boot removed
 * them, they may be created again. */
Verdict plan_check_pf_free(const HostView *view, const PciDevice *pf, Refusal *ret);
/*
 * Checks that a pool wants VFs on the PF, and that the pool leaves them to the daemon (no VirtualFunctions=external).
 */
Verdict plan_check_pf_pool(const HostView *view, const PciDevice *pf, Refusal *ret);
/* Checks that the VFs of the PF can be removed: none is allocated, in quarantine, used by a guest, blocked by a job or
 * bound to a host driver. */
Verdict plan_check_vfs_idle(const HostView *view, const PciDevice *pf, Refusal *ret);

/*
 * Computes the attributes of count VFs for the time when they are not allocated: the stable identity and the attributes
 * of the pool. If the PF has count VFs already: none for VFs of an mlx4 card, nor for a VF with a driver, an allocation
 * or a quarantine. node: as in vf_identities_new(). The caller frees *ret. 0 or -ENOMEM.
 */
int plan_vf_attributes(const HostView *view, const char *node, const PciDevice *pf, unsigned count, VfAttributes **ret);
