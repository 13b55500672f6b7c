/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The proximity of a request as text: "switch" for GPUs and their NICs, "gpu:disk=node" for two pools, or several of
 * these with commas between. Pure. */

#include "plan/request.h"

/* Adds to what the request has. VERDICT_NONE or VERDICT_INVALID_REQUEST with the sentence. */
Verdict proximity_parse(const char *text, Request *r, Refusal *ret);

/* "gpu:disk=node". NULL: out of memory. */
char *request_limit_format(const RequestLimit *l);

/* All that it limits, "switch,gpu:disk=node"; "any" when that is nothing. NULL: out of memory. */
char *request_proximity_format(const Request *r);

/* Limits are between pools of the request, at most one for two of them. As request_check(). */
Verdict request_check_limits(const Request *r, Refusal *ret);
