/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who has what. The one place that says yes to a claim, so the one place that can overcommit: it never does.
 * Invariants: a device, and every device of its IOMMU group, is in at most one allocation; a PF and its VFs are never
 * claimed by two; a CPU is pinned by at most one; memory claimed on a node and page size never exceeds what the node
 * has less the reserve; shared memory is of one owner, and counts once. The cost of a claim does not grow with the
 * number of allocations but for a binary search. Pure: host/store.h makes it durable.
 */

#include "config/config.h"
#include "ledger/allocation.h"
#include "model/refusal.h"

#define LEDGER_ALLOCATIONS_MAX 16384U
#define LEDGER_REGIONS_MAX     256U

/* A device kept out of circulation while this daemon runs, by a job that works on it or one that never came back. */
typedef struct BlockedDevice {
        PciAddress address;
        Verdict verdict; /* VERDICT_BUSY, VERDICT_STUCK */
        char *message;
} BlockedDevice;

/* What was found out about a device while this daemon runs. */
typedef struct Finding {
        PciAddress address;
        char *message;
        size_t count; /* of a contested one: VFs it had before */
} Finding;

typedef struct Claim {
        PciAddress address;
        const Allocation *allocation;
} Claim;

typedef struct PfUse {
        PciAddress pf;
        unsigned vfs; /* claimed VFs of it */
} PfUse;

typedef struct MemoryClaim {
        int node;
        uint64_t page_size; /* 0: ordinary pages */
        uint64_t bytes;
        uint64_t backed; /* of bytes: memory of running guests and shared memory that was made. The kernel has given it
                            out already, so it is not part of what is free */
} MemoryClaim;

/* Memory that allocations of one owner share. */
typedef struct SharedRegion {
        Region region;
        uint32_t owner;
        const Allocation **members; /* ascending by name */
        size_t n_members;
        size_t n_ready; /* members in state ready: the memory is made while there is one */
        bool removed;   /* its file is gone, as was found last, while the memory was made */
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
        CpuSet cpus;
        BlockedDevice *blocked;
        size_t n_blocked;
        Finding *contested; /* PFs whose number of VFs somebody else changed */
        size_t n_contested;
        Finding *foreign; /* guests have them to which we did not give them */
        size_t n_foreign;
        Finding *unhealthy; /* nobody gets them before a later look finds them well */
        size_t n_unhealthy;
        /*
         * Devices that were not handed back in order: nobody gets them, nor their groups, before an admin has looked.
         * Each is what is left of the allocation that had it: its name, that device, the evidence as reason. On disk.
         */
        Allocation **quarantined;
        size_t n_quarantined;
        char *read_only;  /* why nothing may be changed, a sentence; NULL usually */
        char *unwritable; /* why the last write to disk failed, a sentence; NULL when it did not */
} Ledger;

Ledger *ledger_new(void);
Ledger *ledger_free(Ledger *l);
DEFINE_CLEANUP(Ledger *, ledger_free)

/* Why changes are refused, or would be now if the next write fails like the last; NULL usually. */
const char *ledger_problem(const Ledger *l);

/*
 * Enters all of a, or changes nothing. On VERDICT_NONE the ledger owns a. inv tells groups and capacities.
 */
Verdict ledger_claim(Ledger *l, const Inventory *inv, const Config *config, Allocation *a, Refusal *ret);

/*
 * Enters an allocation that was already promised (read back at start): capacity and inventory are not asked, for a
 * promise stands when the hardware is gone; two promises of one thing are still refused.
 */
Verdict ledger_adopt(Ledger *l, Allocation *a, Refusal *ret);

/* Its allocations were adopted by another ledger too, to try or to compare something there: they are this one's again,
 * and know nothing of that one, which may end. */
void ledger_reclaim(const Ledger *l);

/* Takes an allocation out; the caller owns it again. NULL when there is none of that name. */
Allocation *ledger_remove(Ledger *l, const char *name);

/* a is in the ledger. */
void ledger_set_state(Ledger *l, Allocation *a, AllocationState state);
/* Whether the guest of a, which is in the ledger, is known to have got all its memory. */
void ledger_set_running(Ledger *l, Allocation *a, bool running);

