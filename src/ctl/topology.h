/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The parts of "passthroughctl topology"; nobody else includes it. Grid for terminals, picture for files: both draw the
 * same items. */

#include "grid.h"
#include "reply.h"

/* Where devices go that say no node, and those of allocations that are gone. */
#define SECTION_UNKNOWN   INT64_C(-1)
#define SECTION_MISSING   INT64_C(-2)
#define SECTION_TITLE_MAX 80U

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

/* Links child and next of items and roots to what a drawing of this section shows: bridges that lead to one thing only
 * are folded away, and what is of no interest. all: nothing is. */
void items_link(Items *items, int64_t section, bool all);
/* Links the section, and adds it to the drawing. */
void items_draw(Items *items, int64_t section, bool all, Grid *g);

/* Item is the first of a list of VFs that stand together, below their PF. */
bool item_begins_vfs(const Item *item);
/* "12 available, 1 stuck", of those nobody has; "4 in vm7, vm9" or "-". The caller frees; NULL when out of memory. */
char *vfs_states(const Item *vfs);
char *vfs_holders(const Item *vfs);
/* The pool of all, "several", or "-". */
const char *vfs_pool(const Item *vfs);

/* "pci0000:10", of whatever is above that. */
const char *root_name(const Item *root);
/* "switch", of a bridge. */
const char *bridge_word(const Item *item);
/* What people call it: without the maker, and of "GH100 [H100 SXM5 80GB]" only the product. The caller frees; NULL when
 * out of memory. */
char *device_short_name(json_object *device);

/* topology-sections.c: what is left in a section, "2 of 4 gpu, 62 of 64 rdma". NULL where no pool is. 0 or -ENOMEM. */
int items_offers(const Items *items, int64_t section, char **ret);
/* How far the other nodes are, "21 to node 1, 31 to node 2". NULL where there are none. 0 or -ENOMEM. */
int node_distances(json_object *node, const char *id, char **ret);
/* The next section above this one that some device is in and that is none of the node's list. */
bool items_next_section(const Items *items, json_object *node, int64_t *section);
const char *section_title(int64_t section, char buf[static SECTION_TITLE_MAX]);
/* 0 for a member that is missing or negative. */
uint64_t number_of(json_object *o, const char *key);
/* In GiB, rounded down: there is at least that much. */
typedef struct Size {
        char text[24];
} Size;
Size size_round(uint64_t bytes);

/* topology-matrix.c. One device of the matrix. VFs stand where their PF does. */
typedef struct Member {
        const Item *item;
        size_t at;                     /* row and column in the document */
        size_t n_vfs, available;       /* VFs in pools */
        const char *pool, *allocation; /* its own, or the first of its VFs' */
        char label[16];                /* "GPU0" */
} Member;

typedef struct Members {
        Member *all;
        size_t n, left_out;
        size_t label_width;
} Members;

/* Those that are or have something in a pool; all where nothing is in a pool, or all is set. 0, -ENOMEM or -EBADMSG. */
int members_init(Members *m, const Items *items, json_object *matrix, bool all);
void members_done(Members *m);
#define _cleanup_members_ _cleanup_(members_done)
/* NULL when it is none. */
const Member *members_find(const Members *m, const char *address);
const char *matrix_distance(json_object *matrix, const Member *a, const Member *b);

/* "GPU0, NIC0: peer-to-peer redirected by ACS at ...", of an element of the matrix's pairs; *ret is NULL where there is
 * nothing to say, because one is not shown, or nothing is in the way. The caller frees. 0 or -ENOMEM. */
int pair_note(const Members *m, json_object *pair, char **ret);
bool pair_is_redirected(json_object *pair);

#define DISTANCE_WORDS 6U
typedef struct DistanceWord {
        const char *word, *meaning;
} DistanceWord;
extern const DistanceWord distance_words[DISTANCE_WORDS];

/* The matrix for people; an exit status or a negative errno, reported. */
int matrix_print(const Args *args, json_object *node);

/* topology-svg.c: the node as a picture, to the file of --svg; as above. */
int svg_print(const Args *args, json_object *node);
