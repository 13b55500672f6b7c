/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* An allocation: devices, CPUs and memory that are reserved under one name. It is owned by the ledger or, before the
 * claim, by a plan. */

#include "config/config.h"
#include "ledger/guestplace.h"
#include "ledger/region.h"
#include "model/cores.h"
#include "model/inventory.h"
#include "model/refusal.h"
#include "model/vfattr.h"

#define ALLOCATION_NAME_MAX     63U
#define ALLOCATION_CPUS_MAX     4096U
#define ALLOCATION_MEMORY_MAX   (1ULL << 50) /* bytes: 1 PiB */
#define ALLOCATION_CELLS_MAX    8U
#define ALLOCATION_HOLD_MAX     86400U /* seconds */
#define ALLOCATION_TAG_MAX      255U   /* bytes */
#define ALLOCATION_TOKEN_MAX    128U   /* bytes */
#define ALLOCATION_CONSUMER     36U    /* bytes of a UUID */
#define ALLOCATION_SERVICES_MAX 64U    /* endpoints */

typedef enum AllocationState {
        ALLOCATION_RESERVED,  /* a plan, not on disk; or a lease, on disk and removed when it ends */
        ALLOCATION_PREPARING, /* on disk; a job binds its devices to VFIO drivers */
        ALLOCATION_READY,
        ALLOCATION_IN_USE, /* a running domain uses it */
        ALLOCATION_RELEASING,
        ALLOCATION_FAILED, /* the last job that prepared or released it failed, or the disk may have a change that was
                              refused; it keeps its devices until it is released */
        _ALLOCATION_STATE_MAX,
        _ALLOCATION_STATE_INVALID = -22,
} AllocationState;
const char *allocation_state_to_string(AllocationState s);
AllocationState allocation_state_from_string(const char *s);

typedef enum DeviceRole {
        DEVICE_ROLE_ASSIGNED,  /* requested device, with a slot */
        DEVICE_ROLE_COMPANION, /* another function of an assigned device's card in the same IOMMU group: passed to the
                                  guest together with it */
        DEVICE_ROLE_HELD, /* another device of the same IOMMU group: bound to a VFIO driver, but not passed to the guest
                           */
        _DEVICE_ROLE_MAX,
        _DEVICE_ROLE_INVALID = -22,
} DeviceRole;
const char *device_role_to_string(DeviceRole r);
DeviceRole device_role_from_string(const char *s);

/* Whether the device is being attached to, or detached from, an existing allocation. */
typedef enum DevicePhase {
        DEVICE_PHASE_SETTLED,
        DEVICE_PHASE_ATTACHING, /* an attach runs, or was interrupted: then the device is detached again */
        DEVICE_PHASE_DETACHING, /* a detach runs, or was interrupted: the device returns to the host */
        DEVICE_PHASE_KEPT,      /* settled, but a detach has failed because the guest did not release the device */
        _DEVICE_PHASE_MAX,
        _DEVICE_PHASE_INVALID = -22,
} DevicePhase;
const char *device_phase_to_string(DevicePhase p);
DevicePhase device_phase_from_string(const char *s);

