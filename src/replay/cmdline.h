/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Removes identifying values from a kernel command line. */

#include "identity.h"

/* Writes text to f, with a hash for each value except values of keys that are known to be harmless. Flags and keys
 * stay; a hash replaces a word that is not a valid flag or key. Modifies text. */
void cmdline_write(const Identities *i, char *text, FILE *f);
