/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by ledger.c, ledger-check.c and ledger-regions.c only. */

#include "ledger/ledger.h"

/* Adds an allocation without checks. 0, or -ENOMEM, which changes nothing. */
int ledger_enter(Ledger *l, Allocation *a);

/* Returns the claim on a node and page size. Adds one if there is none; the caller has reserved the room. */
MemoryClaim *ledger_memory_claim(Ledger *l, int node, uint64_t page_size);

/*
 * The following functions are in ledger-regions.c. Reserves the memory for adding the regions of `a`, so that adding
 * them cannot fail halfway. 0, or -ENOMEM, which changes nothing.
 */
int ledger_reserve_regions(Ledger *l, const Allocation *a);
void ledger_enter_regions(Ledger *l, Allocation *a);
void ledger_leave_regions(Ledger *l, Allocation *a);
void ledger_free_regions(Ledger *l);
/* Adds or subtracts one ready member in the regions of `a`. */
void ledger_count_ready(Ledger *l, const Allocation *a, bool ready);
/* Checks that the owner of `a` may use its regions, and that `a` describes them as the ledger does. */
Verdict ledger_check_regions(const Ledger *l, const Allocation *a, Refusal *ret);
/* Returns the bytes of the regions of `a` on that node and page size that are not in the ledger yet. */
uint64_t ledger_new_regions(const Ledger *l, const Allocation *a, int node, uint64_t page_size);
