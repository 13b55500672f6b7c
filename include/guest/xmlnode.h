/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Helpers for libxml2's tree. They find only elements without a namespace. */

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
/* Reads a number as libvirt does: after blanks, decimal, octal or 0x. 0, -ENOENT when absent, -EINVAL, or -ERANGE above
 * max. */
int node_get_number(const xmlNode *node, const char *attribute, unsigned max, unsigned *ret);
/* Returns the size in the node's text, in bytes. The attribute unit tells its unit; the default is KiB. 0 when
 * malformed. */
uint64_t node_get_size(const xmlNode *node);
/* Returns the text of the node without leading and trailing space. The caller frees; NULL when out of memory. */
char *node_get_text(const xmlNode *node);
