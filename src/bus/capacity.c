/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measures the capacity of the node, and compares two measurements. */

#include "bus/capacity.h"

#include <stdio.h>

#include "util/strings.h"
#include "util/stringtable.h"

static const char *const pool_trait_table[_POOL_TRAIT_MAX] = {
        [POOL_TRAIT_GPU] = "gpu", [POOL_TRAIT_ACCELERATOR] = "accelerator",   [POOL_TRAIT_NIC] = "nic",
        [POOL_TRAIT_VF] = "vf",   [POOL_TRAIT_ONE_TIME_USE] = "one-time-use",
};
DEFINE_STRING_TABLE_TO_STRING(pool_trait, PoolTrait, _POOL_TRAIT_MAX)

const char *const pool_property_names[_POOL_PROPERTY_MAX] = {
        [POOL_PROPERTY_TOTAL] = "Total",
        [POOL_PROPERTY_AVAILABLE] = "Available",
        [POOL_PROPERTY_ALLOCATED] = "Allocated",
        [POOL_PROPERTY_RESERVED] = "Reserved",
        [POOL_PROPERTY_OUT_OF_SERVICE] = "OutOfService",
        [POOL_PROPERTY_NUMA_NODES] = "NumaNodes",
        [POOL_PROPERTY_MODELS] = "Models",
        [POOL_PROPERTY_TRAITS] = "Traits",
};

const char *const node_property_names[_NODE_PROPERTY_MAX] = {
        [NODE_PROPERTY_CPUS] = "Cpus",     [NODE_PROPERTY_CPUS_FREE] = "CpusFree",
        [NODE_PROPERTY_MEMORY] = "Memory", [NODE_PROPERTY_MEMORY_FREE] = "MemoryFree",
        [NODE_PROPERTY_PAGES] = "Pages",
};

static DeviceCount count_of_state(DeviceState state) {
        switch (state) {
        case DEVICE_STATE_AVAILABLE:
                return DEVICE_COUNT_AVAILABLE;
        case DEVICE_STATE_ALLOCATED:
                return DEVICE_COUNT_ALLOCATED;
        case DEVICE_STATE_RESERVED:
                return DEVICE_COUNT_RESERVED;
        default:
                return DEVICE_COUNT_OUT_OF_SERVICE;
        }
}

static void count_in(DeviceCounts *counts, DeviceState state) {
        counts->n[DEVICE_COUNT_TOTAL]++;
        counts->n[count_of_state(state)]++;
}

/* Returns the numbers of the pool on the NUMA node. Inserts an element, in ascending order of nodes, if there is none.
 * NULL when there is no room. */
static PoolNode *pool_node(PoolCapacity *pool, int id) {
        size_t i = 0;

        while (i < pool->n_nodes && pool->nodes[i].id < id)
                i++;
        if (i < pool->n_nodes && pool->nodes[i].id == id)
                return &pool->nodes[i];
        if (pool->n_nodes == ELEMENTSOF(pool->nodes))
                return NULL;
        memmove(&pool->nodes[i + 1], &pool->nodes[i], (pool->n_nodes++ - i) * sizeof(*pool->nodes));
        pool->nodes[i] = (PoolNode) { .id = id };
        return &pool->nodes[i];
}

static void count_device(PoolCapacity *pool, int numa_node, DeviceState state) {
        PoolNode *node = pool_node(pool, numa_node);

        count_in(&pool->counts, state);
        if (node)
                count_in(&node->counts, state);
}

static void count_model(PoolCapacity *pool, const PciDevice *dev) {
        size_t i = 0;

        while (i < pool->n_models && (pool->models[i].vendor != dev->vendor || pool->models[i].device != dev->device))
                i++;
        if (i == ELEMENTSOF(pool->models))
                return;
        if (i == pool->n_models)
                pool->models[pool->n_models++] = (PoolModel) { .vendor = dev->vendor, .device = dev->device };
        pool->models[i].n++;
}

static unsigned device_traits(const Pool *pool, const PciDevice *dev) {
        return (pci_device_is_gpu(dev)           ? 1U << POOL_TRAIT_GPU
                : pci_device_is_accelerator(dev) ? 1U << POOL_TRAIT_ACCELERATOR
                                                 : 0) |
               (pci_device_is_nic(dev) ? 1U << POOL_TRAIT_NIC : 0) |
               (dev->type == PCI_TYPE_VF ? 1U << POOL_TRAIT_VF : 0) |
               (pool->one_time_use ? 1U << POOL_TRAIT_ONE_TIME_USE : 0);
}

static void count_present(const HostView *view, const DeviceSnapshotList *shown, Capacity *c) {
        for (size_t i = 0; i < view->inventory->n_devices; i++) {
                const PciDevice *dev = &view->inventory->devices[i];
                const Pool *pool = policy_pool(view->policy, dev);
                const DeviceSnapshot *known;
                PoolCapacity *p;

                if (!pool)
                        continue;
                p = &c->pools[pool - view->config->pools];
                known = shown ? device_snapshot_list_find(shown, dev->address) : NULL;
                p->traits = p->n_models > 0 ? p->traits & device_traits(pool, dev) : device_traits(pool, dev);
                count_model(p, dev);
                count_device(p, inventory_device_cpu_node(view->inventory, dev),
                             known ? (DeviceState) known->values[DEVICE_PROPERTY_STATE]
                                   : device_state(view, dev, NULL));
        }
}

static void count_missing(const HostView *view, Capacity *c) {
        for (size_t i = 0; i < view->ledger->n_claims; i++) {
                const Claim *claim = &view->ledger->claims[i];
                const AllocationDevice *d;
                const Pool *pool;

                if (inventory_find(view->inventory, claim->address))
                        continue;
                d = allocation_find_device(claim->allocation, claim->address);
                pool = d && d->pool ? config_find_pool(view->config, d->pool) : NULL;
                if (pool)
                        count_device(&c->pools[pool - view->config->pools], d->numa_node, DEVICE_STATE_MISSING);
        }
}

