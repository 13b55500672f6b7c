/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The state of a device as a scheduler sees it, derived from inventory, configuration and ledger, and what the state
 * depends on. Pure. */

#include "plan/plan.h"

typedef enum DeviceState {
        DEVICE_STATE_HOST, /* not offered by configuration, or a running job still prepares it */
        DEVICE_STATE_AVAILABLE,
        DEVICE_STATE_ALLOCATED,
        DEVICE_STATE_RESERVED,         /* leased; the device is still with the host */
        DEVICE_STATE_MISSING,          /* allocated, but not present on the node */
        DEVICE_STATE_HARDWARE_CHANGED, /* allocated, but another card is at its address */
        DEVICE_STATE_STUCK,            /* a job hangs on the device, its PF or a member of its IOMMU group */
        DEVICE_STATE_QUARANTINED,      /* the release of the device, its PF or a member of its IOMMU group failed */
        DEVICE_STATE_UNHEALTHY,        /* it, its PF or a member of its IOMMU group is silent or reported errors */
        DEVICE_STATE_CONTESTED, /* a guest has the device without an allocation; or its driver or its IOMMU group keeps
                                   its allocation from using it (plan/promise.h); or it is a PF and its number of VFs
                                   was changed outside the daemon */
        _DEVICE_STATE_MAX,
} DeviceState;
const char *device_state_to_string(DeviceState s);

/* The device, or a member of its IOMMU group, is one of view->in_use. */
bool device_is_in_use(const HostView *view, const PciDevice *dev);

/* Whether a release can reset the device of a pool, as far as that is known before. False: each release will put it in
 * quarantine. ret (or NULL): why. */
bool device_can_be_reset(const Policy *policy, const PciDevice *dev, Refusal *ret);

/*
 * VERDICT_CONTESTED for a VF, or a slot, with a vGPU that no allocation made, in any pool but those of Nova. In a pool
 * with VgpuType=, VERDICT_NO_VGPU when its GPU can create no further vGPU, or devices before it take the room.
 * Otherwise VERDICT_NONE.
 */
Verdict device_check_vgpu(const HostView *view, const PciDevice *dev, Refusal *ret);

/* VERDICT_NOT_SUPPORTED for a GPU in another confidential mode than its pool says, as far as that is known. */
Verdict device_check_mode(const HostView *view, const PciDevice *dev, Refusal *ret);

/* ret (or NULL): why the device is not available; of an available one, that it does not exist yet. */
DeviceState device_state(const HostView *view, const PciDevice *dev, Refusal *ret);
