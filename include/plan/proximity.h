/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The proximity of a request as text: "switch" is the limit between GPUs and their NICs, "gpu:disk=node" that between
 * two pools. Commas separate limits. Pure. */

#include "plan/request.h"

/* Parses text, and adds its limits to the request. VERDICT_NONE, VERDICT_INVALID_REQUEST, or VERDICT_LIMIT: out of
 * memory. */
Verdict proximity_parse(const char *text, Request *r, Refusal *ret);

/* Formats one limit: "gpu:disk=node". NULL: out of memory. */
char *request_limit_format(const RequestLimit *l);

/* Formats all limits of the request: "switch,gpu:disk=node"; "any" when there are none. NULL: out of memory. */
char *request_proximity_format(const Request *r);

/*
 * Checks that both pools of each limit are in the request and that no two pools have more than one limit. VERDICT_NONE
 * or VERDICT_INVALID_REQUEST.
 */
Verdict request_check_limits(const Request *r, Refusal *ret);
