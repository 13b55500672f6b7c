/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Small helpers over libxml2's tree. Elements of a namespace are none of those that are looked for. */

#include <stdbool.h>
#include <stddef.h>

#include <libxml/tree.h>

bool node_is(const xmlNode *node, const char *name);
xmlNode *node_find(const xmlNode *parent, const char *name);
size_t node_count(const xmlNode *parent, const char *name);
void node_remove(xmlNode *node);
void node_remove_all(xmlNode *parent, const char *name);
bool node_has(const xmlNode *node, const char *attribute, const char *value);
/* The attribute, caller frees; NULL when absent. */
char *node_get(const xmlNode *node, const char *attribute);
/* As libvirt reads numbers, 0x and all. -ENOENT absent, -EINVAL, -ERANGE. */
int node_get_number(const xmlNode *node, const char *attribute, unsigned max, unsigned *ret);
/* Its text without space around it, caller frees; NULL when out of memory. */
char *node_get_text(const xmlNode *node);
