/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Checks whether the node can still give an allocation what was promised. Two events can break a promise: loading
 * another configuration (the allocation keeps its devices), and a change of the node. Each call checks the current
 * facts; no result is cached.
 */

#include "plan/plan.h"

/*
 * Refuses with VERDICT_INVALID_REQUEST when an allocation has a PF and a pool offers VFs of this PF, or would create
 * them on a PF that is no display: the same hardware would be given twice. The refusal names the allocation and the
 * pool. The daemon rejects such a configuration.
 */
Verdict promise_check_config(const Policy *p, const Ledger *l, Refusal *ret);

/* Returns true when holder got dev from a pool, and no pool has dev any more or the policy now excludes it: dev then
 * returns to the host when holder is released. */
bool device_left_pools(const Policy *p, const Allocation *holder, const PciDevice *dev);
/* Returns true when device_left_pools() is true for any device of the allocation. */
bool allocation_left_pools(const Policy *p, const Allocation *a);

/*
 * Returns VERDICT_NONE when a guest may use device `d` of allocation `a`: the device is on the node, it is the
 * allocated card, and no other device makes its IOMMU group unusable for a guest. If `a` is ready, the device must also
 * be bound to its driver (allocation_driver()) and have its vGPU, and the PF of a VF must not report other attributes
 * than the promised ones. Otherwise returns VERDICT_MISSING, _HARDWARE_CHANGED, _NO_IOMMU, _GROUP_NOT_VIABLE, _STUCK,
 * _NO_VFIO_DRIVER, _NO_VGPU or _CONTESTED. A device that is not settled is accepted. Before `a` is ready, and while a
 * job works on a device (DEVICE_BUSY), the driver and the attributes are not checked, and a vGPU may be missing if the
 * GPU has room for it.
 */
Verdict promise_check_device(const HostView *view, const Allocation *a, const AllocationDevice *d, Refusal *ret);
/*
 * As promise_check_device() for all devices of `a`, but accepts any driver, any attributes, a device on which a job
 * hangs, and a missing vGPU if the GPU has room for it: these are the conditions for preparing the devices. `a` need
 * not be in the ledger; claims of an allocation with the same name count as claims of `a`.
 */
Verdict promise_check_hardware(const HostView *view, const Allocation *a, Refusal *ret);
/*
 * Returns VERDICT_NONE when a guest can run with the ready allocation `a` as promised: promise_check_device() accepts
 * all its devices, its NVLink partition is active, its CPUs are online, its NUMA nodes have the memory promised to
 * allocations, and its shared memory still exists. The amount of memory is not checked while a guest runs with `a`,
 * because the guest has its memory already. Otherwise returns a verdict of promise_check_device(),
 * VERDICT_INSUFFICIENT_CPUS or _INSUFFICIENT_MEMORY.
 */
Verdict promise_check_kept(const HostView *view, const Allocation *a, Refusal *ret);
