/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What policy.c (pools) and policy-check.c (verdicts) share. */

#include "config/policy.h"

/* Returns true when the device shows the host's display, unless the request has force. */
bool policy_is_display(const Policy *p, const PciDevice *dev);
/* Returns true when the device must stay with the host, because it is excluded, or needed by the host, or no guest can
 * have such a device. */
bool policy_is_untouchable(const Policy *p, const PciDevice *dev);

/* Returns the first line of [Exclude] that matches the device; NULL when there is none. */
const Match *policy_find_exclude(const Policy *p, const PciDevice *dev);
/* Returns the first line of [Exclude] that matches the PF or one of its VFs; NULL when there is none. */
const Match *policy_find_vf_exclude(const Policy *p, const PciDevice *pf);

/* Returns the first VF of the PF, or slot of the GPU, that a pool offers; NULL when there is none. */
const PciDevice *policy_find_offered_vf(const Policy *p, const PciDevice *pf);

/* Computes the verdict of policy_check() anew, without the cache. */
Verdict policy_check_uncached(const Policy *p, const PciDevice *dev, Refusal *ret);
