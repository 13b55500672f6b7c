/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Brace expansion in lines of a hand-written .tree file. */
#pragma once

typedef int (*ExpandFunction)(const char *path, const char *value, void *userdata);

/*
 * Calls the function for each path with its value. Returns -EINVAL for invalid braces, -E2BIG for a too long path, or
 * the result of the function.
 */
int tree_expand(const char *path, const char *value, ExpandFunction f, void *userdata);
