/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The D-Bus interface org.passthroughd1.Pool. */
#include <errno.h>

#include "server-internal.h"
#include "util/strings.h"

static const PoolCapacity *find_pool(Server *s, const char *path) {
        _cleanup_free_ char *name = NULL;

        return sd_bus_path_decode(path, BUS_POOL_PREFIX, &name) > 0 ? capacity_find_pool(server_capacity(s), name)
                                                                    : NULL;
}

static int pool_find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret_found,
                     sd_bus_error *error) {
        if (!find_pool(userdata, path))
                return 0;
        *ret_found = userdata;
        return 1;
}

static int append_nodes(sd_bus_message *reply, const PoolCapacity *pool) {
        int r = sd_bus_message_open_container(reply, 'a', "(iuuuuu)");

        for (size_t i = 0; r >= 0 && i < pool->n_nodes; i++) {
                const uint32_t *n = pool->nodes[i].counts.n;

                r = sd_bus_message_append(reply, "(iuuuuu)", pool->nodes[i].id, n[DEVICE_COUNT_TOTAL],
                                          n[DEVICE_COUNT_AVAILABLE], n[DEVICE_COUNT_ALLOCATED],
                                          n[DEVICE_COUNT_RESERVED], n[DEVICE_COUNT_OUT_OF_SERVICE]);
        }
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_models(sd_bus_message *reply, const PoolCapacity *pool) {
        int r = sd_bus_message_open_container(reply, 'a', "(qqu)");

        for (size_t i = 0; r >= 0 && i < pool->n_models; i++)
                r = sd_bus_message_append(reply, "(qqu)", pool->models[i].vendor, pool->models[i].device,
                                          pool->models[i].n);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int append_traits(sd_bus_message *reply, const PoolCapacity *pool) {
        int r = sd_bus_message_open_container(reply, 'a', "s");

        for (unsigned i = 0; r >= 0 && i < _POOL_TRAIT_MAX; i++)
                if (pool->traits & 1U << i)
                        r = sd_bus_message_append(reply, "s", pool_trait_to_string((PoolTrait) i));
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

static int pool_property_get(sd_bus *bus, const char *path, const char *interface, const char *property,
                             sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const PoolCapacity *pool = find_pool(userdata, path);
        PoolProperty p = pool_property_from_string(property);

        if (!pool)
                return -ENOENT;
        switch (p) {
        case POOL_PROPERTY_NUMA_NODES:
                return append_nodes(reply, pool);
        case POOL_PROPERTY_MODELS:
                return append_models(reply, pool);
        case POOL_PROPERTY_TRAITS:
                return append_traits(reply, pool);
        case _POOL_PROPERTY_INVALID:
                return sd_bus_message_append(reply, "s", pool->name);
        default:
                return sd_bus_message_append(reply, "u", pool->counts.n[p - POOL_PROPERTY_TOTAL]);
        }
}

#define CHANGES SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE

static const sd_bus_vtable pool_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Name", "s", pool_property_get, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Total", "u", pool_property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Available", "u", pool_property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Allocated", "u", pool_property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Reserved", "u", pool_property_get, 0, CHANGES),
        SD_BUS_PROPERTY("OutOfService", "u", pool_property_get, 0, CHANGES),
        SD_BUS_PROPERTY("NumaNodes", "a(iuuuuu)", pool_property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Models", "a(qqu)", pool_property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Traits", "as", pool_property_get, 0, CHANGES),
        SD_BUS_VTABLE_END,
};

static int pool_enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret_nodes, sd_bus_error *error) {
        const Capacity *c = server_capacity(userdata);
        size_t n = c ? c->n_pools : 0;
        _cleanup_(server_free_nodes) char **nodes = calloc(n + 1, sizeof(*nodes));
        int r = nodes ? 0 : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = pool_path(c->pools[i].name, &nodes[i]);
        if (r < 0)
                return r;
        *ret_nodes = TAKE_PTR(nodes);
        return 0;
}

int pool_objects_add(sd_bus *bus, Server *s) {
        int r = sd_bus_add_fallback_vtable(bus, NULL, BUS_POOL_PREFIX, BUS_POOL_INTERFACE, pool_vtable, pool_find, s);

        return r < 0 ? r : sd_bus_add_node_enumerator(bus, NULL, BUS_POOL_PREFIX, pool_enumerate, s);
}

/* The D-Bus interface org.passthroughd1.Node. */

static const NodeCapacity *find_node(Server *s, const char *path) {
        _cleanup_free_ char *label = NULL;
        uint64_t id;

        return sd_bus_path_decode(path, BUS_NODE_PREFIX, &label) > 0 && parse_unsigned(label, INT32_MAX, &id) == 0
                       ? capacity_find_node(server_capacity(s), (int) id)
                       : NULL;
}

static int node_find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret_found,
                     sd_bus_error *error) {
        if (!find_node(userdata, path))
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

static int node_property_get(sd_bus *bus, const char *path, const char *interface, const char *property,
                             sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const NodeCapacity *node = find_node(userdata, path);

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

static const sd_bus_vtable node_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Id", "i", node_property_get, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Cpus", "u", node_property_get, 0, CHANGES),
        SD_BUS_PROPERTY("CpusFree", "u", node_property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Memory", "t", node_property_get, 0, CHANGES),
        SD_BUS_PROPERTY("MemoryFree", "t", node_property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Pages", "a(ttt)", node_property_get, 0, CHANGES),
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
