/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The small language inside a line of a .tree file: {A-B} in paths, {} in values, backslash escapes. */
#pragma once

#include <stddef.h>
#include <stdio.h>

typedef int (*ExpandFunction)(void *userdata, const char *path, const char *value);

/* Calls the function once per path that the braces stand for. Stops at, and returns, its first error; -EINVAL when the
 * braces make no sense. */
int expand(const char *path, const char *value, ExpandFunction function, void *userdata);

char *unescape(const char *s, size_t *ret_size); /* NULL if an escape is wrong */
void escape(FILE *f, const char *s, size_t size);
