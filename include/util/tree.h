/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The .tree format: a recorded or made-up machine as text, one file, link or directory a line. tests/nodes/README.md
 * and passthroughctl(1) describe it. This reads lines to calls and writes lines; what becomes of them is the caller's.
 * Input is not trusted: what is made of it is bounded.
 */

#include <stddef.h>
#include <stdio.h>

#include "util/cleanup.h"

#define TREE_TEXT_MAX     (256U * 1024U * 1024U) /* bytes of one file, and of all that %include reads together */
#define TREE_VALUES_MAX   (512U * 1024U * 1024U) /* bytes of all paths and values, those of braces counted each */
#define TREE_INCLUDE_MAX  8U                     /* depth of %include */
#define TREE_INCLUDES_MAX 256U                   /* how many there are */
#define TREE_ITEMS_MAX    (1024U * 1024U)        /* items of one tree, those of braces counted each */
#define TREE_BRACES_MAX   65536U                 /* paths that the braces of one line stand for */
#define TREE_CONFIG_MAX   4096U                  /* bytes of PCI config space */
#define TREE_PATH_MAX     2048U                  /* bytes of a path */
#define TREE_DEPTH_MAX    64U                    /* components of a path */
#define TREE_NAME_MAX     255U                   /* bytes of a component */
#define TREE_TARGET_MAX   2048U                  /* bytes of what a link points to */

typedef enum TreeItem {
        TREE_FILE,      /* value: its bytes */
        TREE_APPEND,    /* value: bytes to append */
        TREE_CONFIG,    /* value: bytes of config space at offset; path is that of "config" */
        TREE_LINK,      /* value: target, as written; not empty */
        TREE_DIRECTORY, /* no value */
        TREE_ERROR,     /* a file whose reads fail; value: "EIO", one that tree_error_number() knows */
        TREE_DIRECTIVE, /* path: "%driver"; value: the rest of the line, unexpanded. %include is done here */
} TreeItem;

typedef struct TreeLine {
        TreeItem item;
        const char *path;  /* from the root, without a slash at either end, no "." or ".." component */
        const char *value; /* NUL-terminated for convenience */
        size_t size;
        unsigned offset; /* TREE_CONFIG: with size at most TREE_CONFIG_MAX */
} TreeLine;

/* A negative return ends the reading with it. */
typedef int (*TreeFunction)(const TreeLine *line, void *userdata);

/*
 * Calls f for each item in order. file is for messages and to resolve %include (NULL: no %include). On -EINVAL, -E2BIG
 * (a limit above), -ENOMEM and what f returns, *ret_problem (caller frees) is "FILE:LINE: sentence", or NULL for want
 * of memory.
 */
int tree_parse(const char *file, const char *text, size_t size, TreeFunction f, void *userdata, char **ret_problem);
/* The same for a file on disk. */
int tree_read(const char *file, TreeFunction f, void *userdata, char **ret_problem);

/* Calls the function once per path that the braces stand for, with the value they make. -EINVAL when they make no
 * sense, else what the function returned. */
typedef int (*TreeExpandFunction)(const char *path, const char *value, void *userdata);
int tree_expand(const char *path, const char *value, TreeExpandFunction f, void *userdata);

/* \n \t \\ \xHH to bytes, NUL-terminated, with room for one byte more. -EINVAL. */
int tree_unescape(const char *s, char **ret, size_t *ret_size);
void tree_escape(FILE *f, const char *s, size_t size);

/* EIO of "EIO"; -EINVAL. */
int tree_error_number(const char *name);

/* Writing: one line each, full paths. Bytes that are not plain are escaped; a file named config of 256 or 4096 bytes is
 * written as config@OFFSET lines without its zero rows. error may have either sign. */
void tree_write_file(FILE *f, const char *path, const char *data, size_t size);
void tree_write_link(FILE *f, const char *path, const char *target);
void tree_write_directory(FILE *f, const char *path);
void tree_write_error(FILE *f, const char *path, int error);
