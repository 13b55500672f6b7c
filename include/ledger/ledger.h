/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ledger: which allocation has which hardware. Every claim is made here, so the ledger alone prevents
 * overcommitment. Invariants: a device and all devices of its IOMMU group are in at most one allocation; a PF is never
 * allocated together with its VFs; a CPU belongs to at most one allocation; a claim never makes the memory claimed on a
 * node in pages of one size exceed what the node has, less ReserveMemory= for ordinary pages; a shared region has one
 * owner and counts once; a claim never takes more slots of an endpoint than the endpoint has. The cost of a claim
 * without shared memory depends on the number of allocations only by binary searches and by moving elements of sorted
 * arrays. Pure: host/store.h writes the ledger to disk.
 */

#include "config/config.h"
#include "ledger/allocation.h"
#include "model/device-status.h"

#define LEDGER_ALLOCATIONS_MAX 16384U
#define LEDGER_REGIONS_MAX     256U

typedef struct Claim {
        PciAddress address;
        const Allocation *allocation;
} Claim;

typedef struct PfUse {
        PciAddress pf;
        unsigned vfs; /* how many of the PF's VFs are allocated */
} PfUse;

typedef struct MemoryClaim {
        int node;
        uint64_t page_size; /* 0: ordinary pages */
        uint64_t bytes;
        uint64_t backed; /* the part of bytes that the kernel no longer reports as free: running guests and existing
                            shared regions use it */
} MemoryClaim;

typedef struct SlotClaim {
        char endpoint[ENDPOINT_MAX + 1];
        unsigned slots; /* more than 0 */
} SlotClaim;

/* A region, and the allocations that use it. Freed when none uses it. */
typedef struct SharedRegion {
        Region region;
        uint32_t owner;
        const Allocation **members; /* ascending by name */
        size_t n_members;
        size_t n_ready; /* members in state ready. The region's file exists while there are any */
        bool removed;   /* the file was found missing or replaced although there are ready members */
} SharedRegion;

typedef struct Ledger {
        Allocation **allocations; /* ascending by name; owned */
        size_t n_allocations;
        Claim *claims; /* ascending by address */
        size_t n_claims;
        PfUse *pf_uses; /* ascending by address */
        size_t n_pf_uses;
        MemoryClaim *memory;
        size_t n_memory;
        SharedRegion **regions; /* ascending by name; owned */
        size_t n_regions;
        SlotClaim *slots; /* unsorted: a node has few endpoints */
        size_t n_slots;
        CpuSet cpus;
        /*
         * Devices in quarantine: their release failed, a job hangs at them, a guest of Nova has used them, or an admin
         * must inspect them after each use (OneTimeUse=). Neither the device nor its IOMMU group is allocated while it
         * is in quarantine. Each entry is an allocation made by allocation_reduce(): the name of the former holder
         * (after a guest of Nova, of the pool), only this device, and the cause as reason. The entries are on disk too.
         */
        Allocation **quarantined;
        size_t n_quarantined;
        char *read_only;  /* why changes are refused, a sentence; usually NULL */
        char *unwritable; /* why the last write to disk failed, a sentence; NULL when it succeeded */
} Ledger;

Ledger *ledger_new(void);
Ledger *ledger_free(Ledger *l);
DEFINE_CLEANUP(Ledger *, ledger_free)
/* Copies the ledger. The copy accepts changes even if l is read-only. NULL: out of memory, or two allocations of l have
 * the same hardware. */
Ledger *ledger_copy(const Ledger *l);

/* Returns why changes are refused (read_only), or may fail (unwritable); usually NULL. */
const char *ledger_problem(const Ledger *l);

/*
 * Claims all hardware of the allocation, or changes nothing. inv has the groups and capacities. Findings about the
 * devices are not checked here; the planner has checked them. On VERDICT_NONE the ledger owns the allocation.
 */
Verdict ledger_claim(Ledger *l, const Inventory *inv, const Config *config, Allocation *a, Refusal *ret);

/*
 * Adds an allocation that was claimed before, such as one read from disk at startup. Does not check inventory and
 * capacity, because the claim stands even if the hardware is missing. Refuses a name or hardware that another
 * allocation has. On VERDICT_NONE the ledger owns the allocation.
 */
Verdict ledger_adopt(Ledger *l, Allocation *a, Refusal *ret);

/* Removes the allocation, which the caller then owns. NULL when no allocation has the name. */
Allocation *ledger_remove(Ledger *l, const char *name);

/* Sets the state of an allocation of the ledger, and updates n_ready of its regions. */
void ledger_set_state(Ledger *l, Allocation *a, AllocationState state);
/* Sets whether the guest of an allocation of the ledger has all its memory allocated. */
void ledger_set_running(Ledger *l, Allocation *a, bool running);

