/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Removes identifying values from a kernel command line. */

#include "identity.h"

/*
 * Returns a copy in which a hash replaces each value, except values of keys that are known to be harmless. Flags and
 * keys stay; a hash replaces a word that is not a valid flag or key. NULL when out of memory.
 */
char *cmdline_scrub(const Identities *i, const char *text);
