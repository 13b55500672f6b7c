/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The .tree format: a recorded machine as text. A line is a file, a link, a directory, some bytes of a PCI config
 * space, or a file whose reads fail. passthroughctl(1) describes the format. The parser calls a function for each item.
 * The limits below bound the cost of untrusted input. */

#include <stddef.h>
#include <stdio.h>

#include "util/cleanup.h"

#define TREE_TEXT_MAX   (256U * 1024U * 1024U) /* bytes of a .tree file */
#define TREE_ITEMS_MAX  (1024U * 1024U)        /* items of a .tree file */
#define TREE_CONFIG_MAX 4096U                  /* bytes of PCI config space */
#define TREE_PATH_MAX   2048U                  /* bytes of a path */
#define TREE_DEPTH_MAX  64U                    /* components of a path */
#define TREE_NAME_MAX   255U                   /* bytes of a component */
#define TREE_TARGET_MAX 2048U                  /* bytes of a link's target */

typedef enum TreeItem {
        TREE_FILE,      /* value: the bytes of the file */
        TREE_CONFIG,    /* value: bytes of PCI config space from offset; path: that of the file called config */
        TREE_LINK,      /* value: the target as written, not empty */
        TREE_DIRECTORY, /* no value */
        TREE_ERROR,     /* a file whose reads fail; value: the error name, such as "EIO", for tree_error_number() */
} TreeItem;

typedef struct TreeLine {
        TreeItem item;
        const char *path; /* relative to the root, without leading or trailing slash, without "." and ".." components */
        const char *value; /* has size bytes, and a NUL after them */
        size_t size;
        unsigned offset; /* only of TREE_CONFIG; offset + size is at most TREE_CONFIG_MAX */
} TreeLine;

/* Called for each item. Returns 0; or a negative value, which stops the parser and becomes its result. */
typedef int (*TreeFunction)(const TreeLine *line, void *userdata);

/* Calls f for each item in order. file: the name of the file, for messages. Returns 0, -EINVAL, -E2BIG (too many items,
 * or a path that is too long), -ENOMEM, or the negative value that f returned. On failure *ret_problem (the caller
 * frees) is "FILE:LINE: sentence", or NULL when out of memory. */
int tree_parse(const char *file, const char *text, size_t size, TreeFunction f, void *userdata, char **ret_problem);
/* As tree_parse(), for a file on disk. If the file cannot be read, *ret_problem is "FILE: sentence". */
int tree_read(const char *file, TreeFunction f, void *userdata, char **ret_problem);

/* Converts the escapes \n, \t, \\ and \xHH to bytes. *ret is NUL-terminated and has room for one more byte; the caller
 * frees it. Returns 0, -EINVAL or -ENOMEM. */
int tree_unescape(const char *s, char **ret, size_t *ret_size);
void tree_escape(FILE *f, const char *s, size_t size);

/* Returns the positive errno of a name, EIO for "EIO"; -EINVAL for an unknown name. */
int tree_error_number(const char *name);

/* Write one item as a line with its full path, and escape bytes that are not printable. A file named config with 256 or
 * 4096 bytes becomes config@OFFSET lines, without most rows of zeros. error: a positive or negative errno. */
void tree_write_file(FILE *f, const char *path, const char *data, size_t size);
void tree_write_link(FILE *f, const char *path, const char *target);
void tree_write_directory(FILE *f, const char *path);
void tree_write_error(FILE *f, const char *path, int error);
