/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What policy.c (pools) and policy-check.c (verdicts) share. */

#include "config/policy.h"

/* Returns true when the device is the boot VGA or shows the host's console. Always false for a policy of
 * policy_new_forced(). */
bool policy_is_display(const Policy *p, const PciDevice *dev);
/* Returns true when the device must stay with the host: it is excluded, the host needs it, it is the host's display, it
 * is a part of the platform, or its PCI domain cannot be assigned. True for all devices while Config.block_reason is
 * set. */
bool policy_is_untouchable(const Policy *p, const PciDevice *dev);

/* Returns the first line of [Exclude] that matches the device; NULL when there is none. */
const Match *policy_find_exclude(const Policy *p, const PciDevice *dev);
/* Returns the first line of [Exclude] that matches the PF, or else the first that matches a model of its VFs, which may
 * not exist yet; NULL when there is none. */
const Match *policy_find_vf_exclude(const Policy *p, const PciDevice *pf);

/* Returns the first VF of the PF, or slot of the GPU, that a pool offers; NULL when there is none. */
const PciDevice *policy_find_offered_vf(const Policy *p, const PciDevice *pf);

/* Computes the verdict of policy_check() anew, without the cache. */
Verdict policy_check_uncached(const Policy *p, const PciDevice *dev, Refusal *ret);
