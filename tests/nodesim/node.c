/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The nodes of the tree, and their lookup by path. */
#define _GNU_SOURCE 1
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "node.h"

enum {
        LINKS_MAX = 20
};

static uint64_t last_serial;
static Node *all_nodes;
static Stale *stale;
static size_t n_stale;
static uint64_t last_change;

char *xstrndup(const char *s, size_t n) {
        char *copy = strndup(s, n);

        if (!copy)
                abort();
        return copy;
}

char *xstrdup(const char *s) {
        return xstrndup(s, strlen(s));
}

static _printf_(1, 0) char *xvasprintf(const char *format, va_list ap) {
        char *s;

        if (vasprintf(&s, format, ap) < 0)
                abort();
        return s;
}

char *xasprintf(const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        char *s = xvasprintf(format, ap);
        va_end(ap);
        return s;
}

void *xrealloc(void *p, size_t n, size_t size) {
        p = reallocarray(p, n, size);
        if (!p)
                abort();
        return p;
}

static Node *node_new(NodeType type, const char *name) {
        Node *node = xrealloc(NULL, 1, sizeof(Node));

        *node = (Node) {
                .name = xstrdup(name),
                .type = type,
                .serial = ++last_serial,
                .next = all_nodes,
        };
        if (all_nodes)
                all_nodes->previous = node;
        return all_nodes = node;
}

Node *node_new_root(void) {
        return node_new(NODE_DIR, "");
}

uint64_t node_last_serial(void) {
        return last_serial;
}

static void node_free(Node *node) {
        if (node->next)
                node->next->previous = node->previous;
        *(node->previous ? &node->previous->next : &all_nodes) = node->next;
        free(node->name);
        free(node->data);
        free(node->original);
        free(node->children);
        free(node);
}

void nodes_free(void) {
        while (all_nodes)
                node_free(all_nodes);
}

Node *node_ref(Node *node) {
        node->refs++;
        return node;
}

void node_unref(Node *node, uint64_t n) {
        assert(node->refs >= n);
        node->refs -= n;
        if (node->dropped && node->refs == 0)
                node_free(node);
}

