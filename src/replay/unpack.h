/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Unpacks a .tree file, which may be hostile, into a directory. */

/* dir: a new directory. On failure *ret_problem (caller frees) is a sentence, or NULL. */
int unpack_tree(const char *file, const char *dir, char **ret_problem);
