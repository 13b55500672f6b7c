/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Whether promises hold: against a configuration that came later (an allocation keeps what it has), and against the
 * node as it is now (which may have lost what was promised). The facts decide each time: no result is kept.
 */

#include "plan/plan.h"

/*
 * VERDICT_INVALID_REQUEST, naming both, when a PF is in an allocation and its VFs are, or would be made to be, on
 * offer: the same hardware twice. Such a config is not to be taken.
 */
Verdict promise_check(const Policy *p, const Ledger *l, Refusal *ret);

/* The holder of dev asked for it in a pool, and no pool offers it any more: it leaves when it is released. */
bool promise_is_dropped(const Policy *p, const Allocation *holder, const PciDevice *dev);
/* That of any of its devices. */
bool promise_has_dropped(const Policy *p, const Allocation *a);

/*
 * VERDICT_NONE when a guest may have the device d of a: it is on the node, it is the card that was allocated, no other
 * device of its IOMMU group keeps the group from a guest, and, when a is ready, it is bound to its VFIO driver and its
 * PF, when it is a VF, reports the attributes that it was promised with. Else VERDICT_MISSING, _HARDWARE_CHANGED,
 * _NO_IOMMU, _GROUP_NOT_VIABLE, _STUCK, _NO_VFIO_DRIVER or _CONTESTED.
 */
Verdict promise_check_device(const HostView *c, const Allocation *a, const AllocationDevice *d, Refusal *ret);
/*
 * The same of all devices of a, except that they may be bound to any driver: what has to hold before one of them is
 * bound. a need not be in the ledger; claims of an allocation of its name are its own.
 */
Verdict promise_check_hardware(const HostView *c, const Allocation *a, Refusal *ret);
/*
 * VERDICT_NONE when a guest can run with a, which is ready, as it was promised: promise_check_device() of all its
 * devices, its CPUs are online, its NUMA nodes have the memory that allocations were promised, and the memory that it
 * shares was not removed. A guest that runs has its own memory. Else also VERDICT_INSUFFICIENT_CPUS or
 * _INSUFFICIENT_MEMORY. The remedy disturbs no guest.
 */
Verdict promise_check_kept(const HostView *c, const Allocation *a, Refusal *ret);
