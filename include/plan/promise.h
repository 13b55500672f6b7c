/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Whether the node can still give an allocation what was promised. Two things can break a promise: a configuration that
 * was loaded later (the allocation keeps its devices), and a change of the node. Each call looks at the facts anew; no
 * result is cached.
 */

#include "plan/plan.h"

/*
 * VERDICT_INVALID_REQUEST when an allocation holds a PF and a pool offers VFs of the same PF, or would create them: the
 * same hardware would be given twice. The refusal names the allocation and the pool. The daemon rejects such a
 * configuration.
 */
Verdict promise_check_config(const Policy *p, const Ledger *l, Refusal *ret);

/*
 * True when no pool offers dev any more, and holder got dev from a pool. dev then returns to the host when holder is
 * released.
 */
bool device_left_pools(const Policy *p, const Allocation *holder, const PciDevice *dev);
/* True when device_left_pools() is true for any device of a. */
bool allocation_left_pools(const Policy *p, const Allocation *a);

/*
 * VERDICT_NONE when a guest may use device d of allocation a. The device is on the node, it is the card that was
 * allocated, and no other device of its IOMMU group makes the group unusable for a guest. When a is ready, the device
 * is also bound to its VFIO driver, and the PF of a VF reports the attributes that were promised. Otherwise
 * VERDICT_MISSING, _HARDWARE_CHANGED, _NO_IOMMU, _GROUP_NOT_VIABLE, _STUCK, _NO_VFIO_DRIVER, _NO_VGPU or _CONTESTED. A
 * device that is not settled is accepted.
 */
Verdict promise_check_device(const HostView *view, const Allocation *a, const AllocationDevice *d, Refusal *ret);
/*
 * As promise_check_device() for all devices of a, but with any driver and any attributes, and with a vGPU or with room
 * for it: the conditions for binding the first device. a need not be in the ledger; claims of an allocation with the
 * same name count as claims of a.
 */
Verdict promise_check_hardware(const HostView *view, const Allocation *a, Refusal *ret);
/*
 * VERDICT_NONE when a guest can run with the ready allocation a as promised: promise_check_device() accepts all its
 * devices, its NVLink partition is active, its CPUs are online, its NUMA nodes have the memory promised to allocations,
 * and its shared memory still exists. Memory is not checked while a guest runs with a: the guest has its memory
 * already. Otherwise also VERDICT_INSUFFICIENT_CPUS or _INSUFFICIENT_MEMORY. Following the remedy does not disturb a
 * running guest.
 */
Verdict promise_check_kept(const HostView *view, const Allocation *a, Refusal *ret);
