/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Paths of the host in a <domain>: any attribute and any text of any element may be one, so that a path counts wherever
 * libvirt has it. Pure: the caller resolves links.
 */

#include <libxml/tree.h>

/* Returns the path to which a path leads; NULL when it is unknown. The caller frees. */
typedef char *(*ResolvePath)(const char *path);

/*
 * The first element with a path that is a device node of what passthroughd gives to guests, memory of allocations, or a
 * directory that has these in it: by its name, or by what resolve tells (NULL: not asked). NULL when there is none.
 * *ret_path: the path as the document has it, which the caller frees. Elements of other namespaces are left out.
 */
const xmlNode *domain_find_reserved_path(const xmlNode *root, ResolvePath resolve, char **ret_path);

#define RESERVED_PATH_REASON "leads to devices or memory of the host"
