/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The names of providers and resource classes; for devices they are those of Nova. Pure. */

#include "tree.h"

/* Makes the text one of Placement's names, which have upper-case letters, digits and underscores only. */
void name_make_class(char *s);
/* HOST_SUFFIX, for suffixes that have no lower-case letters but the hexadecimal digits of an address: Nova writes these
 * in upper case. The caller frees; NULL when out of memory. */
char *name_make(const char *host, const char *suffix);
/* HOST_ENDPOINT, with the endpoint as the configuration has it. The caller frees; NULL when out of memory. */
char *name_make_endpoint(const char *host, const char *endpoint);
/* The resource class of a device in the daemon's document. */
void name_device_class(json_object *device, char ret[static TREE_NAME_SIZE]);
/* The resource class of the slots of a service. */
void name_slot_class(const char *service, char ret[static TREE_NAME_SIZE]);
/* The uuid of the provider HOST_SUFFIX. 0 or -ENOMEM. */
int name_provider(const char *host, const char *suffix, char ret_uuid[static TREE_UUID_SIZE]);
/* Of a device in the daemon's document: the uuid of its provider, and its resource class there. 0 or -ENOMEM. */
int name_device(const char *host, json_object *device, char ret_uuid[static TREE_UUID_SIZE],
                char ret_class[static TREE_NAME_SIZE]);
/* The uuid of the provider of an endpoint. 0 or -ENOMEM. */
int name_endpoint(const char *host, const char *endpoint, char ret_uuid[static TREE_UUID_SIZE]);
