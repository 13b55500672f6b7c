/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The width of the terminal, and text wrapped at it. */

#include <stddef.h>
#include <stdio.h>

#include "util/cleanup.h"

/* Returns the width of standard output in columns: the environment variable COLUMNS, else the width of the terminal,
 * else 80. */
size_t page_width(void);

/* Prints the text and a newline to f, wrapped at spaces to the width of f. A word longer than a line is not broken.
 * used: the columns that the caller has printed on the first line; indent: the spaces before each further line. Text on
 * stderr is wrapped only on a terminal, because programs that read a log or a pipe expect one line per message. */
void page_wrap(FILE *f, const char *text, size_t used, size_t indent);

/* Formats a text and wraps it. */
void page_print(FILE *f, size_t indent, const char *format, ...) _printf_(3, 4);