typedef struct AllocationDevice {
        PciAddress address;
        DeviceRole role;
        DevicePhase phase;
        char *slot; /* pool and index: "gpu0", "ib-vf1"; with '_' between them if the pool's name ends in a digit:
                       "a100_0". For a companion, the slot of its assigned device and the number of its own
                       function: "gpu0-1". NULL: a held device */
        char *pool; /* NULL: a companion, or a held device that is in no pool */
        char *prior_driver;   /* driver before the allocation, which AfterRelease=restore binds again; NULL: none */
        char *prior_override; /* driver_override before the allocation; NULL: not set */
        char *prior_reset;    /* reset_method before the allocation, if its pool has ResetMethod=; otherwise NULL */
        bool prior_runtime_pm, prior_d3cold; /* PciDevice.runtime_pm and .d3cold before the allocation */
        bool prior_persistence; /* the GPU was in persistence mode of NVIDIA's driver before the allocation */
        char *vfio_driver;   /* the VFIO variant driver of this device; for a VF with a vGPU its host driver, which it
                                keeps; NULL: as Allocation.vfio_driver */
        unsigned vgpu_type;  /* id of the type of its vGPU; 0: no vGPU, the guest gets the whole device */
        char *vgpu_name;     /* name of the type; NULL without a vGPU */
        unsigned vgpu_total; /* the most vGPUs of this type that its GPU can have; 0 unknown. Stored, because the driver
                                reports it only while the GPU has no vGPU */
        char mdev[UUID_STRING_MAX]; /* UUID of the mediated device that is its vGPU; "": none, or not assigned yet */
        bool is_vf;                 /* a VF, or a slot for a mediated device (model/mdev-slots.h) */
        PciAddress physfn;          /* valid if is_vf: the PF; of a slot, the GPU */
        VfAttributes attributes;    /* of an assigned VF: what the job sets, requested or generated */
        unsigned generated;    /* bits (VfAttributes.set) of the attributes that the daemon generated and that a PF need
                                  not support */
        unsigned fatal;        /* count of fatal PCI Express errors when the device was prepared */
        VfAttributes baseline; /* of a VF: attributes before the allocation, which a release restores */
        bool has_baseline;
        bool has_fatal; /* fatal is valid: the kernel counts these errors for the device */
        /* Identity of the card, to find it again after a boot that changes its address. */
        uint16_t vendor, device, subsystem_vendor, subsystem_device;
        uint64_t serial; /* serial number of the card (for a VF, of its PF); 0: none, or unknown */
        int vf_index; /* if is_vf: the N of virtfnN in the PF's directory, or the number of the slot - 1; -1 unknown */
        char *path;   /* path of the device below sys/devices */
        bool lost; /* another allocated device has the address now, and the card was not found elsewhere. Such an entry
                      claims no address */
        /* Host NUMA node for the domain document (inventory_device_cpu_node()). Stored, so that the document stays the
         * same while the device is missing. */
        int numa_node; /* -1 unknown */
        /* The device's place in the running guest, as libvirt last reported it. Empty when the guest has ended or lost
         * the device. */
        GuestPlace guest;
} AllocationDevice;

/* Layout of the guest's PCI buses: guest/guestpci.h. */
typedef enum GuestTopology {
        GUEST_TOPOLOGY_FLAT,   /* a PCI expander bridge for each cell with cards, a root port for each card */
        GUEST_TOPOLOGY_MIRROR, /* root complexes and switches as on the host */
        _GUEST_TOPOLOGY_MAX,
        _GUEST_TOPOLOGY_INVALID = -22,
} GuestTopology;
const char *guest_topology_to_string(GuestTopology t);
GuestTopology guest_topology_from_string(const char *s);

typedef struct Cell {
        int node;        /* host NUMA node id */
        uint64_t memory; /* bytes, a multiple of the page size */
        CpuSet vcpus;
        bool has_memory_node; /* the memory is on memory_node; false: on node, as the CPUs are */
        int memory_node;
} Cell;
/* Returns the host NUMA node of the cell's memory. */
int cell_memory_node(const Cell *cell);

/* Slots of one endpoint of a service. Kind and variables are copied from the configuration by the plan, so that a
 * guest's description does not change later. */
typedef struct AllocationService {
        char name[POOL_NAME_MAX + 1];
        RemoteKind kind;
        char variables[CONFIG_LINE_MAX + 1]; /* "": no variables */
        char endpoint[ENDPOINT_MAX + 1];
        unsigned slots;
} AllocationService;

#define ALLOCATION_SHOWN_MAX 7

/* What the daemon knows about an allocation and does not write to its file. */
typedef struct AllocationStatus {
        char *domain;        /* name of the running domain that uses its devices; NULL: none known */
        bool running;        /* a guest runs and all its memory is allocated. Set by ledger_set_running() */
        bool taken;          /* the reason says that a program, or the host, uses a device of the allocation */
        bool halted;         /* the last attach or detach has failed, and the daemon does not continue it by itself */
        bool is_shown;       /* clients were told of its D-Bus object */
        bool is_noted;       /* its D-Bus object may have changed since clients were last told */
        bool resume_refused; /* a ready allocation lost bindings, a vGPU, its partition or shared memory, and could not
                                be prepared again yet: the daemon tries again when the cause has passed */
        bool partition_idle; /* at Fabric Manager's last report no process had the GPUs of the partition open, and
                                partition_retry had passed: if the partition is lost, it may be activated */
        const char *partition_lost; /* why the partition of a ready allocation is not active: a static text that follows
                                       a colon and ends with a full stop. NULL: active, as far as is known */
        unsigned partition_delay;   /* seconds between the last failed activation and the next try; doubled by each
                                       failure, up to a limit; 0: none has failed */
        uint64_t partition_retry;   /* when to try again: CLOCK_MONOTONIC, microseconds */
        uint32_t prepared_by;       /* number of the last job that prepared it; 0: none */
        uint64_t shown[ALLOCATION_SHOWN_MAX]; /* digests of its D-Bus properties, as clients last saw them
                                                 (bus/changes.h) */
} AllocationStatus;