Allocation *ledger_find(const Ledger *l, const char *name);
/* The allocation that has this very device, or NULL. */
const Allocation *ledger_holder(const Ledger *l, PciAddress address);
/* NULL when no allocation has it. */
const SharedRegion *ledger_find_region(const Ledger *l, const char *name);
void ledger_set_region_removed(Ledger *l, const char *name, bool removed);
/* VERDICT_SHARED_MEMORY_TAKEN when it is there and somebody else's. */
Verdict ledger_check_region_owner(const Ledger *l, const Region *r, uint32_t owner, Refusal *ret);
/* VERDICT_SHARED_MEMORY_TAKEN when it is there with another size or other pages than r. */
Verdict ledger_check_region_kind(const Ledger *l, const Region *r, Refusal *ret);
/* Number of VFs of this PF that are in allocations. */
unsigned ledger_pf_use(const Ledger *l, PciAddress pf);
/* Bytes in allocations on a node and page size. */
uint64_t ledger_memory(const Ledger *l, int node, uint64_t page_size);
/* Bytes of those that the kernel has not given out yet: of guests that do not run, or are not known to. */
uint64_t ledger_memory_idle(const Ledger *l, int node, uint64_t page_size);
/*
 * Bytes of that page size a further allocation may have on the node: the rest of what the node has, and no more than is
 * free now less what idle allocations will take of it. None of a node without CPUs: a guest has its memory where it has
 * its CPUs.
 */
uint64_t ledger_memory_free(const Ledger *l, const Inventory *inv, const Config *config, const NumaNode *node,
                            uint64_t page_size);
/* CPUs a further allocation may have: of the node, not housekeeping, not claimed, and so all their SMT siblings. */
void ledger_cpus_free(const Ledger *l, const Inventory *inv, const Config *config, const NumaNode *node, CpuSet *ret);

/*
 * VERDICT_NONE when nothing in the ledger keeps dev from a new allocation: it, its group, its PF or its VFs are not
 * claimed, nor blocked, nor unhealthy. except: an allocation whose own claims do not count, or NULL.
 */
Verdict ledger_check_device(const Ledger *l, const Inventory *inv, const PciDevice *dev, const Allocation *except,
                            Refusal *ret);

int ledger_block(Ledger *l, PciAddress address, Verdict verdict, const char *message);
void ledger_unblock(Ledger *l, PciAddress address);
/* Whether this very device is blocked; NULL when it is not. */
const BlockedDevice *ledger_find_blocked(const Ledger *l, PciAddress address);
/* Somebody else's guest has it, with this sentence; NULL: not any more. */
int ledger_set_foreign(Ledger *l, PciAddress address, const char *message);
/* NULL when none has. */
const Finding *ledger_find_foreign(const Ledger *l, PciAddress address);
/* It is not well, with this sentence; NULL: it is. Who has it may keep it and give it back. */
int ledger_set_unhealthy(Ledger *l, PciAddress address, const char *message);
/* What to do about one that is not. */
#define LEDGER_UNHEALTHY_REMEDY                                                                                        \
        "See the kernel log; 'passthroughctl rescan' looks again, after a reset, power cycle or another card."
/* NULL when it is well. */
const Finding *ledger_find_unhealthy(const Ledger *l, PciAddress address);
/* VERDICT_NONE when it is not blocked. */
Verdict ledger_check_blocked(const Ledger *l, PciAddress address, Refusal *ret);
/* The same, and it is neither in quarantine, nor has somebody else's guest it. */
Verdict ledger_check_kept(const Ledger *l, PciAddress address, Refusal *ret);

/* Takes over a, which has one device; what was known of that device is replaced. */
int ledger_quarantine(Ledger *l, Allocation *a);
/* NULL when it is not. */
Allocation *ledger_find_quarantined(const Ledger *l, PciAddress address);
/* The caller owns it again. NULL when it was not. */
Allocation *ledger_unquarantine(Ledger *l, PciAddress address);

/* It is contested, with this sentence; NULL: not any more. Nobody gets less for it: it is only told. */
int ledger_contest(Ledger *l, PciAddress pf, size_t count, const char *message);
/* NULL when it is not. */
const Finding *ledger_find_contested(const Ledger *l, PciAddress pf);

/* Recomputes everything from the allocations and compares: 0, or -EBADMSG. For tests. */
int ledger_verify(const Ledger *l, const Inventory *inv, const Config *config);
