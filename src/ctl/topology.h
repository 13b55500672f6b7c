/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the files topology*.c, "passthroughctl topology". The same items are drawn as a tree on a terminal and as a
 * picture in an SVG file. */

#include "reply.h"

/* The sections that are not NUMA nodes: devices without a known node, and missing devices of allocations. */
#define SECTION_UNKNOWN   INT64_C(-1)
#define SECTION_MISSING   INT64_C(-2)
#define SECTION_TITLE_MAX 80U

typedef struct Item {
        json_object *device;
        const char *address;
        int64_t section;                    /* NUMA node id, SECTION_UNKNOWN or SECTION_MISSING */
        struct Item *above;                 /* the bridge above a device, the PF of a VF; NULL on a root bus */
        struct Item *root;                  /* its root complex: an element of Items.roots, which has no device */
        struct Item *child, *next;          /* the tree that items_link() made */
        bool is_bridge, is_vf, has_bridges; /* has_bridges: another bridge is directly below it */
} Item;

typedef struct Items {
        Item *all; /* in the order of DescribeTopology: depth first */
        size_t n;
        Item *roots;
        size_t n_roots;
} Items;

/* Reads the items of node, the reply to DescribeTopology, which is borrowed until items_done(). 0 or -ENOMEM. */
int items_init(Items *items, json_object *node);
void items_done(Items *items);
#define _cleanup_items_ _cleanup_(items_done)

/* Links all items and roots (child, next) to the tree of a section. Unless all is true, it leaves out bridges above a
 * single child or card, and unused platform devices in no pool. */
void items_link(Items *items, int64_t section, bool all);
/* Calls items_link() and prints the tree. 0 or a negative errno, reported. */
int items_print(Items *items, int64_t section, const Args *args);

/* What the state of a device means for who asks for devices: the tree and the picture have a colour for each. */
typedef enum Use {
        USE_AVAILABLE,
        USE_ALLOCATED, /* or reserved */
        USE_HOST,
        USE_NONE, /* not usable now */
        _USE_MAX,
} Use;
Use use_from_state(const char *state);
/* Returns the use of a list of VFs: available if one of them is. */
Use vfs_use(const Item *vfs);

/* Returns true when the item is a VF below its PF; then all its siblings are VFs too. */
bool item_begins_vfs(const Item *item);
/* Return the states of the VFs without an allocation, "12 available, 1 stuck", and the allocations of the others, "4 in
 * vm7, vm9" or "-". vfs: the first of a list of siblings. The caller frees; NULL when out of memory. */
char *vfs_states(const Item *vfs);
char *vfs_holders(const Item *vfs);
/* Returns the pool of all VFs in the list; "several" when they differ, "-" for none. */
const char *vfs_pool(const Item *vfs);

/* Returns the last part of the root's path: "pci0000:10". */
const char *root_name(const Item *root);
/* Returns "root port", "switch" or "bridge". */
const char *bridge_word(const Item *item);
/* Returns device_product() with the kernel's names, "ConnectX-7 (mlx5_0 ens1f0)", or with the NVLink module, "H100 SXM5
 * 80GB, module 3". The caller frees; NULL when out of memory. */
char *device_short_name(json_object *device);

/* Returns true when the node has neither CPUs nor memory nor devices: GPUs have such nodes for their MIG instances. */
bool node_is_empty(const Items *items, json_object *node);
/* Describes what the node gives to guests when it has no CPUs, or no memory of its own; *ret is NULL when it has both.
 * The caller frees. 0 or -ENOMEM. */
int node_lends(json_object *node, char **ret);

/* topology-tree.c: formats the available and total devices of each pool in a section, "2 of 4 gpu, 62 of 64 rdma". *ret
 * is NULL when the section has no device in a pool. The caller frees. 0 or -ENOMEM. */
int items_offers(const Items *items, int64_t section, char **ret);
/* Formats the distances from node id to the other NUMA nodes: "21 to node 1, 31 to nodes 2-3". *ret is NULL when there
 * is no other node. The caller frees. 0 or -ENOMEM. */
int node_distances(json_object *node, const char *id, char **ret);
/* Sets *section to the next higher section that has a device and is not in the node's list of NUMA nodes. False when
 * there is none. */
