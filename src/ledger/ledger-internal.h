/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the parts of the ledger, ledger.c, ledger-check.c and ledger-regions.c; nobody else includes it. */

#include "ledger/ledger.h"

/* Enters a without asking. -ENOMEM changes nothing. */
int ledger_enter(Ledger *l, Allocation *a);

/* The claim on a node and page size; made where there is none, for which there has to be room. */
MemoryClaim *ledger_memory_claim(Ledger *l, int node, uint64_t page_size);

/* ledger-regions.c. Room to enter those of a: without that entering fails half-way. -ENOMEM changes nothing. */
int ledger_reserve_regions(Ledger *l, const Allocation *a);
void ledger_enter_regions(Ledger *l, Allocation *a);
void ledger_leave_regions(Ledger *l, Allocation *a);
void ledger_free_regions(Ledger *l);
/* The regions of a have one ready member more, or one less. */
void ledger_count_ready(Ledger *l, const Allocation *a, bool ready);
/* Whether its owner may have those of a, and nobody was told something else about them. */
Verdict ledger_check_regions(const Ledger *l, const Allocation *a, Refusal *ret);
/* Bytes on that node and page size of those of a that the ledger has not. */
uint64_t ledger_new_regions(const Ledger *l, const Allocation *a, int node, uint64_t page_size);
