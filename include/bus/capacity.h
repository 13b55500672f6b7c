/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The capacity of the node in numbers: the devices of each pool by state, and CPUs and memory of each NUMA node. The
 * D-Bus objects of pools and nodes show these numbers. To find the signals to send, the daemon compares the current
 * numbers with those that it signalled last. Pure. */

#include "bus/changes.h"
#include "plan/device-state.h"

#define CAPACITY_MODELS_MAX 64U /* listed models of a pool; further models are left out */
#define CAPACITY_NODES_MAX  (INVENTORY_NODES_MAX + 1U)

/* Every device of a pool is counted in DEVICE_COUNT_TOTAL and in exactly one other number, by its DeviceState. An
 * allocated device that is missing from the node is counted as well. A service has the same numbers, counted in slots.
 * The numbers of a service include slots that allocations keep although the endpoint now has fewer. */
typedef enum DeviceCount {
        DEVICE_COUNT_TOTAL,
        DEVICE_COUNT_AVAILABLE,      /* DEVICE_STATE_AVAILABLE */
        DEVICE_COUNT_ALLOCATED,      /* DEVICE_STATE_ALLOCATED */
        DEVICE_COUNT_RESERVED,       /* DEVICE_STATE_RESERVED */
        DEVICE_COUNT_OUT_OF_SERVICE, /* any other DeviceState */
        _DEVICE_COUNT_MAX,
} DeviceCount;
typedef struct DeviceCounts {
        uint32_t n[_DEVICE_COUNT_MAX];
} DeviceCounts;

/* A property that every present device of a pool has. */
typedef enum PoolTrait {
        POOL_TRAIT_GPU,         /* the device is a GPU */
        POOL_TRAIT_ACCELERATOR, /* the device is an accelerator other than a GPU */
        POOL_TRAIT_NIC,
        POOL_TRAIT_VF,
        POOL_TRAIT_ONE_TIME_USE, /* OneTimeUse= */
        _POOL_TRAIT_MAX,
} PoolTrait;
const char *pool_trait_to_string(PoolTrait t);

typedef struct PoolNode {
        int32_t id; /* id of the NUMA node; -1: unknown */
        DeviceCounts counts;
} PoolNode;

typedef struct PoolModel {
        uint16_t vendor, device;
        uint32_t n; /* number of present devices of the model */
} PoolModel;

typedef struct PoolCapacity {
        char name[POOL_NAME_MAX + 1];
        DeviceCounts counts;
        PoolNode nodes[CAPACITY_NODES_MAX]; /* NUMA nodes with devices of the pool, ascending */
        size_t n_nodes;
        PoolModel models[CAPACITY_MODELS_MAX]; /* in the order of their first devices */
        size_t n_models;
        unsigned traits; /* a bit (1 << PoolTrait) for each trait; 0 for a pool without present devices */
} PoolCapacity;

typedef struct NodeCapacity {
        int id;
        uint32_t cpus, cpus_free;       /* online CPUs, and how many of them a further allocation may have */
        uint64_t memory, memory_free;   /* bytes: all memory, and the ordinary pages that are free for a request without
                                           memory-from */
        PagePool pages[PAGE_SIZES_MAX]; /* hugepages of each size; PagePool.free has those that are free for a request
                                           without memory-from */
        size_t n_pages;
} NodeCapacity;

typedef struct Capacity {
        PoolCapacity *pools; /* in the order of the configuration, services last */
        size_t n_pools;
        NodeCapacity *nodes; /* ascending by id */
        size_t n_nodes;
} Capacity;

/* Measures the capacity. `shown` has the device states as last signalled to clients, or is NULL; the state of a device
 * that it lacks is determined from `view`. The caller owns the result. NULL when out of memory. */
Capacity *capacity_new(const HostView *view, const DeviceSnapshotList *shown);
Capacity *capacity_free(Capacity *c);
DEFINE_CLEANUP(Capacity *, capacity_free)
/* Return the numbers of the pool or service, and of the NUMA node. NULL when c is NULL or has no such pool or node. */
const PoolCapacity *capacity_find_pool(const Capacity *c, const char *name);
const NodeCapacity *capacity_find_node(const Capacity *c, int id);

/* Properties that can change during the lifetime of a pool object or of a node object. */
typedef enum PoolProperty {
        POOL_PROPERTY_TOTAL, /* the first properties are in the order of DeviceCount */
        POOL_PROPERTY_AVAILABLE,
        POOL_PROPERTY_ALLOCATED,
        POOL_PROPERTY_RESERVED,
        POOL_PROPERTY_OUT_OF_SERVICE,
        POOL_PROPERTY_NUMA_NODES,
        POOL_PROPERTY_MODELS,
        POOL_PROPERTY_TRAITS,
        _POOL_PROPERTY_MAX,
        _POOL_PROPERTY_INVALID = -22,
} PoolProperty;
extern const char *const pool_property_names[_POOL_PROPERTY_MAX];

typedef enum NodeProperty {
        NODE_PROPERTY_CPUS,
        NODE_PROPERTY_CPUS_FREE,
        NODE_PROPERTY_MEMORY,
        NODE_PROPERTY_MEMORY_FREE,
        NODE_PROPERTY_PAGES,
        _NODE_PROPERTY_MAX,
} NodeProperty;
extern const char *const node_property_names[_NODE_PROPERTY_MAX];

/* Compare two measurements of a pool or of a NUMA node. Return a bit (1 << PoolProperty or NodeProperty) for each
 * property that differs. */
unsigned pool_capacity_differences(const PoolCapacity *before, const PoolCapacity *now);
unsigned node_capacity_differences(const NodeCapacity *before, const NodeCapacity *now);
