/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree in memory: directories, files and links, as the mount shows them. These functions know nothing of PCI.
 * Without memory they end the program, a test tool. The caller holds the lock of the model around every call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#include "util/cleanup.h"

typedef struct Node Node;

/* A name or list that the kernel may have cached and that is no longer valid. */
typedef struct Stale {
        Node *dir;  /* referenced */
        char *name; /* a name in dir; NULL: the list of dir */
} Stale;

typedef enum NodeType {
        NODE_DIR,
        NODE_FILE,
        NODE_LINK,
        NODE_FIFO, /* an open blocks for ever */
} NodeType;

struct Node {
        char *name;
        Node *parent;    /* NULL for a root, and for a node outside of the tree */
        Node **children; /* sorted by name */
        size_t n_children;
        char *data; /* content of a file or target of a link, with a NUL at the end */
        size_t size;
        uint64_t serial;  /* inode number; increases with every new node */
        uint64_t refs;    /* references by the kernel's inode cache and by pointers to the node */
        uint64_t changes; /* of a directory: number of its last change among the changes of all directories */
        bool listed;      /* the kernel may have cached the list */
        bool missed;      /* the kernel may have cached that a name is missing */
        NodeType type;
        int error;             /* > 0: the errno of every read */
        unsigned long hangs;   /* the count of releases that reads wait for; see sim.h */
        bool unkillable;       /* no signal ends the wait */
        char *original;        /* of a written reset_method: all methods of the device; else NULL */
        Node *previous, *next; /* links of the list of all nodes */
        bool dropped;          /* removed for good; freed with the last reference */
};

char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *format, ...) _printf_(1, 2);
void *xrealloc(void *p, size_t n, size_t size);

/* making and removing */
Node *node_new_root(void);
Node *node_make(Node *dir, const char *name, NodeType type); /* finds the node, or replaces a node of another type */
int node_make_at(Node *root, const char *path, NodeType type, Node **ret); /* also makes missing directories */
void node_remove(Node *node);
void node_remove_child(Node *dir, const char *name);
void node_detach(Node *node); /* detaches a subtree that will be attached again */
void node_attach(Node *dir, Node *node);
Node *node_ref(Node *node);
void node_unref(Node *node, uint64_t n);
uint64_t node_last_serial(void);
/* Renews the serials of the node and the nodes below, as if they were new: open handles then refer to the old nodes. */
void node_renew(Node *node);
Stale *nodes_take_stale(size_t *ret_n); /* entries since the last call */
void nodes_free(void);                  /* frees all nodes in spite of references, at the end */

/* Lookup. It follows links. The path may be relative to any node. */
Node *node_child(const Node *dir, const char *name);
Node *node_at(Node *from, const char *path);
Node *node_atf(Node *from, const char *format, ...) _printf_(2, 3);
bool node_is_in(const Node *node, const Node *ancestor);
char *node_path(const Node *node);

/* content */
void node_set(Node *file, const char *data, size_t size);
Node *node_write(Node *dir, const char *name, const char *format, ...) _printf_(3, 4);
Node *node_default(Node *dir, const char *name, const char *text); /* only if there is no such file yet */
char *node_text(const Node *dir, const char *name);                /* without the newline; NULL: no such file */
unsigned long node_number(const Node *dir, const char *name, unsigned long otherwise);
Node *node_link(Node *dir, const char *name, const Node *target);
Node *node_link_text(Node *dir, const char *name, const char *text);
char *node_relative(const Node *dir, const char *path);        /* the target of a link in dir to a path from the root */
const char *node_link_name(const Node *dir, const char *name); /* last component of a link's target, or NULL */
