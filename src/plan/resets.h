/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Whether a release can reset a device, as far as that is known before. */

#include "config/policy.h"

/* False: each release will put the device of a pool in quarantine. Why, in ret, or NULL. */
bool device_can_be_reset(const Policy *policy, const PciDevice *dev, Refusal *ret);
