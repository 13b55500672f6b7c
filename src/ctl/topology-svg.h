/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the files topology-svg*.c, which draw the picture of a node. Lengths are in pixels. */

#include "picture.h"
#include "topology.h"

#define SVG_MARGIN     24
#define SVG_GAP        16
#define SVG_NODE_WIDTH 660 /* width of one NUMA node; other sections are as wide as the page */
#define SVG_PAD        14

typedef struct Drawing {
        Picture picture;
        Items items;
        Members members;
        json_object *node, *matrix; /* node: the reply to DescribeTopology; matrix: its member, may be NULL */
        bool all;
} Drawing;

/* A place in the picture. A function with a Spot that returns int returns the height that it needs; with draw false it
 * only measures. */
typedef struct Spot {
        int x, y, width;
        bool draw;
} Spot;

extern const Font svg_title, svg_heading, svg_text, svg_strong, svg_small, svg_small_strong, svg_dim;

/* strong: the colour of text. */
typedef struct UseLook {
        Look look;
        const char *strong;
} UseLook;
extern const UseLook svg_use_looks[_USE_MAX];

/* Returns the place that begins height pixels further down. */
Spot svg_below(Spot s, int height);

/* Columns of boxes; each box goes to the column that is shortest so far. */
#define SVG_COLUMNS_MAX 8
typedef struct Columns {
        Spot all;
        int n, width, gap, heights[SVG_COLUMNS_MAX];
        int column; /* the column of the last spot that columns_next() returned */
} Columns;

/* Begins as many columns, each at least min wide with a gap between them, as fit into s. */
Columns columns_of(Spot s, int min, int gap);
Spot columns_next(Columns *c);
/* Makes the column of the last spot higher. */
void columns_grow(Columns *c, int height);
int columns_height(const Columns *c);

/* topology-svg-devices.c: places the root complexes of a section side by side, each with the devices below it. */
int svg_devices(Drawing *d, int64_t section, Spot s);

/* topology-svg-matrix.c: places the distances between GPUs and NICs, a legend, and notes on peer-to-peer access. */
int svg_matrix(Drawing *d, Spot s);
/* Returns the width of the table of distances; 0 when there is none. */
int svg_matrix_width(const Drawing *d);
