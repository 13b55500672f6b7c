/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the two halves of the ledger, ledger.c and ledger-check.c; nobody else includes it. */

#include "core/ledger.h"

/* Enters a without asking. -ENOMEM changes nothing. */
int ledger_enter(Ledger *l, Allocation *a);
