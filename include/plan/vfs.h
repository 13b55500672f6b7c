/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a change of the number of VFs of a PF needs, and who the VFs are. Pure. */

#include "plan/plan.h"

/* The PF can have count VFs. A PF of mlx4_core has those that the options of its driver say. */
Verdict plan_check_pf(const HostView *view, const PciDevice *pf, unsigned count, Refusal *ret);
/* No allocation has the PF. */
Verdict plan_check_pf_free(const HostView *view, const PciDevice *pf, Refusal *ret);
/* A pool wants VFs on the PF, and no other program has them. */
Verdict plan_check_pf_pool(const HostView *view, const PciDevice *pf, Refusal *ret);
/* The VFs of the PF can go: no allocation has one, no driver of the host and no quarantine keeps one. */
Verdict plan_check_vfs_idle(const HostView *view, const PciDevice *pf, Refusal *ret);

/*
 * The attributes of each of the count VFs while it is not allocated: a stable identity, the same after each boot, and
 * those of its pool. None for a VF that exists and has a driver, an allocation or a quarantine. node: as
 * vf_identities_new(). The caller frees *ret. 0 or -ENOMEM.
 */
int plan_vf_attributes(const HostView *view, const char *node, const PciDevice *pf, unsigned count, VfAttributes **ret);