bool items_next_section(const Items *items, json_object *node, int64_t *section);
const char *section_title(int64_t section, char buf[static SECTION_TITLE_MAX]);
/* A size in GiB as text, rounded down. */
typedef struct Size {
        char text[24];
} Size;
Size size_round(uint64_t bytes);

typedef enum Share {
        SHARE_FREE,
        SHARE_ALLOCATED,
        SHARE_OTHER, /* of the host or of other programs */
        SHARE_PAGES, /* huge pages have gauges of their own */
} Share;

/* The cores, the memory or the huge pages of a NUMA node, and what has them. */
typedef struct Gauge {
        const char *key; /* "cores", "memory", "hugepages" */
        char amount[40]; /* "56", "24 GiB", "1024 of 2 MiB" */
        uint64_t total;
        struct GaugePart {
                Share share;
                const char *word;
                uint64_t amount;
        } parts[4];
        size_t n, n_always; /* n_always: the first parts are told even when they are 0 */
        bool is_bytes;
} Gauge;
#define GAUGES_MAX 16U
/* Cores, memory, and each size of huge pages that the node has. Memory of a node without CPUs is given only to requests
 * that name it. Returns their number. */
size_t node_gauges(json_object *node, Gauge ret[static GAUGES_MAX]);
/* "423 free, 200 allocated", or "none". The caller frees; NULL when out of memory. */
char *gauge_text(const Gauge *g);

/* The headings of the columns after the distances, as nvidia-smi topo -m has them. */
#define CPU_AFFINITY  "CPU Affinity"
#define NUMA_AFFINITY "NUMA Affinity"

/* topology-matrix.c. One device of the matrix. A PF represents its VFs. */
typedef struct Member {
        const Item *item;
        size_t at;                     /* index of the device's row and column in the document */
        size_t n_vfs, available;       /* number of its VFs in pools, and of those that are available */
        const char *pool, *allocation; /* pool and allocation of the device, or of its first VF that has one */
        char label[16];                /* "GPU0", numbered among all devices of the matrix */
        char numa[24];                 /* its NUMA node; "-" when that is unknown */
        char *cpus;                    /* the CPUs of its NUMA node, or of the nearest with CPUs; "-" when unknown */
} Member;

typedef struct Members {
        Member *all;
        size_t n, skipped; /* skipped: devices in no pool */
        size_t label_width, cpus_width;
} Members;

/* Collects the devices of the matrix that are in a pool or have a VF in one. All devices are collected when none is, or
 * when all is set. node: the reply to DescribeTopology, which has a matrix. 0, -ENOMEM or -EBADMSG. */
int members_init(Members *m, const Items *items, json_object *node, bool all);
void members_done(Members *m);
#define _cleanup_members_ _cleanup_(members_done)
/* Returns NULL when no member has that address. */
const Member *members_find(const Members *m, const char *address);
/* Returns the word for the distance, as in distance_words; "?" when the document has none. */
const char *matrix_distance(json_object *matrix, const Member *a, const Member *b);

/* Returns true when ACS redirects peer-to-peer access between the two devices of the pair, which may be NULL. */
bool pair_is_redirected(json_object *pair);

/* A note on the effect of ACS or ATS on peer-to-peer access between some pairs. */
typedef struct Note {
        char *pairs; /* "GPU0-NIC0, GPU1-NIC1" */
        char *text;  /* "redirected by ACS at 0000:12:00.0" */
        bool redirected;
} Note;

typedef struct Notes {
        Note *all;
        size_t n;
} Notes;

/* Collects the pairs of members without direct access, one note for all pairs with the same text. Pairs within one card
 * have none. 0 or -ENOMEM; the caller calls notes_done() in either case. */
int notes_init(Notes *notes, const Members *m, json_object *matrix);
void notes_done(Notes *notes);
#define _cleanup_notes_ _cleanup_(notes_done)

#define DISTANCE_WORDS 7U
typedef struct DistanceWord {
        const char *word, *meaning;
} DistanceWord;
extern const DistanceWord distance_words[DISTANCE_WORDS];

/* Prints the matrix. node: the reply to DescribeTopology. Returns an exit status or a negative errno, reported. */
int matrix_print(const Args *args, json_object *node);

/* topology-svg.c: writes a picture of the node to the file of --svg. Returns as matrix_print(). */
int svg_print(const Args *args, json_object *node);
