/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* CPUs and memory: which host CPUs a node can give, and how pinned vCPUs and memory become guest NUMA cells. Pure. */

#include "ledger/allocation.h"
#include "model/refusal.h"

/*
 * Guest cells from pins: one cell per host node that has a pinned CPU, ascending by node id, guest ids dense; memory
 * split as evenly as whole pages allow, the remainder to the first cells, the sum exact (scenarios F1, F2). page_size 0
 * counts in 4 KiB pages. Refuses a pin to a CPU that is on no node (F5), less than one page per cell or a sum that is
 * not whole pages (F6), too many cells. Sets a->cells; needs a->pins.
 */
Verdict placement_cells(const Inventory *inv, uint64_t memory, uint64_t page_size, Allocation *a, Refusal *ret);
