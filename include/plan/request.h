/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The request of a caller. After request_check() accepted it, all values are within bounds. */

#include "ledger/allocation.h"
#include "model/locality.h"
#include "model/numapolicy.h"

#define REQUEST_POOLS_MAX   8U
/* Devices of one request, over all pools. A guest with root ports for more devices does not boot. */
#define REQUEST_DEVICES_MAX 64U
#define REQUEST_LIMITS_MAX  32U
#define REQUEST_PAGE_MIN    4096U  /* bytes; the size of ordinary pages */
#define REQUEST_PAGE_ARM    65536U /* the largest one of aarch64, as kernels for Grace have it */

typedef struct RequestPool {
        char *pool;
        unsigned count;
} RequestPool;

/*
 * The largest distance between devices of two pools. Each device of the pool with the larger count has a partner in the
 * other pool within the limit, and the partners are shared evenly. For a pool with itself: the largest distance between
 * any two of its devices.
 */
typedef struct RequestLimit {
        char *pools[2];
        Proximity limit;
} RequestLimit;

/*
 * Attributes requested for the VF of one slot. slot may also be the name of a pool, and then means all slots of the
 * pool.
 */
typedef struct RequestAttributes {
        char *slot;
        VfAttributes attributes;
} RequestAttributes;

/* A device that the request wants, for one of the count of its pool. */
typedef struct RequestDevice {
        char *pool;
        PciAddress address;
} RequestDevice;

typedef struct Request {
        RequestPool pools[REQUEST_POOLS_MAX]; /* in the caller's order, which is the order of the guest slots. Services
                                                 too, as the caller names them alike */
        size_t n_pools;
        RequestPool services[REQUEST_POOLS_MAX]; /* set by request_for_hardware() */
        size_t n_services;
        RequestDevice at[REQUEST_DEVICES_MAX]; /* each address at most once */
        size_t n_at;
        RequestAttributes attributes[REQUEST_DEVICES_MAX]; /* each slot at most once */
        size_t n_attributes;
        Region regions[ALLOCATION_REGIONS_MAX]; /* shared memory; the planner chooses the node */
        size_t n_regions;
        unsigned cpus;                        /* vCPUs, each pinned to one host CPU; 0: no CPUs */
        uint64_t memory;                      /* bytes; 0 if and only if cpus is 0 */
        uint64_t page_size;                   /* bytes; 0: ordinary pages */
        uint64_t base_page;                   /* size of ordinary pages; 0: REQUEST_PAGE_MIN. Set by the planner */
        unsigned cells;                       /* guest NUMA cells; 0: as few as possible */
        int host_nodes[ALLOCATION_CELLS_MAX]; /* ids: the nodes of the guest are exactly these, each once */
        size_t n_host_nodes;                  /* 0: the planner chooses the nodes */
        CpuSet cpus_from;                     /* the guest gets CPUs of this set alone; empty: any */
        CpuSet memory_from;  /* ids of nodes: each cell gets its memory from the nearest of these; empty: from the node
                                of its CPUs */
        NumaPolicy numa;     /* a pool may have a stricter policy, which then counts for its devices */
        Proximity proximity; /* largest distance of a GPU and its NIC */
        RequestLimit limits[REQUEST_LIMITS_MAX];
        size_t n_limits;
        Confidential confidential; /* SNP or TDX: the guest's memory is encrypted */
        GuestTopology topology;    /* invalid: mirror for more than one device if it fits, else flat */
        uint32_t hold;             /* seconds of a lease; 0: prepare the devices at once */
        char *tag, *token;         /* Allocation.tag and .token; NULL: none */
        char *consumer;            /* Allocation.consumer; NULL: none */
        uint32_t owner;            /* uid, valid when has_owner is set; a request for a mere plan may have none */
        bool has_owner;
        bool release_with_domain; /* release the allocation when the domain that used it is gone */
        bool repeat;              /* count how often the request fits; only for a plan */
        bool no_fabric;           /* GPUs of pools with Fabric=yes need not be an NVLink partition */
        bool force;               /* also give out the boot VGA device and the card of the console */
} Request;

/* Sets the defaults: no devices, no CPUs, NUMA policy legacy, proximity any. */
void request_init(Request *r);
void request_done(Request *r);
#define _cleanup_request_ _cleanup_(request_done)

/* Copies pool. 0, -ENOMEM, -E2BIG beyond REQUEST_POOLS_MAX, -EEXIST when pool is in the request already. */
int request_add_pool(Request *r, const char *pool, unsigned count);
/* True when the request names pool; *ret (or NULL) is its index. */
bool request_find_pool(const Request *r, const char *pool, size_t *ret);
/* Copies the names; request_check() validates them. 0, -ENOMEM, -E2BIG beyond REQUEST_LIMITS_MAX. */
int request_add_limit(Request *r, const char *pool, const char *other, Proximity limit);
/* Copies pool. 0, -ENOMEM, -E2BIG beyond REQUEST_DEVICES_MAX, -EEXIST when address is in the request already. */
int request_add_device(Request *r, const char *pool, PciAddress address);
/* 0, -E2BIG beyond ALLOCATION_CELLS_MAX, -EEXIST when node is in the request already. */
int request_add_host_node(Request *r, int node);
/* Copies slot. 0, -ENOMEM, -E2BIG beyond REQUEST_DEVICES_MAX, -EEXIST when slot has attributes already. */
int request_add_attributes(Request *r, const char *slot, const VfAttributes *attributes);
/*
 * Adds shared memory of size bytes. VERDICT_INVALID_REQUEST for a name that is malformed or in the request already, and
 * beyond ALLOCATION_REGIONS_MAX.
 */
Verdict request_add_region(Request *r, const char *name, uint64_t size, uint64_t page_size, Refusal *ret);

/* The slot name of the index-th device of a pool, "gpu0" or "a100_0". SLOT_NAME_MAX bytes are enough for it. */
#define SLOT_NAME_MAX 80
const char *slot_name(const char *pool, unsigned index, char buf[static SLOT_NAME_MAX]);

/* The request of owner is the one that has made a: it has the token of a. */
bool request_is_again(const Request *r, uint32_t owner, const Allocation *a);

/* True when the caller has chosen devices, nodes or CPUs. */
bool request_is_exact(const Request *r);

/* The page size of the request's memory, in bytes. */
uint64_t request_page(const Request *r);

/*
 * Returns r with its services apart from its pools, and with one device of each Via= pool that r does not name. The
 * result borrows all names and must not be freed.
 */
Request request_for_hardware(const Request *r, const Config *config);

/* Checks bounds and consistency, as far as that needs no inventory. VERDICT_NONE or VERDICT_INVALID_REQUEST. */
Verdict request_check(const Request *r, Refusal *ret);
