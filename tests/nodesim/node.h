/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree in memory: directories, files and links, as the mount shows them. It knows nothing of PCI. Running out of
 * memory ends the program: this is a test tool. The caller holds the lock of the model around every call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#include "util/cleanup.h"

typedef struct Node Node;

/* What the kernel may have cached and is no more true. */
typedef struct Stale {
        Node *dir;  /* referenced */
        char *name; /* in dir; NULL: the list of what is in dir */
} Stale;

typedef enum NodeType {
        NODE_DIR,
        NODE_FILE,
        NODE_LINK,
        NODE_FIFO, /* who opens it waits for ever */
} NodeType;

struct Node {
        char *name;
        Node *parent;    /* NULL for a root and for what was taken out of the tree */
        Node **children; /* sorted by name */
        size_t n_children;
        char *data; /* what a file holds or a link points to; a NUL follows */
        size_t size;
        uint64_t serial;  /* inode number; grows with every node made */
        uint64_t refs;    /* by the kernel's inode cache and by who else keeps a pointer */
        uint64_t changes; /* of a directory: which change of any directory was its last */
        bool listed;      /* the kernel may have cached its list */
        bool missed;      /* and that a name is not in it */
        NodeType type;
        int error;             /* > 0: every read fails with this errno */
        unsigned long hangs;   /* reads wait for so many releases in all, see sim.h */
        bool unkillable;       /* and for nothing else */
        char *original;        /* reset_method: all that the device can do, once something was written; else NULL */
        Node *previous, *next; /* all nodes there are */
        bool dropped;          /* removed for good, freed with the last reference */
};

char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *format, ...) _printf_(1, 2);
void *xrealloc(void *p, size_t n, size_t size);

/* making and removing */
Node *node_new_root(void);
Node *node_make(Node *dir, const char *name, NodeType type); /* finds it, or makes it anew when it is of another type */
int node_make_at(Node *root, const char *path, NodeType type, Node **ret); /* makes the directories on the way */
void node_remove(Node *node);
void node_remove_child(Node *dir, const char *name);
void node_detach(Node *node); /* takes it out whole, to be attached again */
void node_attach(Node *dir, Node *node);
Node *node_ref(Node *node);
void node_unref(Node *node, uint64_t n);
uint64_t node_last_serial(void);
/* As if it, and what is below it, was made just now: who has it open holds what was. */
void node_renew(Node *node);
Stale *nodes_take_stale(size_t *ret_n); /* since the last call */
void nodes_free(void);                  /* all, whoever refers to them: for the end */

/* finding; links are followed, the path may be relative to any node */
Node *node_child(const Node *dir, const char *name);
Node *node_at(Node *from, const char *path);
Node *node_atf(Node *from, const char *format, ...) _printf_(2, 3);
bool node_is_in(const Node *node, const Node *ancestor);
char *node_path(const Node *node);

/* content */
void node_set(Node *file, const char *data, size_t size);
Node *node_write(Node *dir, const char *name, const char *format, ...) _printf_(3, 4);
Node *node_default(Node *dir, const char *name, const char *text); /* only when there is none yet */
char *node_text(const Node *dir, const char *name);                /* without the newline; NULL if there is none */
unsigned long node_number(const Node *dir, const char *name, unsigned long otherwise);
Node *node_link(Node *dir, const char *name, const Node *target);
Node *node_link_text(Node *dir, const char *name, const char *text);
char *node_relative(const Node *dir, const char *path);        /* how a link in dir names a path from the root */
const char *node_link_name(const Node *dir, const char *name); /* end of a link's target, or NULL */
