/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads hand-written .tree files: sections, braces, += and directives, which a recording does not have. */
#pragma once

#include <stdbool.h>

#include "util/tree.h"

/* What a negative return value of a function stops, which is then returned. */
typedef struct ShorthandFunctions {
        int (*item)(const TreeLine *line, bool append, void *userdata); /* append: of NAME+=VALUE */
        int (*directive)(const char *name, const char *rest, void *userdata);
} ShorthandFunctions;

/* Calls the functions for each item and each directive but %include, in order. Prints what is wrong on stderr. */
int shorthand_read(const char *file, const ShorthandFunctions *functions, void *userdata);
