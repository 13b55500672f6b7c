/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The state of a device for a scheduler, from inventory, configuration and ledger; and the checks that decide it. Pure.
 */

#include "plan/plan.h"

typedef enum DeviceState {
        DEVICE_STATE_HOST, /* policy_check() refuses the device, for example because no pool offers it or the host needs
                              it; or it cannot be what its pool says (VgpuType=, ConfidentialMode=); or a job works on
                              it while no allocation has it */
        DEVICE_STATE_AVAILABLE,
        DEVICE_STATE_ALLOCATED,
        DEVICE_STATE_RESERVED,         /* a lease has the device, which still has its host driver */
        DEVICE_STATE_MISSING,          /* allocated, but missing from the node */
        DEVICE_STATE_HARDWARE_CHANGED, /* allocated, but another card is at its address */
        DEVICE_STATE_STUCK, /* a job hangs on the device, its PF, one of its VFs, a member of its IOMMU group or, for a
                               slot, another slot of its GPU */
        DEVICE_STATE_QUARANTINED, /* the device, its PF, a VF of it or a member of its IOMMU group is in quarantine */
        DEVICE_STATE_UNHEALTHY, /* the device, its PF, one of its VFs or a member of its IOMMU group has a finding that
                                   device_status_check_unhealthy() refuses; of an allocated device, only the device
                                   itself counts */
        DEVICE_STATE_CONTESTED, /* a guest without an allocation has the device; or its driver, its IOMMU group or the
                                   like keeps its allocation from using it (plan/promise.h); or no allocation made its
                                   vGPU; or it is a PF and another program changed its number of VFs */
        _DEVICE_STATE_MAX,
} DeviceState;
const char *device_state_to_string(DeviceState s);

/* Returns true when the device, or a member of its IOMMU group, is in HostView.in_use. */
bool device_is_in_use(const HostView *view, const PciDevice *dev);

/* Returns false when each release would put the device in quarantine, because it has at present no reset that its pool
 * allows. ret, which may be NULL, says why. */
bool device_can_be_reset(const Policy *policy, const PciDevice *dev, Refusal *ret);

/*
 * Checks the vGPU of a VF or a slot. VERDICT_CONTESTED if it is in a pool without Scheduler=nova and has a vGPU that no
 * allocation made. VERDICT_NO_VGPU if its pool has VgpuType=, and either the GPU can create no further vGPU, or free
 * devices of the GPU at lower addresses take all that it can create. Otherwise VERDICT_NONE.
 */
Verdict device_check_vgpu(const HostView *view, const PciDevice *dev, Refusal *ret);

/* Returns VERDICT_NOT_SUPPORTED if the device is known to be in another confidential mode than its pool says, otherwise
 * VERDICT_NONE. */
Verdict device_check_mode(const HostView *view, const PciDevice *dev, Refusal *ret);

/* Returns the state of the device. *ret (ret may be NULL): why the device is not available; or a warning about an
 * available device: it does not exist yet, each release will put it in quarantine, or guests get it without its memory.
 */
DeviceState device_state(const HostView *view, const PciDevice *dev, Refusal *ret);
