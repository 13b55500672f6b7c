/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The D-Bus interface org.passthroughd1.Node. */

#include <errno.h>

#include "server-internal.h"
#include "util/strings.h"

static const NodeCapacity *find(Server *s, const char *path) {
        _cleanup_free_ char *label = NULL;
        uint64_t id;

        return sd_bus_path_decode(path, BUS_NODE_PREFIX, &label) > 0 && parse_unsigned(label, INT32_MAX, &id) == 0
                       ? capacity_find_node(server_capacity(s), (int) id)
                       : NULL;
}

static int node_find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret_found,
                     sd_bus_error *error) {
        if (!find(userdata, path))
                return 0;
        *ret_found = userdata;
        return 1;
}

static int append_pages(sd_bus_message *reply, const NodeCapacity *node) {
        int r = sd_bus_message_open_container(reply, 'a', "(ttt)");

        for (size_t i = 0; r >= 0 && i < node->n_pages; i++)
                r = sd_bus_message_append(reply, "(ttt)", node->pages[i].size, node->pages[i].total,
                                          node->pages[i].free);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int property_get(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const NodeCapacity *node = find(userdata, path);

        if (!node)
                return -ENOENT;
        switch (node_property_from_string(property)) {
        case NODE_PROPERTY_CPUS:
                return sd_bus_message_append(reply, "u", node->cpus);
        case NODE_PROPERTY_CPUS_FREE:
                return sd_bus_message_append(reply, "u", node->cpus_free);
        case NODE_PROPERTY_MEMORY:
                return sd_bus_message_append(reply, "t", node->memory);
        case NODE_PROPERTY_MEMORY_FREE:
                return sd_bus_message_append(reply, "t", node->memory_free);
        case NODE_PROPERTY_PAGES:
                return append_pages(reply, node);
        default:
                return sd_bus_message_append(reply, "i", node->id);
        }
}

#define CHANGES SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE

static const sd_bus_vtable node_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Id", "i", property_get, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Cpus", "u", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("CpusFree", "u", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Memory", "t", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("MemoryFree", "t", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Pages", "a(ttt)", property_get, 0, CHANGES),
        SD_BUS_VTABLE_END,
};

static int node_enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret_nodes, sd_bus_error *error) {
        const Capacity *c = server_capacity(userdata);
        size_t n = c ? c->n_nodes : 0;
        _cleanup_(server_free_nodes) char **nodes = calloc(n + 1, sizeof(*nodes));
        int r = nodes ? 0 : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = node_path(c->nodes[i].id, &nodes[i]);
        if (r < 0)
                return r;
        *ret_nodes = TAKE_PTR(nodes);
        return 0;
}

int node_objects_add(sd_bus *bus, Server *s) {
        int r = sd_bus_add_fallback_vtable(bus, NULL, BUS_NODE_PREFIX, BUS_NODE_INTERFACE, node_vtable, node_find, s);

        return r < 0 ? r : sd_bus_add_node_enumerator(bus, NULL, BUS_NODE_PREFIX, node_enumerate, s);
}
