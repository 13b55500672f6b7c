/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by policy.c (pools) and policy-check.c (verdicts) only. */

#include "config/policy.h"

/* Returns true when the device is the host's display and the request has no force. */
bool policy_is_display(const Policy *p, const PciDevice *dev);
/* Returns true when the device must stay with the host: it is excluded, needed by the host, or cannot be assigned to a
 * guest. */
bool policy_is_untouchable(const Policy *p, const PciDevice *dev);

/* Returns the line of [Exclude] that matches the device; NULL when there is none. */
const Match *policy_find_exclude(const Policy *p, const PciDevice *dev);
/* Returns the line of [Exclude] that matches the PF or its VFs; NULL when there is none. */
const Match *policy_find_vf_exclude(const Policy *p, const PciDevice *pf);

/* Returns the first VF of the PF, or slot of the GPU, that a pool offers; NULL when there is none. */
const PciDevice *policy_find_offered_vf(const Policy *p, const PciDevice *pf);

/* As policy_check(), without the cache. */
Verdict policy_check_uncached(const Policy *p, const PciDevice *dev, Refusal *ret);
