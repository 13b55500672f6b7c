/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The kernel command line without what tells whose machine it is. */

#include "identity.h"

/*
 * A copy with the values that are not known to be harmless replaced by hashes; words and keys stay, but for what is
 * none. NULL when out of memory.
 */
char *cmdline_scrub(const Identities *i, const char *text);
