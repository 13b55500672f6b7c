/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a device is to a scheduler, put together from facts, configuration and ledger. Pure. */

#include "plan/plan.h"

typedef enum DeviceState {
        DEVICE_STATE_HOST, /* not ours to give, or not yet: a job gets it ready */
        DEVICE_STATE_AVAILABLE,
        DEVICE_STATE_ALLOCATED,
        DEVICE_STATE_MISSING,          /* in an allocation, but not on the node */
        DEVICE_STATE_HARDWARE_CHANGED, /* where a device of an allocation was, and another card */
        DEVICE_STATE_STUCK,            /* a job never came back from it, its PF or a member of its group */
        DEVICE_STATE_QUARANTINED,      /* it, its PF or a member of its group was not handed back in order */
        DEVICE_STATE_UNHEALTHY,        /* it, its PF or a member of its group does not answer, or had errors */
        DEVICE_STATE_CONTESTED, /* a guest has it without an allocation; or its allocation cannot use it, for its driver
                                   or its group (plan/promise.h); or a PF whose number of VFs was changed by hand */
        _DEVICE_STATE_MAX,
} DeviceState;
const char *device_state_to_string(DeviceState s);

/* Why it is not available goes to ret (or NULL). */
DeviceState device_state(const HostView *c, const PciDevice *dev, Refusal *ret);
