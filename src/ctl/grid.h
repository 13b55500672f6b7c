/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Text output for a terminal: lines of text and rows of columns, both behind the branches of a tree. Lines are at most
 * as wide as the terminal. */

#include <stdbool.h>
#include <stddef.h>

#include "util/cleanup.h"

#define GRID_COLUMNS 5U
#define GRID_WIDTH   80U /* when stdout is not a terminal */

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
        char *lead;                /* the branches of the tree, printed before the first cell */
        char *cells[GRID_COLUMNS]; /* a line of text has only the first cell, the others are NULL */
        Tint tint;
} GridLine;

typedef struct Grid {
        GridLine *lines;
        size_t n;
        size_t width; /* columns of the terminal */
        bool utf8;    /* the locale is UTF-8: use box characters and an ellipsis */
        bool colour;  /* stdout is a terminal and NO_COLOR is not set */
        bool failed;  /* out of memory: lines are missing, grid_print() will fail */
} Grid;

/* Takes width, character set and colour from stdout, the locale and the environment. The caller calls grid_done(). */
void grid_init(Grid *g);
void grid_done(Grid *g);
#define _cleanup_grid_ _cleanup_(grid_done)

/* Adds a line of text. Text is copied. */
void grid_text(Grid *g, Tint tint, const char *lead, const char *format, ...) _printf_(4, 5);
/* Adds a row. cells: GRID_COLUMNS strings, copied. */
void grid_row(Grid *g, Tint tint, const char *lead, const char *const *cells);
/* Adds a row with the names of the columns, which are the same for all verbs. */
void grid_header(Grid *g);
/* Prints all lines; text wider than its column is cut and ends with an ellipsis. 0, or -ENOMEM when g->failed. */
int grid_print(const Grid *g);

/* Appends a branch to lead: for the line of a child (last: the last one), or with below for the lines under that
 * child. NULL when out of memory. The caller frees. */
char *grid_branch(const Grid *g, const char *lead, bool last, bool below);
