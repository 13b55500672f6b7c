/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* "Key: value" views of the daemon's objects on stdout, shared by the verbs that show them. */

#include "reply.h"

/* One line, keys aligned. A key of "" continues the field above. */
void view_field(const char *key, const char *format, ...) _printf_(2, 3);
/* As view_field() for a text member; nothing when it is null. */
void view_member(const char *key, json_object *o, const char *member);

/* Elements of an array joined; "" when empty. NULL when out of memory. The caller frees. */
char *view_join(json_object *o, const char *key, const char *separator);
/* "20 GiB on node 1, 4 GiB on node 0". NULL when out of memory. The caller frees. */
char *view_memory(json_object *allocation);
/* Addresses of the devices the guest gets, joined. NULL when out of memory. The caller frees. */
char *view_addresses(json_object *allocation, const char *separator);
/* As view_addresses(), of the devices that are held because their IOMMU group is. */
char *view_held(json_object *allocation, const char *separator);
/* Bytes of all nodes. */
uint64_t view_memory_total(json_object *allocation);

/* Says on stderr why nothing may be changed on the node, if that is so. node: of Describe. */
void view_read_only(json_object *node);

void view_device(json_object *device);
/* An allocation or a plan. */
void view_allocation(json_object *allocation);
