/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a caller wants. Already parsed and within bounds once request_check() accepted it. */

#include "ledger/allocation.h"
#include "model/locality.h"
#include "model/numapolicy.h"

#define REQUEST_POOLS_MAX   16U
#define REQUEST_DEVICES_MAX 64U /* of one request, over all pools: a guest with root ports for more is not bootable */
#define REQUEST_LIMITS_MAX  32U
#define REQUEST_PAGE_MIN    4096U /* that of ordinary pages */

typedef struct RequestPool {
        char *pool;
        unsigned count;
} RequestPool;

/*
 * How far devices of two pools may be apart: each device of the pool of which more are wanted has a partner in the
 * other within the limit, and no partner has more than its even share of them. Of a pool and itself: any two of its
 * devices.
 */
typedef struct RequestLimit {
        char *pools[2];
        Proximity limit;
} RequestLimit;

/* What the VF of one slot is to have; of the pool's name: of all its slots. */
typedef struct RequestAttributes {
        char *slot;
        VfAttributes attributes;
} RequestAttributes;

typedef struct Request {
        RequestPool pools[REQUEST_POOLS_MAX]; /* in the caller's order: guest slots follow it */
        size_t n_pools;
        RequestAttributes attributes[REQUEST_DEVICES_MAX]; /* each slot at most once */
        size_t n_attributes;
        Region regions[ALLOCATION_REGIONS_MAX]; /* memory to share; on which node is to be planned */
        size_t n_regions;
        unsigned cpus;       /* vCPUs, each pinned to one host CPU; 0: devices only */
        uint64_t memory;     /* bytes; 0 only when cpus is 0 */
        uint64_t page_size;  /* bytes; 0: ordinary pages */
        unsigned cells;      /* guest NUMA cells; 0: as few as fit */
        NumaPolicy numa;     /* a pool may be stricter */
        Proximity proximity; /* of GPUs and their NICs */
        RequestLimit limits[REQUEST_LIMITS_MAX];
        size_t n_limits;
        GuestTopology topology; /* invalid: mirror for more than one device, where that fits */
        uint32_t owner;         /* for whom it is, where has_owner says that this is known: a plan need not know */
        bool has_owner;
        bool release_with_domain; /* it is released when the domain that ran with it is gone */
        bool repeat;              /* of a plan: how often it fits */
        bool force;               /* the boot VGA and the console's card are given as well */
} Request;

/* Defaults: nothing wanted, legacy, any. */
void request_init(Request *r);
void request_done(Request *r);
#define _cleanup_request_ _cleanup_(request_done)

/* Takes a copy of pool. -E2BIG beyond REQUEST_POOLS_MAX, -EEXIST for a pool named twice. */
int request_add_pool(Request *r, const char *pool, unsigned count);
/* Where the pool is in the request. */
bool request_find_pool(const Request *r, const char *pool, size_t *ret);
/* Takes copies of the names, which request_check() looks at. -E2BIG beyond REQUEST_LIMITS_MAX. */
int request_add_limit(Request *r, const char *pool, const char *other, Proximity limit);
/* Takes a copy of slot. -E2BIG beyond REQUEST_DEVICES_MAX, -EEXIST for a slot named twice. */
int request_add_attributes(Request *r, const char *slot, const VfAttributes *attributes);
/* VERDICT_INVALID_REQUEST for a name that cannot be one or is there already, and for too many. */
Verdict request_add_region(Request *r, const char *name, uint64_t size, uint64_t page_size, Refusal *ret);

/* What the index-th device of a pool is called: "gpu0", "a100_0". SLOT_NAME_MAX bytes are enough. */
#define SLOT_NAME_MAX 80
const char *slot_name(const char *pool, unsigned index, char buf[static SLOT_NAME_MAX]);

/* Bytes of the pages that its memory is of. */
uint64_t request_page(const Request *r);

/* Bounds and consistency that need no inventory: VERDICT_NONE or VERDICT_INVALID_REQUEST with the sentence. */
Verdict request_check(const Request *r, Refusal *ret);
