/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registers the D-Bus objects: those of the manager and of the log control, and those of devices, allocations, jobs,
 * pools and NUMA nodes. For the objects of these five kinds, sd-bus calls find_object() with the path. */

#include <errno.h>

#include "server-internal.h"

static const ObjectKind *const kinds[OBJECT_KINDS] = { &device_objects, &allocation_objects, &job_objects,
                                                       &pool_objects, &node_objects };

/* Called by sd-bus for each access to an object of a kind. Returns 1 and sets *ret_found to the userdata of the object.
 * Returns 0 if there is no such object, or a negative errno. */
static int find_object(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret_found,
                       sd_bus_error *error) {
        const ObjectSet *set = userdata;
        _cleanup_free_ char *label = NULL;
        int r = sd_bus_path_decode(path, set->kind->prefix, &label);

        if (r <= 0)
                return r;
        *ret_found = set->kind->find(set->server, label);
        return !!*ret_found;
}

static void free_paths(char ***paths) {
        for (char **p = *paths; p && *p; p++)
                free(*p);
        free(*paths);
}

static int list_objects(sd_bus *bus, const char *prefix, void *userdata, char ***ret_paths, sd_bus_error *error) {
        const ObjectSet *set = userdata;
        size_t n = set->kind->count(set->server);
        _cleanup_(free_paths) char **paths = calloc(n + 1, sizeof(*paths));

        if (!paths)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                int r = set->kind->path(set->server, i, &paths[i]);

                if (r < 0)
                        return r;
        }
        *ret_paths = TAKE_PTR(paths);
        return 0;
}

int objects_add(sd_bus *bus, Server *s) {
        int r = sd_bus_add_object_manager(bus, NULL, BUS_PATH);

        if (r >= 0)
                r = manager_object_add(bus, s);
        for (size_t i = 0; r >= 0 && i < OBJECT_KINDS; i++) {
                const ObjectKind *k = kinds[i];
                ObjectSet *set = &s->objects[i];

                *set = (ObjectSet) { s, k };
                r = sd_bus_add_fallback_vtable(bus, NULL, k->prefix, k->interface, k->vtable, find_object, set);
                if (r >= 0)
                        r = sd_bus_add_node_enumerator(bus, NULL, k->prefix, list_objects, set);
        }
        return r < 0 ? r : log_control_add(bus, s);
}
