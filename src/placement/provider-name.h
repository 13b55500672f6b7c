/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The names of providers and resource classes; for devices they are those of Nova. Pure. */

#include "tree.h"

/* Makes the text a valid name of a class or trait: changes letters to upper case, keeps digits, and replaces each other
 * byte by an underscore. */
void name_make_class(char *s);
/* Makes the name HOST_SUFFIX. Changes the letters a to f of the suffix to upper case, as Nova writes PCI addresses. The
 * caller frees; NULL when out of memory. */
char *name_make(const char *host, const char *suffix);
/*
 * Makes the name HOST_ENDPOINT, with the endpoint as in the configuration. The caller frees; NULL when out of memory.
 */
char *name_make_endpoint(const char *host, const char *endpoint);
/* Makes the resource class of a device in the daemon's document. */
void name_device_class(json_object *device, char ret[static TREE_NAME_SIZE]);
/* Makes the resource class of the slots of a service. */
void name_slot_class(const char *service, char ret[static TREE_NAME_SIZE]);
/* Computes the uuid of the provider HOST_SUFFIX. 0 or -ENOMEM. */
int name_provider(const char *host, const char *suffix, char ret_uuid[static TREE_UUID_SIZE]);
/* Computes the uuid of the provider of a device in the daemon's document (for a VF, of its PF), and the resource class
 * of the device. 0 or -ENOMEM. */
int name_device(const char *host, json_object *device, char ret_uuid[static TREE_UUID_SIZE],
                char ret_class[static TREE_NAME_SIZE]);
/* Computes the uuid of the provider of an endpoint. 0 or -ENOMEM. */
int name_endpoint(const char *host, const char *endpoint, char ret_uuid[static TREE_UUID_SIZE]);
