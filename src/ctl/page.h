/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The width of standard output, and text wrapped at it. */

#include <stddef.h>

/* In columns: the environment variable COLUMNS, else the width of the terminal, else 80. */
size_t page_width(void);

/* Prints the text and a newline, wrapped at spaces to page_width(). A word longer than a line is not broken. used: the
 * columns that the caller has printed on the first line; indent: the spaces before each further line. */
void page_wrap(const char *text, size_t used, size_t indent);
