/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a configuration means for what was promised under an earlier one: an allocation keeps what it has. */

#include "core/ledger.h"
#include "core/policy.h"

/*
 * VERDICT_INVALID_REQUEST, naming both, when a PF is in an allocation and its VFs are, or would be made to be, on
 * offer: the same hardware twice. Such a config is not to be taken.
 */
Verdict promise_check(const Policy *p, const Ledger *l, Refusal *ret);

/* The holder of dev asked for it in a pool, and no pool offers it any more: it leaves when it is released. */
bool promise_is_dropped(const Policy *p, const Allocation *holder, const PciDevice *dev);
/* That of any of its devices. */
bool promise_has_dropped(const Policy *p, const Allocation *a);
