/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the files topology*.c of "passthroughctl topology" share. The same items are drawn as a tree on a terminal, and
 * as a picture in an SVG file. */

#include "reply.h"

/* The sections that are not NUMA nodes: one for devices whose NUMA node is unknown, one for allocated devices that are
 * missing. */
#define SECTION_UNKNOWN   INT64_C(-1)
#define SECTION_MISSING   INT64_C(-2)
#define SECTION_TITLE_MAX 80U

typedef struct Item {
        json_object *device;
        const char *address;
        int64_t section;           /* id of a NUMA node, SECTION_UNKNOWN or SECTION_MISSING */
        struct Item *above;        /* the bridge above a device, or the PF of a VF; NULL: on a root bus, or missing */
        struct Item *root;         /* its root complex, in Items.roots; a root complex has no device */
        struct Item *child, *next; /* set by items_link() */
        bool is_bridge, is_vf, has_bridges; /* has_bridges: a bridge is directly below it */
} Item;

typedef struct Items {
        Item *all; /* in the order of DescribeTopology, depth first */
        size_t n;
        Item *roots;
        size_t n_roots;
} Items;

/* Reads the items of `node`, the reply to DescribeTopology, which must outlive them. Returns 0 or -ENOMEM; the caller
 * calls items_done() in both cases. */
int items_init(Items *items, json_object *node);
void items_done(Items *items);
#define _cleanup_items_ _cleanup_(items_done)

/* Links the items and roots of a section to a tree (child, next). Unless `all` is set, leaves out bridges that have no
 * child, a single child or only functions of one card below, and platform devices that are in no pool and have the
 * state "host". */
void items_link(Items *items, int64_t section, bool all);
/* Calls items_link() and prints the tree. Returns 0 or a negative errno, reported. */
int items_print(Items *items, int64_t section, const Args *args);

/* What the state of a device means for users who want devices. The tree and the picture have a colour for each Use. */
typedef enum Use {
        USE_AVAILABLE,
        USE_ALLOCATED, /* or reserved for an allocation */
        USE_HOST,
        USE_NONE, /* not usable now */
        _USE_MAX,
} Use;
Use use_from_state(const char *state);
/* Returns the use of a list of VFs: the first Use of the enum that one of the VFs has. */
Use vfs_use(const Item *vfs);

/* Returns true when the item is a VF below its PF. Then all its siblings are VFs of that PF too. */
bool item_begins_vfs(const Item *item);
/* vfs_states() returns the states of the VFs without an allocation: "12 available, 1 stuck". vfs_holders() returns the
 * number and the allocations of the other VFs: "4 in vm7, vm9" or "-". vfs: the first of a list of siblings. The caller
 * frees; NULL when out of memory. */
char *vfs_states(const Item *vfs);
char *vfs_holders(const Item *vfs);
/* Returns the pool of the VFs in the list; "several" when their pools differ, "-" when they have none. */
const char *vfs_pool(const Item *vfs);

/* Returns the name of the root complex, the last part of its path: "pci0000:10"; or "root complex unknown". */
const char *root_name(const Item *root);
/* Returns the word for the kind of the bridge: "root port", "switch" or "bridge". */
const char *bridge_word(const Item *item);
/* Returns the product of the device, with its kernel names, "ConnectX-7 (mlx5_0 ens1f0)", and its NVLink module and
 * partition, "H100 SXM5 80GB, module 3 of partition 1". The caller frees; NULL when out of memory. */
char *device_short_name(json_object *device);

/* Returns true when the NUMA node has no CPUs, no memory and no devices. GPUs have such nodes for their MIG
 * instances. */
bool node_is_empty(const Items *items, json_object *node);
/* Describes, for a NUMA node without CPUs or without memory of its own, which CPUs and memory guests get there. *ret is
 * NULL for a node with both. The caller frees *ret. Returns 0 or -ENOMEM. */
int node_lends(json_object *node, char **ret);

/* topology-tree.c: formats for each pool how many of its devices in the section are available: "2 of 4 gpu, 62 of 64
 * rdma". *ret is NULL when the section has no device of a pool. The caller frees *ret. Returns 0 or -ENOMEM. */
int items_offers(const Items *items, int64_t section, char **ret);
/* Formats the distances from the NUMA node with this id to the others: "21 to node 1, 31 to nodes 2-3". *ret is NULL
 * when there is no other node. The caller frees *ret. Returns 0 or -ENOMEM. */
int node_distances(json_object *node, const char *id, char **ret);
/* Sets *section to the next higher section that has a device, but is not one of the NUMA nodes in `node`, the reply to
 * DescribeTopology. To begin, set *section to INT64_MIN. Returns false when there is none. */
