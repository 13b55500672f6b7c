/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Translates a consumer's claim in Placement to operands and options of 'passthroughctl allocate'. They have the
 * devices, slots, CPUs and memory that the claim has on this node. Pure.
 */

#include "tree.h"

/*
 * Makes the text. describe: the daemon's document. Returns 0; -ENOENT: the claim has no part on this node; -EBUSY:
 * fewer devices or slots of a provider are available than claimed; -EBADMSG for a document that the daemon does not
 * send; -ENOMEM. The caller frees *ret.
 */
int claim_request(const Claim *claim, const char *host, json_object *describe, char **ret);
