/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The width of the terminal, and wrapping text to it. */

#include <stddef.h>
#include <stdio.h>

#include "util/cleanup.h"

/* Returns the width of standard output in columns: $COLUMNS, else the width of the terminal, else 80. */
size_t page_width(void);

/* Prints the text and a newline to f, wrapped at spaces to the width of f. A word longer than a line is not broken.
 * used: columns of the first line that the caller has printed; indent: spaces before each further line. Text to stderr
 * is wrapped only on a terminal, because programs that read a log or a pipe expect one line per message. */
void page_wrap(FILE *f, const char *text, size_t used, size_t indent);

/* Formats a text and prints it as page_wrap(). */
void page_print(FILE *f, size_t indent, const char *format, ...) _printf_(3, 4);
