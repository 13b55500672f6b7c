/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Guest NUMA cells from pinned vCPUs and memory. Pure. */

#include "ledger/allocation.h"
#include "model/refusal.h"

/*
 * Sets a->cells from a->pins: one guest cell for each host node with a pinned CPU, ascending by node id. Memory is
 * split evenly in whole pages; the first cells get the remainder (scenarios F1, F2). page_size 0 means pages of 4 KiB.
 * Refuses a pin to a CPU without a node (F5), less than one page for each cell or memory that is not whole pages (F6),
 * and too many cells.
 */
Verdict placement_cells(const Inventory *inv, uint64_t memory, uint64_t page_size, Allocation *a, Refusal *ret);
