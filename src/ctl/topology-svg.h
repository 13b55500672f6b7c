/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The picture of a node: what its files topology-svg*.c share. All lengths are in pixels. */

#include "picture.h"
#include "topology.h"

#define SVG_MARGIN     24
#define SVG_GAP        16
#define SVG_NODE_WIDTH 660 /* width of a NUMA node; other sections have the width of two NUMA nodes and a gap */
#define SVG_PAD        14

typedef struct Drawing {
        Picture picture;
        Items items;
        Members members;
        json_object *node, *matrix; /* node: the reply to DescribeTopology; matrix: a member of it, or NULL */
        bool all;
} Drawing;

/* A place in the picture. A function that takes a Spot and returns int returns the height that it uses. If `draw` is
 * false, the function only measures the height, and draws nothing. */
typedef struct Spot {
        int x, y, width;
        bool draw;
} Spot;

extern const Font svg_title, svg_heading, svg_text, svg_strong, svg_small, svg_small_strong, svg_dim;

/* The colours for a Use. strong: the colour of text. */
typedef struct UseLook {
        Look look;
        const char *strong;
} UseLook;
extern const UseLook svg_use_looks[_USE_MAX];

/* Returns the place that begins `height` pixels below s. */
Spot svg_below(Spot s, int height);

/* Columns of boxes. The next box is placed in the column that is the shortest so far. */
#define SVG_COLUMNS_MAX 8
typedef struct Columns {
        Spot all;
        int n, width, gap, heights[SVG_COLUMNS_MAX];
        int column; /* the column of the Spot that columns_next() has returned last */
} Columns;

/* Divides s into as many columns as fit, at most SVG_COLUMNS_MAX, each at least `min` wide and `gap` apart. If s is
 * narrower, makes one column. */
Columns columns_of(Spot s, int min, int gap);
Spot columns_next(Columns *c);
/* Records that a box of this height was placed at the Spot that columns_next() has returned last. */
void columns_grow(Columns *c, int height);
int columns_height(const Columns *c);

/* topology-svg-devices.c: places the root complexes of a section side by side, each with the devices below it. Returns
 * the height. */
int svg_devices(Drawing *d, int64_t section, Spot s);

/* topology-svg-matrix.c: places the distances between GPUs, other accelerators and NICs, their legend, and notes on
 * peer-to-peer access. Returns the height. */
int svg_matrix(Drawing *d, Spot s);
/* Returns the width of the table of distances; 0 when there is none, because the matrix has too few or too many
 * devices. */
int svg_matrix_width(const Drawing *d);