/* Returns the index of the child, or the index where to insert it. */
static size_t child_index(const Node *dir, const char *name, bool *ret_found) {
        size_t low = 0, high = dir->n_children;

        *ret_found = false;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int c = strcmp(name, dir->children[middle]->name);

                if (c == 0) {
                        *ret_found = true;
                        return middle;
                }
                if (c < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return low;
}

Node *node_child(const Node *dir, const char *name) {
        bool found;
        size_t i;

        if (!dir)
                return NULL;
        i = child_index(dir, name, &found);
        return found ? dir->children[i] : NULL;
}

static void add_stale(Node *dir, const char *name) {
        stale = xrealloc(stale, n_stale + 1, sizeof(Stale));
        stale[n_stale++] = (Stale) { node_ref(dir), name ? xstrdup(name) : NULL };
}

static void forget_list(Node *dir) {
        if (dir->listed)
                add_stale(dir, NULL);
        dir->listed = false;
}

static void forget_lists_below(Node *node) {
        forget_list(node);
        for (size_t i = 0; i < node->n_children; i++)
                forget_lists_below(node->children[i]);
}

static void note_change(Node *dir) {
        dir->changes = ++last_change;
        forget_list(dir);
}

void node_renew(Node *node) {
        node->serial = ++last_serial;
        note_change(node);
        for (size_t i = 0; i < node->n_children; i++)
                node_renew(node->children[i]);
}

void node_attach(Node *dir, Node *node) {
        bool found;
        size_t i = child_index(dir, node->name, &found);

        assert(!found && !node->parent);
        if ((dir->n_children & (dir->n_children - 1)) == 0) /* the array grows at each power of two */
                dir->children = xrealloc(dir->children, dir->n_children ? 2 * dir->n_children : 1, sizeof(Node *));
        memmove(dir->children + i + 1, dir->children + i, (dir->n_children - i) * sizeof(Node *));
        dir->children[i] = node;
        dir->n_children++;
        node->parent = dir;
        if (dir->missed)
                add_stale(dir, node->name);
        note_change(dir);
}

void node_detach(Node *node) {
        Node *dir = node->parent;
        bool found;
        size_t i;

        if (!dir)
                return;
        if (node->refs > 0)
                add_stale(dir, node->name);
        note_change(dir);
        forget_lists_below(node);
        i = child_index(dir, node->name, &found);
        assert(found);
        memmove(dir->children + i, dir->children + i + 1, (dir->n_children - i - 1) * sizeof(Node *));
        dir->n_children--;
        node->parent = NULL;
}

Stale *nodes_take_stale(size_t *ret_n) {
        Stale *taken = stale;

        *ret_n = n_stale;
        stale = NULL;
        n_stale = 0;
        return taken;
}

static void node_drop(Node *node) {
        for (size_t i = 0; i < node->n_children; i++)
                node_drop(node->children[i]);
        node->n_children = 0;
        node->parent = NULL;
        node->dropped = true;
        node_unref(node, 0);
}

void node_remove(Node *node) {
        if (!node)
                return;
        node_detach(node);
        node_drop(node);
}

void node_remove_child(Node *dir, const char *name) {
        node_remove(node_child(dir, name));
}

Node *node_make(Node *dir, const char *name, NodeType type) {
        Node *node = node_child(dir, name);

        if (node && node->type == type)
                return node;
        node_remove(node);
        node = node_new(type, name);
        node_attach(dir, node);
        return node;
}

static Node *walk(Node *from, const char *path, unsigned depth);

static Node *follow(Node *node, unsigned depth) {
        if (!node || node->type != NODE_LINK)
                return node;
        if (depth >= LINKS_MAX || node->data[0] == '/' || !node->parent)
                return NULL;
        return walk(node->parent, node->data, depth + 1);
}

static Node *walk(Node *from, const char *path, unsigned depth) {
        Node *node = from;

        while (node) {
                size_t n;

                path += strspn(path, "/");
                n = strcspn(path, "/");
                if (n == 0)
                        return node;

                _cleanup_free_ char *name = xstrndup(path, n);
                if (strcmp(name, "..") == 0)
                        node = node->parent;
                else if (strcmp(name, ".") != 0)
                        node = follow(node_child(node, name), depth);
                path += n;
        }
        return NULL;
}

Node *node_at(Node *from, const char *path) {
        return walk(from, path, 0);
}

Node *node_atf(Node *from, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        _cleanup_free_ char *path = xvasprintf(format, ap);
        va_end(ap);
        return node_at(from, path);
}

static bool name_is_valid(const char *name) {
        return strcmp(name, "..") != 0 && strcmp(name, ".") != 0;
}

int node_make_at(Node *root, const char *path, NodeType type, Node **ret) {
        Node *dir = root;

        for (;;) {
                path += strspn(path, "/");
                size_t n = strcspn(path, "/");
                const char *rest = path + n + strspn(path + n, "/");
                _cleanup_free_ char *name = xstrndup(path, n);

                if (n == 0) {
                        *ret = dir;
                        return type == NODE_DIR ? 0 : -EINVAL;
                }
                if (!name_is_valid(name))
                        return -EINVAL;
                if (*rest == '\0' && type != NODE_DIR) {
                        *ret = node_make(dir, name, type);
                        return 0;
                }
                Node *next = node_child(dir, name);
                dir = next && next->type == NODE_LINK ? follow(next, 0) : node_make(dir, name, NODE_DIR);
                if (!dir || dir->type != NODE_DIR)
                        return -ENOTDIR;
                path = rest;
        }
}

bool node_is_in(const Node *node, const Node *ancestor) {
        while (node && node != ancestor)
                node = node->parent;
        return node != NULL;
}

char *node_path(const Node *node) {
        if (!node->parent)
                return xstrdup(node->name);
        _cleanup_free_ char *dir = node_path(node->parent);
        return xasprintf("%s%s%s", dir, *dir ? "/" : "", node->name);
}

void node_set(Node *file, const char *data, size_t size) {
        char *copy = xrealloc(NULL, size + 1, 1);

        memcpy(copy, data, size);
        copy[size] = '\0';
        free(file->data);
        file->data = copy;
        file->size = size;
        file->error = 0;
}

Node *node_write(Node *dir, const char *name, const char *format, ...) {
        Node *file = node_make(dir, name, NODE_FILE);
        va_list ap;

        va_start(ap, format);
        _cleanup_free_ char *text = xvasprintf(format, ap);
        va_end(ap);
        node_set(file, text, strlen(text));
        return file;
}

Node *node_default(Node *dir, const char *name, const char *text) {
        Node *node = node_child(dir, name);

        return node ?: node_write(dir, name, "%s", text);
}

char *node_text(const Node *dir, const char *name) {
        const Node *file = node_child(dir, name);

        if (!file || file->type != NODE_FILE || !file->data)
                return NULL;
        return xstrndup(file->data, strcspn(file->data, "\n"));
}

unsigned long node_number(const Node *dir, const char *name, unsigned long otherwise) {
        _cleanup_free_ char *text = node_text(dir, name);
        char *end;
        unsigned long number;

        if (!text || !*text)
                return otherwise;
        number = strtoul(text, &end, 0);
        return *end == '\0' ? number : otherwise;
}

char *node_relative(const Node *dir, const char *path) {
        _cleanup_free_ char *from = node_path(dir);
        const char *a = from, *b = path + strspn(path, "/");
        char *result = xstrdup("");

        for (;;) { /* skips the common directories */
                size_t n = strcspn(a, "/"), m = strcspn(b, "/");
                if (n == 0 || n != m || strncmp(a, b, n) != 0)
                        break;
                a += n + (a[n] == '/');
                b += m + (b[m] == '/');
        }
        while (*a) {
                char *longer = xasprintf("../%s", result);
                free(result);
                result = longer;
                a += strcspn(a, "/");
                a += *a == '/';
        }
        char *full = xasprintf("%s%s", result, b);
        free(result);
        return full;
}

Node *node_link(Node *dir, const char *name, const Node *target) {
        _cleanup_free_ char *path = node_path(target);
        _cleanup_free_ char *text = node_relative(dir, path);

        return node_link_text(dir, name, text);
}

/* Sets the target of a link. Another target makes it a new node: the kernel's cache of the old node stays valid. */
Node *node_link_text(Node *dir, const char *name, const char *text) {
        Node *link = node_child(dir, name);

        if (link && link->type == NODE_LINK && link->data && strcmp(link->data, text) == 0)
                return link;
        node_remove(link);
        link = node_make(dir, name, NODE_LINK);
        node_set(link, text, strlen(text));
        return link;
}

const char *node_link_name(const Node *dir, const char *name) {
        const Node *link = node_child(dir, name);
        const char *slash;

        if (!link || link->type != NODE_LINK)
                return NULL;
        slash = strrchr(link->data, '/');
        return slash ? slash + 1 : link->data;
}
