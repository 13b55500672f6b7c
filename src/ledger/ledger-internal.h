/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Functions that ledger.c, ledger-check.c and ledger-regions.c share. */

#include "ledger/ledger.h"

/* Adds an allocation without checks. 0, or -ENOMEM, which changes nothing. */
int ledger_enter(Ledger *l, Allocation *a);

/* Returns the memory claim for this node and page size. If there is none, adds an empty one to the room that the caller
 * has reserved. */
MemoryClaim *ledger_memory_claim(Ledger *l, int node, uint64_t page_size);

/* The following functions are in ledger-regions.c. */

/* Adds the new regions of `a` without members, and reserves memory for the members, so that ledger_enter_regions()
 * cannot fail. 0, or -ENOMEM, which changes nothing. */
int ledger_reserve_regions(Ledger *l, const Allocation *a);
void ledger_enter_regions(Ledger *l, Allocation *a);
void ledger_leave_regions(Ledger *l, Allocation *a);
void ledger_free_regions(Ledger *l);
/* Adds (`ready` is true) or subtracts one ready member in each region of `a`. */
void ledger_count_ready(Ledger *l, const Allocation *a, bool ready);
/* Refuses if `a` has a region of another owner, describes a region otherwise than the ledger does, or has more new
 * regions than the ledger has room for. */
Verdict ledger_check_regions(const Ledger *l, const Allocation *a, Refusal *ret);
/* Returns how many bytes in pages of this size the regions of `a` that are not in the ledger yet need on the node. */
uint64_t ledger_new_regions(const Ledger *l, const Allocation *a, int node, uint64_t page_size);