typedef struct Allocation {
        char *name;
        char id[37];         /* UUID of the allocation and of its domain */
        uint32_t owner;      /* uid of the owner: the caller, or the user whom the request names */
        uint32_t hold;       /* length of the lease in seconds; 0: no lease */
        char lease_boot[33]; /* boot id (sd_id128_get_boot()) of the boot to which lease_end refers */
        uint64_t lease_end;  /* CLOCK_BOOTTIME in microseconds; 0: no lease */
        char *tag;           /* free text from the caller; NULL: none */
        char *token;    /* a later request of the owner with the same token gets this allocation instead of a new one;
                           NULL: none */
        char *consumer; /* UUID, in lower case, of its consumer in Placement or of its claim in Kubernetes; NULL: none
                         */
        bool release_with_domain; /* release the allocation when its domain ends */
        bool had_domain;          /* a domain has used the allocation; set only with release_with_domain. Of an entry in
                                     quarantine: a guest of Nova has used the device */
        bool forced;              /* the request had force=true, so a display of the console may be allocated */
        uint64_t generation; /* number of this version of the allocation, unique on the node: an attach or detach gives
                                it a new one */
        AllocationState state;   /* the state on disk, so never ALLOCATION_IN_USE. If ledger_find() returns the
                                    allocation, only ledger_set_state() may change it */
        AllocationStatus status; /* what is not on disk */
        char *reason; /* a sentence: why it failed, why a guest cannot use a ready allocation as reserved, or what an
                         interrupted allocation waits for. Usually NULL */
        char *vfio_driver;         /* VFIO driver of its devices, copied: VfioDriver= may change later */
        AllocationDevice *devices; /* assigned devices, each before its companions; then held devices */
        size_t n_devices;
        int partition; /* id of the NVLink partition that its GPUs form; -1: none */
        CpuSet cpus;   /* claimed host CPUs. A claim takes whole cores, so there may be more CPUs than pins */
        Pin *pins;     /* ascending by vcpu */
        size_t n_pins;
        Cell cells[ALLOCATION_CELLS_MAX]; /* cells[i] is guest NUMA cell i, on host node cells[i].node */
        size_t n_cells;
        uint64_t page_size;        /* 0: ordinary pages */
        Confidential confidential; /* whether the guest's memory is encrypted, and how */
        GuestTopology topology;
        unsigned spare_ports; /* empty ports on each root bus of the guest, copied: SparePorts= may change later */
        Region regions[ALLOCATION_REGIONS_MAX];
        const struct SharedRegion *shared[ALLOCATION_REGIONS_MAX]; /* the ledger's entries of its regions; NULL while
                                                                      the allocation is in no ledger */
        size_t n_regions;
        AllocationService *services; /* each endpoint once */
        size_t n_services;
} Allocation;

/* Returns the driver to which device `d` of a prepared allocation is bound. */
static inline const char *allocation_driver(const Allocation *a, const AllocationDevice *d) {
        return d->vfio_driver ?: a->vfio_driver;
}

/* Returns the state to display, which differs for a ready allocation: in-use while a domain uses it, else failed if it
 * has a reason (plan/promise.h). */
AllocationState allocation_shown_state(const Allocation *a);

/* Values of AllocationStatus.partition_lost, beside those of step_cause(). */
#define PARTITION_INACTIVE      "Fabric Manager has restarted, or another program deactivated the partition."
#define PARTITION_USERS_UNKNOWN "the users of its GPUs cannot be determined, so it was not activated."
#define PARTITION_UNSUPPORTED   "Fabric Manager does not have it, or has it with other GPUs."
/* Call when Fabric Manager reports the partition as active: clears partition_lost and the delay. */
static inline void allocation_keep_partition(Allocation *a) {
        a->status.partition_lost = NULL;
        a->status.partition_delay = 0;
        a->status.partition_retry = 0;
}

Allocation *allocation_new(const char *name);
Allocation *allocation_free(Allocation *a);
DEFINE_CLEANUP(Allocation *, allocation_free)
/* Returns the end of the devices. In an allocation without devices, a->devices may be NULL, to which C does not allow
 * to add even 0. */
static inline AllocationDevice *allocation_devices_end(const Allocation *a) {
        return a->n_devices > 0 ? a->devices + a->n_devices : a->devices;
}
/* Returns a copy that no ledger has. NULL: out of memory. */
Allocation *allocation_copy(const Allocation *a);

