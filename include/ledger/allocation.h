/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A set of hardware promised to one name. The ledger owns allocations; a plan holds one that is not promised yet. */

#include "ledger/region.h"
#include "model/cores.h"
#include "model/inventory.h"
#include "model/refusal.h"
#include "model/vfattr.h"

#define ALLOCATION_NAME_MAX   63U
#define ALLOCATION_CPUS_MAX   4096U
#define ALLOCATION_MEMORY_MAX (1ULL << 50) /* bytes, 1 PiB */
#define ALLOCATION_CELLS_MAX  8U

typedef enum AllocationState {
        ALLOCATION_RESERVED,  /* decided; not on disk yet */
        ALLOCATION_PREPARING, /* on disk; a job binds its devices */
        ALLOCATION_READY,
        ALLOCATION_IN_USE, /* a running domain holds it */
        ALLOCATION_RELEASING,
        ALLOCATION_FAILED, /* keeps its devices until released */
        _ALLOCATION_STATE_MAX,
        _ALLOCATION_STATE_INVALID = -22,
} AllocationState;
const char *allocation_state_to_string(AllocationState s);
AllocationState allocation_state_from_string(const char *s);

typedef enum DeviceRole {
        DEVICE_ROLE_ASSIGNED,  /* asked for: has a slot */
        DEVICE_ROLE_COMPANION, /* another function of an assigned device's card and group: goes to the guest with it */
        DEVICE_ROLE_HELD,      /* the rest of the group: on the VFIO driver, not shown to the guest */
        _DEVICE_ROLE_MAX,
        _DEVICE_ROLE_INVALID = -22,
} DeviceRole;
const char *device_role_to_string(DeviceRole r);
DeviceRole device_role_from_string(const char *s);

typedef struct AllocationDevice {
        PciAddress address;
        DeviceRole role;
        char *slot; /* "gpu0", "ib-vf1", "a100_0": pool and index; companions "gpu0-1" (function); NULL for held */
        char *pool; /* NULL for companions and held devices outside pools */
        char *prior_driver;   /* before the allocation, NULL none: what AfterRelease=restore goes back to */
        char *prior_override; /* NULL not set */
        char *vfio_driver;    /* one of its own that it is bound to; NULL: that of the allocation */
        bool is_vf;
        PciAddress physfn;       /* when is_vf */
        VfAttributes attributes; /* of an assigned VF: what it is given, what was generated among it */
        unsigned generated;      /* bits of those that nobody asked for: left out where the PF does not offer them */
        VfAttributes baseline;   /* what it had before, which a release goes back to */
        bool has_baseline;
        /* Identity: an address may mean another card after a boot. */
        uint16_t vendor, device, subsystem_vendor, subsystem_device;
        uint64_t serial; /* of its card, a VF's of its PF's; 0 none */
        int vf_index;    /* when is_vf, -1 unknown */
        char *path;      /* bridge path below sys/devices */
        bool lost;       /* not found, and another device of the ledger is at its address now: it claims none */
        /* Where the guest was told it is: the document stays the same when the device goes missing. */
        int numa_node; /* -1 unknown */
} AllocationDevice;

/* How the guest's PCI tree is made: guest/guestpci.h. */
typedef enum GuestTopology {
        GUEST_TOPOLOGY_FLAT,   /* an expander for each cell, a root port for each card */
        GUEST_TOPOLOGY_MIRROR, /* root complexes and shared switches as on the host */
        _GUEST_TOPOLOGY_MAX,
        _GUEST_TOPOLOGY_INVALID = -22,
} GuestTopology;
const char *guest_topology_to_string(GuestTopology t);
GuestTopology guest_topology_from_string(const char *s);

typedef struct Cell {
        int node;        /* host NUMA node id */
        uint64_t memory; /* bytes, a whole number of pages */
        CpuSet vcpus;
} Cell;

typedef struct Allocation {
        char *name;
        char id[37];              /* UUID: also the domain's */
        uint32_t owner;           /* uid of the caller */
        bool release_with_domain; /* when the domain that ran with it is gone */
        bool had_domain;          /* one did run with it */
        bool forced;              /* asked for with force: that a device is the console's is no reason against it */
        uint64_t generation;      /* counts up with every allocation of this node */
        AllocationState state;    /* as on disk: never in-use. In the ledger changed by ledger_set_state() */
        char *domain;             /* running one that has one of its devices, NULL none known; not on disk */
        bool running; /* its guest is known to have got all its memory; not on disk. Changed by ledger_set_running() */
        char *reason; /* why it is in that state, or why it is ready and yet no guest can run as promised, a sentence;
                         NULL usually */
        char *vfio_driver; /* its devices are bound to, whatever VfioDriver= says later */
        AllocationDevice
                *devices; /* assigned ones first, in slot order, each followed by its companions; then held ones */
        size_t n_devices;
        CpuSet cpus; /* claimed host CPUs: whole cores, so it may hold more than the pins */
        Pin *pins;   /* ascending by vcpu */
        size_t n_pins;
        Cell cells[ALLOCATION_CELLS_MAX]; /* guest cell i lies on host node cells[i].node */
        size_t n_cells;
        uint64_t page_size; /* 0: ordinary pages */
        GuestTopology topology;
        unsigned spare_ports; /* empty ports of each root bus of the guest, whatever SparePorts= says later */
        Region regions[ALLOCATION_REGIONS_MAX];
        const struct SharedRegion *shared[ALLOCATION_REGIONS_MAX]; /* who has each, while the ledger has this one */
        size_t n_regions;
} Allocation;

/* The VFIO driver that d, one of its devices, is bound to. */
static inline const char *allocation_driver(const Allocation *a, const AllocationDevice *d) {
        return d->vfio_driver ?: a->vfio_driver;
}

/* What it is called: ready with a domain is in-use, and ready with a reason (plan/promise.h) is failed. */
AllocationState allocation_shown_state(const Allocation *a);

Allocation *allocation_new(const char *name);
Allocation *allocation_free(Allocation *a);
DEFINE_CLEANUP(Allocation *, allocation_free)

/* Appends a zeroed device. NULL when out of memory. */
AllocationDevice *allocation_add_device(Allocation *a, PciAddress address, DeviceRole role);
/* NULL when the address is not part of it. */
const AllocationDevice *allocation_find_device(const Allocation *a, PciAddress address);
/* What is left of a when nothing but d, one of its devices, is kept, and why. NULL when out of memory. */
Allocation *allocation_reduce(const Allocation *a, const AllocationDevice *d, const char *reason);
uint64_t allocation_memory(const Allocation *a);
/* dev, which is at d's address now, is the card that was allocated: same ids, and the same serial number or, where that
 * is not known, the same place below the same bridges. */
bool allocation_device_is(const AllocationDevice *d, const PciDevice *dev);
/* Both are known, and differ. */
bool allocation_device_differs(const AllocationDevice *d, const PciDevice *dev);
/* From now on dev is the card that is meant: its address and all it is known by, less a serial number that was not
 * read. -ENOMEM leaves d as it was. */
int allocation_device_identify(AllocationDevice *d, const PciDevice *dev);

/* [A-Za-z0-9][A-Za-z0-9_.-]*, at most ALLOCATION_NAME_MAX: safe as file name, libvirt domain name and D-Bus label. */
bool allocation_name_is_valid(const char *name);
/* The same, with the sentence. */
Verdict allocation_name_check(const char *name, Refusal *ret);
