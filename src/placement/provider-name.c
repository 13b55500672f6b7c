/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "provider-name.h"

#include <errno.h>
#include <stdio.h>

#include "model/json-parse.h"
#include "util/strings.h"

void name_make_class(char *s) {
        for (; *s; s++)
                if (*s >= 'a' && *s <= 'z')
                        *s = (char) (*s - 'a' + 'A');
                else if (!(*s >= 'A' && *s <= 'Z') && !(*s >= '0' && *s <= '9'))
                        *s = '_';
}

char *name_make(const char *host, const char *suffix) {
        char *name = string_format("%s_%s", host, suffix);

        for (char *s = name ? name + strlen(host) : NULL; s && *s; s++)
                if (*s >= 'a' && *s <= 'f')
                        *s = (char) (*s - 'a' + 'A');
        return name;
}

char *name_make_endpoint(const char *host, const char *endpoint) {
        return string_format("%s_%s", host, endpoint);
}

void name_device_class(json_object *device, char ret[static TREE_NAME_SIZE]) {
        (void) snprintf(ret, TREE_NAME_SIZE, "CUSTOM_PCI_%s_%s", member_text(device, "vendor") ?: "",
                        member_text(device, "device") ?: "");
        name_make_class(ret);
}

void name_slot_class(const char *service, char ret[static TREE_NAME_SIZE]) {
        (void) snprintf(ret, TREE_NAME_SIZE, TRAIT_PREFIX "_SLOTS_%s", service);
        name_make_class(ret);
}

/* Computes the uuid of the provider of this name, and frees the name. 0, or -ENOMEM, also if name is NULL. */
static int take_uuid(char *name, char ret[static TREE_UUID_SIZE]) {
        if (!name)
                return -ENOMEM;
        tree_provider_uuid(name, ret);
        free(name);
        return 0;
}

int name_provider(const char *host, const char *suffix, char ret_uuid[static TREE_UUID_SIZE]) {
        return take_uuid(name_make(host, suffix), ret_uuid);
}

int name_device(const char *host, json_object *device, char ret_uuid[static TREE_UUID_SIZE],
                char ret_class[static TREE_NAME_SIZE]) {
        name_device_class(device, ret_class);
        return name_provider(host, member_text(device, "physical_function") ?: member_text(device, "address") ?: "",
                               ret_uuid);
}

int name_endpoint(const char *host, const char *endpoint, char ret_uuid[static TREE_UUID_SIZE]) {
        return take_uuid(name_make_endpoint(host, endpoint), ret_uuid);
}
