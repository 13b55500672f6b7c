/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Facts that only the checks need. */

#include "plan/check.h"

/* Fills unsafe_interrupts, idle_d3_disabled and, if facts->running, what follows it except daemon. facts: with policy.
 * A file that cannot be read leaves its fact unknown. 0 or a negative errno. */
int check_facts_read(const char *root, CheckFacts *facts);