bool items_next_section(const Items *items, json_object *node, int64_t *section);
const char *section_title(int64_t section, char buf[static SECTION_TITLE_MAX]);
/* A size as text, in GiB, rounded down. */
typedef struct Size {
        char text[24];
} Size;
Size size_round(uint64_t bytes);

typedef enum Share {
        SHARE_FREE,
        SHARE_ALLOCATED,
        SHARE_OTHER, /* the host or other programs have it */
        SHARE_PAGES, /* hugepages, which also have a Gauge of their own */
} Share;

/* The cores, the memory or the hugepages of a NUMA node, divided by who has them. */
typedef struct Gauge {
        const char *key; /* "cores", "memory", "hugepages" */
        char amount[40]; /* the total as text: "56", "24 GiB", "1024 of 2 MiB" */
        uint64_t total;
        struct GaugePart {
                Share share;
                const char *word;
                uint64_t amount;
        } parts[4];
        size_t n, n_always; /* n_always: the first n_always parts are printed even if they are 0 */
        bool is_bytes;
} Gauge;
#define GAUGES_MAX 16U
/* Makes the gauges of a NUMA node: cores, memory, and hugepages of each size. The gauge of the memory of a node without
 * CPUs has no free part, because ordinary requests do not get this memory (see node_lends()). Returns the number of
 * gauges. */
size_t node_gauges(json_object *node, Gauge ret[static GAUGES_MAX]);
/* Returns the parts as text: "423 free, 200 allocated", or "none". The caller frees; NULL when out of memory. */
char *gauge_text(const Gauge *g);

/* The headings of the columns about affinity. nvidia-smi topo -m has the same headings. */
#define CPU_AFFINITY  "CPU Affinity"
#define NUMA_AFFINITY "NUMA Affinity"

/* topology-matrix.c: one device of the matrix. A PF also stands for its VFs. */
typedef struct Member {
        const Item *item;
        size_t at;                     /* index of the device's row and column in the document */
        size_t n_vfs, available;       /* number of its VFs in pools, and how many of them are available */
        const char *pool, *allocation; /* of the device, or of the first of its VFs that has one */
        char label[16];                /* "GPU0"; the number counts all devices of this kind in the matrix */
        char numa[24];                 /* NUMA node of the device; "-": unknown */
        char *cpus;                    /* CPUs of its NUMA node, or of the nearest node with CPUs; "-": unknown */
} Member;

typedef struct Members {
        Member *all;
        size_t n, skipped; /* skipped: number of devices left out, in no pool */
        size_t label_width, cpus_width;
} Members;

/* Collects the devices of the matrix that are in a pool or have a VF in one; all devices if no device is, or if `all`
 * is set. node: the reply to DescribeTopology, which must have a matrix. Returns 0, -ENOMEM or -EBADMSG; the caller
 * calls members_done() in each case. */
int members_init(Members *m, const Items *items, json_object *node, bool all);
void members_done(Members *m);
#define _cleanup_members_ _cleanup_(members_done)
/* Returns the member with this address; NULL when there is none. */
const Member *members_find(const Members *m, const char *address);
/* Returns the matrix's word for the distance of two members, normally one of distance_words; "?" when the matrix has no
 * word that can be printed. */
const char *matrix_distance(json_object *matrix, const Member *a, const Member *b);

/* Returns true when ACS redirects peer-to-peer access between the devices of the pair. pair may be NULL. */
bool pair_is_redirected(json_object *pair);

/* A note: what ACS or ATS does to peer-to-peer access between some pairs. */
typedef struct Note {
        char *pairs; /* "GPU0-NIC0, GPU1-NIC1" */
        char *text;  /* "redirected by ACS at 0000:12:00.0" */
        bool redirected;
} Note;

typedef struct Notes {
        Note *all;
        size_t n;
} Notes;

/* Collects notes on the pairs of members without direct peer-to-peer access. Pairs with the same text share one note; a
 * pair within one card has no note. Returns 0 or -ENOMEM; the caller calls notes_done() in both cases. */
int notes_init(Notes *notes, const Members *m, json_object *matrix);
void notes_done(Notes *notes);
#define _cleanup_notes_ _cleanup_(notes_done)

#define DISTANCE_WORDS 7U
typedef struct DistanceWord {
        const char *word, *meaning;
} DistanceWord;
extern const DistanceWord distance_words[DISTANCE_WORDS];

/* Prints the matrix. node: the reply to DescribeTopology. Returns the exit status, or a negative errno, reported. */
int matrix_print(const Args *args, json_object *node);

/* topology-svg.c: writes a picture of the node to the file of --svg. Returns as matrix_print(). */
int svg_print(const Args *args, json_object *node);
