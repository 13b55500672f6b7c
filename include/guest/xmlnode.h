/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Helpers for libxml2's tree. Those that find elements by name find only elements without a namespace. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libxml/tree.h>

bool node_is(const xmlNode *node, const char *name);
xmlNode *node_find(const xmlNode *parent, const char *name);
void node_remove(xmlNode *node);
void node_remove_all(xmlNode *parent, const char *name);
bool node_has(const xmlNode *node, const char *attribute, const char *value);
/* Returns a copy of the attribute's value, which the caller frees. NULL: absent, or out of memory. */
char *node_get(const xmlNode *node, const char *attribute);
/* Reads a number as libvirt does: decimal, octal or with 0x, after any blanks. Returns 0; -ENOENT when the attribute is
 * absent, or out of memory; -EINVAL when it is no number; or -ERANGE when the number is above max. */
int node_get_number(const xmlNode *node, const char *attribute, unsigned max, unsigned *ret);
/* Returns the size in the node's text, in bytes. The attribute "unit" has its unit; the default is KiB. Returns 0 when
 * malformed or out of memory. */
uint64_t node_get_size(const xmlNode *node);
/* Returns the text of the node without leading and trailing space. The caller frees; NULL when out of memory. */
char *node_get_text(const xmlNode *node);
