/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A drawing for people on stdout: lines of text and rows of columns below a tree, as wide as the terminal at most. */

#include <stdbool.h>
#include <stddef.h>

#include "util/cleanup.h"

#define GRID_COLUMNS 5U
#define GRID_WIDTH   80U /* where there is no terminal */

typedef enum Tint {
        TINT_NONE,
        TINT_BOLD,
        TINT_DIM,
        TINT_GREEN,
        TINT_YELLOW,
        TINT_RED,
        _TINT_MAX,
} Tint;

typedef struct GridLine {
        char *lead;                /* branches of the tree, before the first cell */
        char *cells[GRID_COLUMNS]; /* all but the first NULL: a line of text, not of columns */
        Tint tint;
} GridLine;

typedef struct Grid {
        GridLine *lines;
        size_t n;
        size_t width; /* of the terminal */
        bool utf8;    /* the locale has box characters and an ellipsis */
        bool colour;  /* a terminal, and NO_COLOR is not set */
        bool failed;  /* out of memory: lines are missing */
} Grid;

/* Looks at stdout, locale and environment. */
void grid_init(Grid *g);
void grid_done(Grid *g);
#define _cleanup_grid_ _cleanup_(grid_done)

void grid_text(Grid *g, Tint tint, const char *lead, const char *format, ...) _printf_(4, 5);
/* cells: GRID_COLUMNS, copied. */
void grid_row(Grid *g, Tint tint, const char *lead, const char *const *cells);
/* The names of the columns, which are the same in all drawings. */
void grid_header(Grid *g);
/* What cannot stand in width columns is cut, with an ellipsis. 0 or -ENOMEM. */
int grid_print(const Grid *g);

/* lead and one more branch; below: what goes before the lines under it. NULL when out of memory. The caller frees. */
char *grid_branch(const Grid *g, const char *lead, bool last, bool below);
