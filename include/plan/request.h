/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A caller's request. request_check() checks that all values are within bounds. */

#include "ledger/allocation.h"
#include "model/locality.h"
#include "model/numapolicy.h"

#define REQUEST_POOLS_MAX   8U
/* The most devices of a request, over all pools; slots of services count too. A guest with root ports for more devices
 * does not boot. */
#define REQUEST_DEVICES_MAX 64U
#define REQUEST_LIMITS_MAX  32U
#define REQUEST_PAGE_MIN    4096U  /* bytes; ordinary pages of x86-64 */
#define REQUEST_PAGE_ARM    65536U /* bytes; the largest ordinary pages of aarch64, which kernels for Grace use */

typedef struct RequestPool {
        char *pool;
        unsigned count;
} RequestPool;

/*
 * The largest allowed distance between devices of two pools. Each device of the pool with the larger count has a
 * partner in the other pool within this distance, and the partners are distributed evenly. If both pools are the same:
 * the largest allowed distance between any two of its devices.
 */
typedef struct RequestLimit {
        char *pools[2];
        Proximity limit;
} RequestLimit;

/*
 * Attributes requested for the VF of one slot, or, if slot is the name of a pool, for the VFs of all slots of the pool.
 */
typedef struct RequestAttributes {
        char *slot;
        VfAttributes attributes;
} RequestAttributes;

/* A device that the caller has chosen by address. It is one of the devices that the request wants of the pool. */
typedef struct RequestDevice {
        char *pool;
        PciAddress address;
} RequestDevice;

typedef struct Request {
        RequestPool pools[REQUEST_POOLS_MAX]; /* in the caller's order, which is also that of the guest's slots. Callers
                                                 name services like pools, so services are here too until
                                                 request_for_hardware() moves them */
        size_t n_pools;
        RequestPool services[REQUEST_POOLS_MAX]; /* the services among the pools; set by request_for_hardware() */
        size_t n_services;
        RequestDevice at[REQUEST_DEVICES_MAX]; /* each address once */
        size_t n_at;
        RequestAttributes attributes[REQUEST_DEVICES_MAX]; /* each slot once */
        size_t n_attributes;
        Region regions[ALLOCATION_REGIONS_MAX]; /* shared memory; for new regions the planner chooses the node */
        size_t n_regions;
        unsigned cpus;                        /* vCPUs, each pinned to one host CPU; 0: no CPUs */
        uint64_t memory;                      /* bytes; 0 if and only if cpus is 0 */
        uint64_t page_size;                   /* bytes; 0: ordinary pages */
        uint64_t base_page;                   /* bytes of an ordinary page; 0: REQUEST_PAGE_MIN. Set by the planner */
        unsigned cells;                       /* number of guest NUMA cells; 0: as few as possible */
        int host_nodes[ALLOCATION_CELLS_MAX]; /* ids of the host nodes that the caller has chosen, each once */
        size_t n_host_nodes;                  /* 0: the planner chooses the nodes */
        CpuSet cpus_from;                     /* the guest only gets CPUs of this set; empty: any CPUs */
        CpuSet memory_from;  /* ids of nodes: each cell's memory comes from the nearest of them; empty: from the node of
                                the cell's CPUs */
        NumaPolicy numa;     /* policy for all pools that have no stricter one */
        Proximity proximity; /* the largest allowed distance between a GPU and its NIC */
        RequestLimit limits[REQUEST_LIMITS_MAX];
        size_t n_limits;
        Confidential confidential; /* SNP or TDX: the guest's memory shall be encrypted */
        GuestTopology topology;    /* _GUEST_TOPOLOGY_INVALID: mirror for several devices if it fits, else flat */
        uint32_t hold;             /* length of a lease in seconds; 0: no lease, prepare the devices at once */
        char *tag, *token;         /* Allocation.tag and .token; NULL: none */
        char *consumer;            /* Allocation.consumer; NULL: none */
        uint32_t owner;            /* uid, if has_owner is set. A request for a plan alone may have none */
        bool has_owner;
        bool release_with_domain; /* release the allocation when a domain that used it has ended */
        bool repeat;              /* for Plan only: count how often the request fits */
        bool no_fabric;           /* GPUs of pools with Fabric=yes need not be an NVLink partition */
        bool force;               /* allow the boot VGA device and the card of the console */
} Request;

/* Initializes a request: no devices, no CPUs, NUMA policy legacy, proximity any. */
void request_init(Request *r);
void request_done(Request *r);
#define _cleanup_request_ _cleanup_(request_done)

/* Adds count devices of a pool; copies the name. 0, -ENOMEM, -E2BIG beyond REQUEST_POOLS_MAX, -EEXIST when the pool is
 * in the request already. */
int request_add_pool(Request *r, const char *pool, unsigned count);
/* Returns true when the request names the pool. *ret is its index; ret may be NULL. */
bool request_find_pool(const Request *r, const char *pool, size_t *ret);
/* Adds a limit; copies the names, which request_check() validates later. 0, -ENOMEM, -E2BIG beyond
 * REQUEST_LIMITS_MAX. */
int request_add_limit(Request *r, const char *pool, const char *other, Proximity limit);
/* Adds an exact device; copies the pool's name. 0, -ENOMEM, -E2BIG beyond REQUEST_DEVICES_MAX, -EEXIST when the address
 * is in the request already. */
int request_add_device(Request *r, const char *pool, PciAddress address);
/* Adds a host node. 0, -E2BIG beyond ALLOCATION_CELLS_MAX, -EEXIST when the node is in the request already. */
int request_add_host_node(Request *r, int node);
/* Adds attributes; copies slot. 0, -ENOMEM, -E2BIG beyond REQUEST_DEVICES_MAX, -EEXIST when the slot has attributes
 * already. */
int request_add_attributes(Request *r, const char *slot, const VfAttributes *attributes);
/*
 * Adds shared memory of size bytes. VERDICT_INVALID_REQUEST for a name that is malformed or in the request already, and
 * beyond ALLOCATION_REGIONS_MAX.
 */
Verdict request_add_region(Request *r, const char *name, uint64_t size, uint64_t page_size, Refusal *ret);

/* Formats the name of slot `index` of a pool: "gpu0", "a100_0". */
#define SLOT_NAME_MAX 80
const char *slot_name(const char *pool, unsigned index, char buf[static SLOT_NAME_MAX]);

/* Returns true when r repeats the request that made `a`: `a` has this owner and the token of r. */
bool request_is_again(const Request *r, uint32_t owner, const Allocation *a);

/* Returns true when the request names exact devices, nodes, CPUs or memory nodes. */
bool request_is_exact(const Request *r);

/* Returns the page size of the guest's memory in bytes, also for ordinary pages. */
uint64_t request_page(const Request *r);

/*
 * Returns a copy of r with services and pools separated, and with one device added for each Via= pool that r does not
 * name. The copy borrows all names and must not be freed.
 */
Request request_for_hardware(const Request *r, const Config *config);

/* Checks all that needs no inventory: bounds and contradictions. VERDICT_NONE or VERDICT_INVALID_REQUEST. */
Verdict request_check(const Request *r, Refusal *ret);
