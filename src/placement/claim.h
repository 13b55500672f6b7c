/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A consumer's claim in Placement as operands and options of 'passthroughctl allocate': which devices, slots,
 * CPUs and memory of this node it is. Pure.
 */

#include "tree.h"

/*
 * describe: the daemon's document. 0; -ENOENT: the claim has nothing on this node; -EBUSY: fewer devices or slots
 * of a provider are available than claimed; -EBADMSG; -ENOMEM. The caller frees *ret.
 */
int claim_request(const Claim *claim, const char *host, json_object *describe, char **ret);