Allocation *ledger_find(const Ledger *l, const char *name);
/* Returns the allocation that has this device, or NULL. */
const Allocation *ledger_holder(const Ledger *l, PciAddress address);
/* Returns the region of that name; NULL when no allocation uses it. */
const SharedRegion *ledger_find_region(const Ledger *l, const char *name);
void ledger_set_region_removed(Ledger *l, const char *name, bool removed);
/* Refuses with VERDICT_SHARED_MEMORY_TAKEN when the region exists with another owner. */
Verdict ledger_check_region_owner(const Ledger *l, const Region *r, uint32_t owner, Refusal *ret);
/* Refuses with VERDICT_SHARED_MEMORY_TAKEN when the region exists with another size or page size than r. */
Verdict ledger_check_region_kind(const Ledger *l, const Region *r, Refusal *ret);
/* Returns how many of the PF's VFs are allocated. */
unsigned ledger_pf_use(const Ledger *l, PciAddress pf);
/* Returns how many of the endpoint's slots are allocated. */
unsigned ledger_slots(const Ledger *l, const char *endpoint);
/* Returns how many slots of the endpoint a further allocation may have. 0 while status says that the endpoint is down.
 * status: NULL when unknown. */
unsigned ledger_slots_free(const Ledger *l, const Config *config, const EndpointStatusTable *status,
                           const char *endpoint);
/* Returns how many bytes of the node's memory are allocated in pages of this size. */
uint64_t ledger_memory(const Ledger *l, int node, uint64_t page_size);
/* Returns the part of ledger_memory() that the kernel still reports as free, because no running guest and no existing
 * shared region uses it. */
uint64_t ledger_memory_idle(const Ledger *l, int node, uint64_t page_size);
/*
 * Returns the bytes of the node, in pages of this size, that a further allocation may have: at most the node's
 * unclaimed memory (of ordinary pages, less ReserveMemory=), and at most the memory free now less ledger_memory_idle().
 */
uint64_t ledger_memory_free(const Ledger *l, const Inventory *inv, const Config *config, const NumaNode *node,
                            uint64_t page_size);
/* As ledger_memory_free(), for a request that names no memory node. 0 for a node without CPUs: only requests that name
 * such a node get its memory. */
uint64_t ledger_memory_offered(const Ledger *l, const Inventory *inv, const Config *config, const NumaNode *node,
                               uint64_t page_size);
/* Sets *ret to the CPUs of the node that a further allocation may have: those of cores without a housekeeping or
 * claimed CPU. */
void ledger_cpus_free(const Ledger *l, const Inventory *inv, const Config *config, const NumaNode *node, CpuSet *ret);

/*
 * Returns VERDICT_NONE when a new allocation may have dev: neither dev nor its IOMMU group, PF or VFs are claimed, in
 * quarantine, or have a finding that refuses requests. `status` may be NULL: no findings. `except` is NULL or an
 * allocation whose claims of dev, of its PF and of its IOMMU group are ignored. Claims of VFs of dev always count.
 */
Verdict ledger_check_device(const Ledger *l, const DeviceStatusTable *status, const Inventory *inv,
                            const PciDevice *dev, const Allocation *except, Refusal *ret);
/* How many vGPUs of a type the GPU of a VF can have. */
typedef struct VgpuRoom {
        unsigned type;    /* id of the type; 0: the VF does not offer the type now */
        unsigned total;   /* the most vGPUs of the type on the whole GPU; 0 unknown */
        unsigned further; /* further vGPUs of the type that the GPU has room for, beside those that exist or are
                             promised */
} VgpuRoom;
/* Sets *ret to the room for vGPUs of the type `name` on the GPU of vf. `grown` is NULL or an allocation outside the
 * ledger whose vGPUs count as if it were in the ledger. */
void ledger_vgpu_room(const Ledger *l, const Allocation *grown, const Inventory *inv, const PciDevice *vf,
                      const char *name, VgpuRoom *ret);
/* Returns VERDICT_NONE when each GPU has room for the vGPUs that `a` wants of it, and these vGPUs have one type.
 * Otherwise returns VERDICT_NO_VGPU. `a` is not in the ledger. */
Verdict ledger_check_vgpus(const Ledger *l, const Inventory *inv, const Allocation *a, Refusal *ret);

/* Returns VERDICT_NONE when the device is not blocked by a job, not in quarantine, and not used by a guest without an
 * allocation. */
Verdict ledger_check_kept(const Ledger *l, const DeviceStatusTable *status, PciAddress address, Refusal *ret);

/*
 * Puts the device of an allocation with one device into quarantine, and replaces an earlier entry of the device. 0 or
 * -ENOMEM. On 0 the ledger owns the allocation.
 */
int ledger_quarantine(Ledger *l, Allocation *a);
/* Returns the quarantine entry of the device, or NULL. */
Allocation *ledger_find_quarantined(const Ledger *l, PciAddress address);
/* Returns the first device of the allocation that is in quarantine; NULL: none. */
const AllocationDevice *ledger_find_quarantined_of(const Ledger *l, const Allocation *a);
/* Removes the device's entry from quarantine, and returns it to the caller. NULL: the device is not in quarantine. */
Allocation *ledger_unquarantine(Ledger *l, PciAddress address);
