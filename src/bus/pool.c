/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The D-Bus interface org.passthroughd1.Pool. */

#include "server-internal.h"
#include "util/strings.h"
#include "util/stringtable.h"

static void *find_pool(Server *s, const char *label) {
        return (void *) capacity_find_pool(server_capacity(s), label);
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
        const PoolCapacity *pool = userdata;
        PoolProperty p = (PoolProperty) string_table_find(pool_property_names, _POOL_PROPERTY_MAX, property);

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

static size_t count_pools(Server *s) {
        const Capacity *c = server_capacity(s);

        return c ? c->n_pools : 0;
}

static int path_of_pool(Server *s, size_t i, char **ret) {
        return pool_path(server_capacity(s)->pools[i].name, ret);
}

const ObjectKind pool_objects = { BUS_POOL_PREFIX, BUS_POOL_INTERFACE, pool_vtable, pool_property_names,
                                  find_pool,       count_pools,        path_of_pool };

/* The D-Bus interface org.passthroughd1.Node, whose objects are NUMA nodes. */

static void *find_node(Server *s, const char *label) {
        uint64_t id;

        return parse_unsigned(label, INT32_MAX, &id) < 0 ? NULL
                                                         : (void *) capacity_find_node(server_capacity(s), (int) id);
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
        const NodeCapacity *node = userdata;

        switch (string_table_find(node_property_names, _NODE_PROPERTY_MAX, property)) {
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

static size_t count_nodes(Server *s) {
        const Capacity *c = server_capacity(s);

        return c ? c->n_nodes : 0;
}

static int path_of_node(Server *s, size_t i, char **ret) {
        return node_path(server_capacity(s)->nodes[i].id, ret);
}

const ObjectKind node_objects = { BUS_NODE_PREFIX, BUS_NODE_INTERFACE, node_vtable, node_property_names,
                                  find_node,       count_nodes,        path_of_node };
