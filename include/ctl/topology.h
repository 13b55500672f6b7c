/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The parts of "passthroughctl topology"; nobody else includes it. */

#include "ctl/grid.h"
#include "ctl/reply.h"

/* Where devices go that say no node, and those of allocations that are gone. */
#define SECTION_UNKNOWN INT64_C(-1)
#define SECTION_MISSING INT64_C(-2)

typedef struct Item {
        json_object *device;
        const char *address;
        int64_t section; /* NUMA node id, or one of the above */
        struct Item *above;
        struct Item *root;         /* for those that are drawn below a root complex: an item without a device */
        struct Item *child, *next; /* as drawn in one section */
        bool is_bridge, is_vf, over_bridges;
} Item;

typedef struct Items {
        Item *all; /* as DescribeTopology lists them: each after what is above it */
        size_t n;
        Item *roots;
        size_t n_roots;
} Items;

/* node: of DescribeTopology, which has to live as long. 0 or -ENOMEM. */
int items_init(Items *items, json_object *node);
void items_done(Items *items);
#define _cleanup_items_ _cleanup_(items_done)

/* Adds the devices of one section, with what is above them, to the drawing. all: nothing is folded or left out. */
void items_draw(Items *items, int64_t section, bool all, Grid *g);

/* What people call it: without the maker, and of "GH100 [H100 SXM5 80GB]" only the product. The caller frees; NULL when
 * out of memory. */
char *device_short_name(json_object *device);

/* topology-matrix.c. The matrix for people; an exit status or a negative errno, reported. */
int matrix_print(const Args *args, json_object *node);
