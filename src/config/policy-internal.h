/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by policy.c, which device is in which pool, and policy-check.c, which of them may be handed out; nobody else
 * includes it. */

#include "config/policy.h"

/* The host's display, which force gives away all the same. */
bool policy_is_display(const Policy *p, const PciDevice *dev);
/* Excluded or the host's own. */
bool policy_is_untouchable(const Policy *p, const PciDevice *dev);

/* The first VF of a PF that is on offer; NULL when none is. */
const PciDevice *policy_find_offered_vf(const Policy *p, const PciDevice *pf);

/* As policy_check(), worked out anew. */
Verdict policy_check_uncached(const Policy *p, const PciDevice *dev, Refusal *ret);