static void count_slots(const HostView *view, const RemoteService *s, PoolCapacity *pool) {
        uint32_t *n = pool->counts.n;

        for (size_t i = 0; i < view->ledger->n_allocations; i++) {
                const Allocation *a = view->ledger->allocations[i];

                for (size_t k = 0; k < a->n_services; k++)
                        if (streq(a->services[k].name, s->name))
                                n[a->hold > 0 ? DEVICE_COUNT_RESERVED : DEVICE_COUNT_ALLOCATED] += a->services[k].slots;
        }
        for (size_t i = 0; i < s->n_endpoints && !config_via_problem(view->config, s); i++)
                n[DEVICE_COUNT_AVAILABLE] +=
                        ledger_slots_free(view->ledger, view->config, view->endpoints, s->endpoints[i].name);
        n[DEVICE_COUNT_TOTAL] = n[DEVICE_COUNT_AVAILABLE] + n[DEVICE_COUNT_ALLOCATED] + n[DEVICE_COUNT_RESERVED];
}

static NodeCapacity measure_node(const HostView *view, const NumaNode *node) {
        NodeCapacity n = { .id = node->id, .cpus = cpuset_count(&node->cpus), .memory = node->memory };
        CpuSet cpus;

        ledger_cpus_free(view->ledger, view->inventory, view->config, node, &cpus);
        n.cpus_free = cpuset_count(&cpus);
        n.memory_free = ledger_memory_offered(view->ledger, view->inventory, view->config, node, 0);
        for (; n.n_pages < node->n_pages; n.n_pages++) {
                uint64_t size = node->pages[n.n_pages].size;
                uint64_t bytes = ledger_memory_offered(view->ledger, view->inventory, view->config, node, size);

                n.pages[n.n_pages] = (PagePool) { size, node->pages[n.n_pages].total, bytes / size };
        }
        return n;
}

Capacity *capacity_new(const HostView *view, const DeviceSnapshotList *shown) {
        _cleanup_(cleanup_capacity_free) Capacity *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        c->pools = calloc(view->config->n_pools + view->config->n_services + 1, sizeof(*c->pools));
        c->nodes = calloc(view->inventory->n_nodes + 1, sizeof(*c->nodes));
        if (!c->pools || !c->nodes)
                return NULL;
        for (; c->n_pools < view->config->n_pools; c->n_pools++)
                (void) snprintf(c->pools[c->n_pools].name, sizeof(c->pools->name), "%s",
                                view->config->pools[c->n_pools].name);
        count_present(view, shown, c);
        count_missing(view, c);
        for (size_t i = 0; i < view->config->n_services; i++, c->n_pools++) {
                (void) snprintf(c->pools[c->n_pools].name, sizeof(c->pools->name), "%s",
                                view->config->services[i].name);
                count_slots(view, &view->config->services[i], &c->pools[c->n_pools]);
        }
        for (; c->n_nodes < view->inventory->n_nodes; c->n_nodes++)
                c->nodes[c->n_nodes] = measure_node(view, &view->inventory->nodes[c->n_nodes]);
        return TAKE_PTR(c);
}

Capacity *capacity_free(Capacity *c) {
        if (!c)
                return NULL;
        free(c->pools);
        free(c->nodes);
        free(c);
        return NULL;
}

const PoolCapacity *capacity_find_pool(const Capacity *c, const char *name) {
        for (size_t i = 0; c && i < c->n_pools; i++)
                if (streq(c->pools[i].name, name))
                        return &c->pools[i];
        return NULL;
}

const NodeCapacity *capacity_find_node(const Capacity *c, int id) {
        for (size_t i = 0; c && i < c->n_nodes; i++)
                if (c->nodes[i].id == id)
                        return &c->nodes[i];
        return NULL;
}

/* True when the arrays `a` and `b` differ in length or content. Their elements must have no padding. */
#define ARRAYS_DIFFER(a, n_a, b, n_b) ((n_a) != (n_b) || memcmp(a, b, (n_a) * sizeof(*(a))) != 0)

unsigned pool_capacity_differences(const PoolCapacity *before, const PoolCapacity *now) {
        unsigned properties = 0;

        for (unsigned i = 0; i < _DEVICE_COUNT_MAX; i++)
                if (before->counts.n[i] != now->counts.n[i])
                        properties |= 1U << (POOL_PROPERTY_TOTAL + i);
        if (ARRAYS_DIFFER(before->nodes, before->n_nodes, now->nodes, now->n_nodes))
                properties |= 1U << POOL_PROPERTY_NUMA_NODES;
        if (ARRAYS_DIFFER(before->models, before->n_models, now->models, now->n_models))
                properties |= 1U << POOL_PROPERTY_MODELS;
        if (before->traits != now->traits)
                properties |= 1U << POOL_PROPERTY_TRAITS;
        return properties;
}

unsigned node_capacity_differences(const NodeCapacity *before, const NodeCapacity *now) {
        return (before->cpus != now->cpus ? 1U << NODE_PROPERTY_CPUS : 0) |
               (before->cpus_free != now->cpus_free ? 1U << NODE_PROPERTY_CPUS_FREE : 0) |
               (before->memory != now->memory ? 1U << NODE_PROPERTY_MEMORY : 0) |
               (before->memory_free != now->memory_free ? 1U << NODE_PROPERTY_MEMORY_FREE : 0) |
               (ARRAYS_DIFFER(before->pages, before->n_pages, now->pages, now->n_pages) ? 1U << NODE_PROPERTY_PAGES
                                                                                        : 0);
}
