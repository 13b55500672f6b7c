/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads hand-written .tree files: sections, braces, += and directives, which a recording does not have. */
#pragma once

#include <stdbool.h>

#include "util/tree.h"

/* Functions for items and directives. A negative result ends the read, which returns it. */
typedef struct ShorthandFunctions {
        int (*item)(const TreeLine *line, bool append, void *userdata); /* append: NAME+=VALUE */
        int (*directive)(const char *name, const char *rest, void *userdata);
} ShorthandFunctions;

/* Calls the functions for each item and for each directive except %include, in order. Prints errors on stderr. */
int shorthand_read(const char *file, const ShorthandFunctions *functions, void *userdata);
