/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The parts of the picture of a node; topology-svg*.c only. */

#include "picture.h"
#include "topology.h"

#define SVG_MARGIN     24
#define SVG_GAP        16
#define SVG_NODE_WIDTH 660
#define SVG_PAD        14

typedef struct Drawing {
        Picture picture;
        Items items;
        Members members;
        json_object *node, *matrix; /* of DescribeTopology; NULL: no matrix */
        bool all;
} Drawing;

/* Where something is to be put, and whether to draw it or only to say how high it would be. */
typedef struct Spot {
        int x, y, width;
        bool draw;
} Spot;

extern const Font svg_title, svg_heading, svg_text, svg_strong, svg_small, svg_small_strong, svg_dim;

/* Fill, border and the strong colour of a state. */
typedef struct StateLook {
        Look look;
        const char *strong;
} StateLook;
const StateLook *svg_state_look(const char *state);

/* topology-svg-devices.c. The root complexes of a section with all below them, side by side. Returns the height. */
int svg_devices(Drawing *d, int64_t section, Spot s);

/* topology-svg-node.c. One NUMA node, or another section where node is NULL, in a box of that height. */
int svg_section(Drawing *d, json_object *node, int64_t section, int height, Spot s);

/* topology-svg-matrix.c. How far GPUs and NICs are apart, what the words mean, and what ACS makes of it. */
int svg_matrix(Drawing *d, Spot s);