/* Appends a device that is zeroed except for numa_node and vf_index, which are -1. The pointer is valid until the next
 * call. NULL: out of memory. */
AllocationDevice *allocation_add_device(Allocation *a, PciAddress address, DeviceRole role);
/* Appends a copy of s. 0 or -ENOMEM. */
int allocation_add_service(Allocation *a, const AllocationService *s);
/* Returns true when the device is settled in the allocation: it is neither being attached nor detached. */
static inline bool allocation_device_is_settled(const AllocationDevice *d) {
        return d->phase == DEVICE_PHASE_SETTLED || d->phase == DEVICE_PHASE_KEPT;
}
/* Returns whether any device of the allocation is not settled. */
bool allocation_is_changing(const Allocation *a);
/*
 * allocation_with_all() returns a copy of the allocation with all its devices. allocation_changing_part() returns a
 * copy with only the devices that are not settled, without CPUs, memory, shared memory and services. No ledger has the
 * copy. The copy is ready, has no domain and no reason, and its devices are settled. NULL: out of memory.
 */
Allocation *allocation_with_all(const Allocation *a);
Allocation *allocation_changing_part(const Allocation *a);
/* Returns a copy of the allocation without the devices that are not settled. NULL: out of memory. */
Allocation *allocation_settled_part(const Allocation *a);
/* Moves the devices of allocation `b` to allocation `a`: held devices to the end, others before the held devices of
 * `a`. -ENOMEM leaves both unchanged. */
int allocation_take_devices(Allocation *a, Allocation *b);
/* Returns true when a guest runs with the allocation, as far as is known: libvirt has reported its start and not its
 * end. */
bool allocation_has_guest(const Allocation *a);
/* Call when no guest has the allocation's devices: clears AllocationDevice.guest of each. */
void allocation_forget_guest(Allocation *a);
/* Returns the device at the address; NULL when the allocation has none there. */
const AllocationDevice *allocation_find_device(const Allocation *a, PciAddress address);
/* Returns a new failed allocation with the reason: it has the name, id, owner, generation and VFIO driver of `a`, and
 * only the device `d`, which is one of `a`. NULL: out of memory. */
Allocation *allocation_reduce(const Allocation *a, const AllocationDevice *d, const char *reason);
uint64_t allocation_memory(const Allocation *a);
/*
 * Returns true when dev, the device at the address of `d`, is the allocated card: it has the same ids (a VF: also the
 * same PF and, if both are known, the same VF index), and the same serial number or, if a serial number is unknown, the
 * same path. False if `d` is lost.
 */
bool allocation_device_is(const AllocationDevice *d, const PciDevice *dev);
/* The name of the host device that a guest gets with device `d`, as in guest/domain-facts.h. */
#define ALLOCATION_DEVICE_SOURCE(d) (*(d)->mdev ? (d)->mdev : PCI_ADDRESS_STR((d)->address))

/* Returns true when dev has the vGPU of `d`: the same type and, for a mediated device, the same UUID. */
bool allocation_device_has_vgpu(const AllocationDevice *d, const PciDevice *dev);
/* Gives a UUID to each vGPU that will be a mediated device and has no UUID yet. mdev_uuid_format() makes the UUID from
 * the id of the allocation, which must be set, and the address of the device. */
void allocation_assign_mdevs(Allocation *a, const Inventory *inv);
/* Returns true when every settled device of the allocation is present, is the allocated card, is bound to its driver
 * (allocation_driver()) and has its vGPU. A boot unbinds the devices and removes the vGPUs. */
bool allocation_is_bound(const Allocation *a, const Inventory *inv);
/* Returns true when the serial numbers of `d` and dev are known and differ. */
bool allocation_device_differs(const AllocationDevice *d, const PciDevice *dev);
/* Makes dev the card of `d`: copies the address and identity of dev, and forgets the place of `d` in a guest. A serial
 * number that was not read does not replace that of `d`. 0, or -ENOMEM, which leaves `d` unchanged. */
int allocation_device_identify(AllocationDevice *d, const Inventory *inv, const PciDevice *dev);

/*
 * Checks the name of an allocation: [A-Za-z0-9][A-Za-z0-9_.-]*, at most ALLOCATION_NAME_MAX bytes. Such a name is safe
 * as a file name and as the name of a libvirt domain.
 */
bool allocation_name_is_valid(const char *name);
/* As allocation_name_is_valid(), but refuses an invalid name. VERDICT_NONE or VERDICT_INVALID_REQUEST. */
Verdict allocation_name_check(const char *name, Refusal *ret);
