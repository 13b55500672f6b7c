/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Checks for a change of the number of VFs of a PF, and the attributes of its VFs. Pure. */

#include "plan/plan.h"

/*
 * Checks that the PF can have this number of VFs. A PF of mlx4_core only has the number in the driver's module options.
 */
Verdict plan_check_pf(const HostView *view, const PciDevice *pf, unsigned count, Refusal *ret);
/* Checks that no allocation has the PF. */
Verdict plan_check_pf_free(const HostView *view, const PciDevice *pf, Refusal *ret);
/*
 * Checks that a pool wants VFs on the PF, and that the pool leaves them to the daemon (no VirtualFunctions=external).
 */
Verdict plan_check_pf_pool(const HostView *view, const PciDevice *pf, Refusal *ret);
/* Checks that the VFs of the PF can be removed: none is allocated, in quarantine or bound to a host driver. */
Verdict plan_check_vfs_idle(const HostView *view, const PciDevice *pf, Refusal *ret);

/*
 * Computes the attributes of count VFs for the time when they are not allocated: the stable identity and the attributes
 * of the pool. None for a VF that exists and has a driver, an allocation or a quarantine. node: as in
 * vf_identities_new(). The caller frees *ret. 0 or -ENOMEM.
 */
int plan_vf_attributes(const HostView *view, const char *node, const PciDevice *pf, unsigned count, VfAttributes **ret);
