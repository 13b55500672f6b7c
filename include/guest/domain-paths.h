/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds paths of the host in a <domain>. Almost any attribute and any text of an element may be a path, so they are
 * examined. Pure: the caller resolves links.
 */

#include <libxml/tree.h>

/* Returns the path with its links resolved, which the caller frees. NULL: not possible. */
typedef char *(*ResolvePath)(const char *path);

/*
 * Finds the first element with a reserved path. Reserved are paths to device nodes or memory that passthroughd gives to
 * guests, other paths to devices or memory of the host, such as /dev/mem or /sys, and all paths above and below these.
 * Checks the path itself and, unless resolve is NULL, the path that resolve() returns. *ret_path: the path as in the
 * document, which the caller frees. Returns NULL when there is none. Elements of other namespaces, descriptions, mount
 * tags, and attributes called name whose value does not begin with a slash are skipped.
 */
const xmlNode *domain_find_reserved_path(const xmlNode *root, ResolvePath resolve, char **ret_path);

#define RESERVED_PATH_REASON "leads to devices or memory of the host"
