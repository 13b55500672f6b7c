/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The hardware of this node: PCI functions, IOMMU groups, NUMA nodes, CPUs. Facts read at one moment, without policy
 * and without allocations. host/scan.h fills the inventory; all other code only reads it. Arrays are sorted, so the
 * same node always gives the same answer.
 */

#include "model/cpuset.h"
#include "model/libvirt.h"
#include "model/pciaddr.h"
#include "util/cleanup.h"
#include "util/strings.h"

#define INVENTORY_DEVICES_MAX 65536U
#define INVENTORY_NODES_MAX   64U
/* The name of NVIDIA's driver for GPUs. */
#define NVIDIA_DRIVER         "nvidia"
#define PCI_VENDOR_NVIDIA     0x10deU

#define PCI_BARS_MAX           7U /* six BARs and the expansion ROM: the first lines of the sysfs "resource" file */
#define PCI_VF_BARS_MAX        6U /* the next lines: the BARs of all VFs of a PF */
#define PAGE_SIZES_MAX         8U
#define VFIO_CDEV_MAX          16U
#define INVENTORY_VARIANTS_MAX 1024U
#define PCIBACK_DRIVER         "pciback" /* the driver of the module xen-pciback */

typedef enum PciType {
        PCI_TYPE_DEVICE, /* neither PF nor VF */
        PCI_TYPE_PF,     /* can create VFs: sriov_totalvfs exists and is not 0 */
        PCI_TYPE_VF,     /* has a physfn link */
        _PCI_TYPE_MAX,
} PciType;
const char *pci_type_to_string(PciType t);

/* Access Control Services of a port or multifunction device, from config space (PCIe 6.12; pci_acs_enabled() in the
 * kernel's drivers/pci/pci.c). */
typedef enum PciAcs {
        PCI_ACS_UNKNOWN,  /* the capability could not be read from config space */
        PCI_ACS_CLEAN,    /* isolates by definition: upstream port, single-function endpoint */
        PCI_ACS_ISOLATED, /* SV, RR, CR and UF are all enabled */
        PCI_ACS_OPEN,     /* no capability, or not all four are enabled: peers can reach each other without the IOMMU */
        _PCI_ACS_MAX,
} PciAcs;
const char *pci_acs_to_string(PciAcs a);

/* Bits of the ACS capability and control registers, by number. */
typedef enum PciAcsBit {
        PCI_ACS_BIT_SV, /* source validation */
        PCI_ACS_BIT_TB, /* translation blocking */
        PCI_ACS_BIT_RR, /* request redirect */
        PCI_ACS_BIT_CR, /* completion redirect */
        PCI_ACS_BIT_UF, /* upstream forwarding */
        PCI_ACS_BIT_EC, /* egress control */
        PCI_ACS_BIT_DT, /* direct translated peer-to-peer */
        _PCI_ACS_BIT_MAX,
} PciAcsBit;
const char *pci_acs_bit_to_string(PciAcsBit b);
#define PCI_ACS_BIT(bit) (1U << (bit))

/* Address Translation Services of a GPU or NIC. */
typedef enum PciAts {
        PCI_ATS_UNKNOWN, /* the capability could not be read from config space */
        PCI_ATS_NONE,    /* no capability (the firmware of some NICs can hide it) */
        PCI_ATS_OFF,
        PCI_ATS_ON,
        _PCI_ATS_MAX,
} PciAts;
const char *pci_ats_to_string(PciAts a);

typedef struct PciDevice {
        PciAddress address;
        uint16_t vendor, device, subsystem_vendor, subsystem_device;
        uint32_t class;    /* 24 bits, for example 0x030200 */
        char *name;        /* from pci.ids, or NULL */
        char *vf_name;     /* from pci.ids, for the VFs of this PF (vf_device), or NULL */
        bool named;        /* name and vf_name were looked up */
        uint64_t serial;   /* serial number of the card (model/serial.h); a VF has that of its PF; 0: none */
        bool serial_known; /* the serial number was read, which is done only when an allocation needs it */
        unsigned module;   /* NVLink module id that NVIDIA's driver reported; 0: unknown (model/fabric.h) */
        char *path;        /* path below sys/devices: "pci0000:80/0000:80:02.0/0000:82:00.0". On some machines a prefix
                              precedes it: "LNXSYSTM:00/.../pci0000:80/..." */
        uint64_t instance; /* inode of its sysfs directory: changes when the card is replugged */
        int parent;        /* index of the bridge above, or -1 on a root bus */
        int numa_node; /* a node in nodes[]; -1: unknown, which must not be taken for 0. On a machine with one node, it
                          is that node */
        int own_node;  /* the numa_node attribute of the device. numa_node differs from it where this is -1 or a node
                          that the machine does not list */
        int iommu_group; /* number of the group. The kernel reuses numbers, so it is valid only until the next scan. -1:
                            none, or a group of VFIO's no-IOMMU mode */
        char *driver;    /* NULL when unbound */
        char *driver_override; /* NULL when not set */
        bool has_override;     /* the driver_override file exists */
        bool vfio; /* vfio-dev/ exists, so the device is bound to a VFIO driver (ABI/testing/sysfs-devices-vfio-dev) */
        char vfio_cdev[VFIO_CDEV_MAX]; /* its VFIO character device, "vfio3", which iommufd needs; "": none */
        bool sets_guids;  /* the GUIDs of its VFs can be set: it has a network interface (for InfiniBand that of the
                             module ib_ipoib), or the directory sriov of MLNX_OFED */
        char *vgpu_types; /* the vGPU types that can be created on this VF (model/vgpu.h); NULL: the VF's driver has no
                             vGPUs */
        unsigned vgpu_type; /* id of the type of its vGPU, 0 none */
        bool mdev_parent;   /* its driver creates mediated devices; on a VF, its vGPU is one (host/mdev.h) */
        char *mdev_types;   /* of a GPU without VFs: the types of its mediated devices, which are the vgpu_types of its
                               slots (model/mdev-slots.h); NULL: it has none */
        char *mdevs;        /* of such a GPU: a line "UUID TYPE" for each mediated device, ascending */
        char mdev[UUID_STRING_MAX]; /* UUID of the mediated device that is its vGPU; "": none */
        bool boot_vga;
        bool is_bridge; /* header type 1 or class 0604/0607: VFIO refuses it */
        PciType type;
        PciAddress physfn;  /* PCI_TYPE_VF: its PF */
        int vf_index;       /* PCI_TYPE_VF: N of the PF's virtfnN link, -1 unknown */
        size_t n_virtfns;   /* number of virtfn links of the PF */
        PciAddress *linked; /* targets of the readable virtfn links, by index */
        size_t n_linked;
        PciAddress
                *vfs; /* PCI_TYPE_PF: present VFs by index, without gaps. inventory_finish() derives them from linked */
        size_t n_vfs;
        unsigned total_vfs;
        uint16_t vf_device;            /* PCI device id of its VFs (sriov_vf_device), 0 unknown */
        uint16_t vf_offset, vf_stride; /* of a PF without VFs: distance of routing IDs from the PF to its first VF, and
                                          between VFs; 0 unknown */
        uint64_t vf_bar_size[PCI_VF_BARS_MAX]; /* of a PF without VFs: bytes of each VF, 0 unused */
        bool expected;                         /* a VF that does not exist yet (inventory_expect_vfs()) */
        char *reset_methods;                   /* reset_method attribute, NULL when the device has none */
        char *power_state;
        bool runtime_pm;    /* power/control is "auto": the kernel suspends the device while it is idle. Not read for
                               bridges and VFs: a VF has no power state of its own */
        bool d3cold;        /* d3cold_allowed is 1: the kernel may also cut its power. Not read for bridges and VFs */
        char *kernel_names; /* names of its RDMA devices, network interfaces, NVMe controllers, DRM and accelerator
                               nodes, and disks, separated by spaces: "mlx5_0 ens1f0". Also network interfaces of
                               devices below it, such as scalable functions, modems or USB adapters. The node of
                               NVIDIA's driver, "nvidia0", is first if it is known. NULL: no names */
        char *bond;         /* the bond or team of which a network interface of the device is a port; NULL: none */
        unsigned link_speed, link_width; /* maximum speed and width of the link (model/pcilink.h); for bridges, GPUs and
                                            NICs other than VFs */
        unsigned current_speed, current_width; /* the link as trained, for GPUs and NICs other than VFs */
        uint64_t bar_size[PCI_BARS_MAX];       /* bytes, 0 unused */
        PciAcs acs;
        uint16_t acs_capabilities, acs_enabled; /* the capability and control registers, as PCI_ACS_BIT()s; 0 when acs
                                                   is unknown or clean */
        PciAts ats;
        char *critical;              /* why the host needs the device, a chain of dependencies; NULL when it does not.
                                        host/critical.h */
        const char *critical_remedy; /* how to end that use, a static sentence; NULL: passthroughd(8) tells */
        bool has_memory_node;        /* NVIDIA's driver tells the NUMA node of the GPU's memory (host/nvidia.h) */
        int memory_node;             /* that node */
        uint64_t online_memory;      /* bytes of this memory that the host has online; host/critical.h */
        ConfidentialMode mode;       /* of a GPU: daemon/facts-modules.c */
        char *console; /* why the host's console uses the device, a chain of dependencies; NULL when it does not.
                          host/critical.h */
        char *fault;   /* sentences about unreadable or invalid attributes; NULL when all are valid */
} PciDevice;

typedef struct IommuGroup {
        int number;
        uint32_t *members; /* indices into devices, ascending */
        size_t n_members;
        bool direct; /* has a reserved region of type "direct", for which VFIO refuses the group (drivers/iommu/iommu.c,
                        require_direct) */
} IommuGroup;

typedef struct PagePool {
        uint64_t size;  /* bytes, for example 2 MiB or 1 GiB; never 0 */
        uint64_t total; /* pages */
        uint64_t free;
} PagePool;

typedef struct NumaNode {
        int id;             /* ids may be sparse */
        CpuSet cpus;        /* online CPUs */
        int package;        /* socket of its CPUs, -1 for a node without CPUs */
        uint64_t memory;    /* bytes, MemTotal; 0 for a memory-less node */
        uint64_t available; /* bytes of ordinary pages that are free or in caches that the kernel can reclaim */
        bool available_known;
        PagePool pages[PAGE_SIZES_MAX]; /* hugepages, ascending by size */
        size_t n_pages;
        unsigned distance[INVENTORY_NODES_MAX]; /* to inventory->nodes[i], in SLIT units: 10 local, 0 unknown */
} NumaNode;

/* On hybrid CPUs cores differ in speed and in SMT. On all others they are CORE_PERFORMANCE. */
typedef enum CoreKind {
        CORE_PERFORMANCE,
        CORE_EFFICIENT,
        CORE_LOW_POWER,
        _CORE_KIND_MAX,
} CoreKind;

typedef struct Cpu {
        unsigned id;
        int node;      /* NUMA node id, -1 unknown */
        unsigned core; /* the smallest online SMT sibling: CPUs with the same value share a core */
        unsigned die;  /* the smallest online CPU of those that share its die and its L3 cache; 0 when unknown */
        CoreKind kind;
} Cpu;

/* A VFIO variant driver, from a line of modules.alias: "vfio_pci:v000015B3d..." without the prefix "vfio_pci:". */
typedef struct VfioVariant {
        char *pattern;
        char *driver; /* its name; the name of its module while it is not loaded */
        bool loaded;  /* or built in */
} VfioVariant;

#define ARCHITECTURE_MAX     16U
#define ARCHITECTURE_X86_64  "x86_64"
#define ARCHITECTURE_AARCH64 "aarch64"

typedef enum IommuBoot {
        IOMMU_BOOT_DEFAULT, /* the command line has no such option, or is unknown */
        IOMMU_BOOT_ON,      /* intel_iommu=on */
        IOMMU_BOOT_OFF
} IommuBoot;

typedef struct Inventory {
        PciDevice *devices; /* ascending by address */
        size_t n_devices;
        IommuGroup *groups; /* ascending by number */
        size_t n_groups;
        NumaNode *nodes; /* ascending by id, at most INVENTORY_NODES_MAX */
        size_t n_nodes;
        Cpu *cpus; /* online CPUs, ascending by id */
        size_t n_cpus;
        unsigned phys_bits;                  /* width of CPU physical addresses, 0 unknown */
        bool amd;                            /* CPUID has the leaves of AMD: vendors AMD and Hygon */
        char architecture[ARCHITECTURE_MAX]; /* as uname -m prints it; "" is unknown and is treated as x86_64 */
        unsigned kernel;                     /* version of Linux: major * 1000 + minor; 0 unknown */
        LibvirtFeatures libvirt;
        ConfidentialHost confidential;
        char **drivers; /* registered PCI drivers, ascending by name */
        size_t n_drivers;
        bool drivers_known;
        VfioVariant *variants;
        size_t n_variants;
        bool iommu;           /* at least one IOMMU group exists */
        IommuBoot iommu_boot; /* whether the kernel command line turns the IOMMU on or off */
        bool xen;             /* Linux runs under Xen. inventory_derive_groups() computed the IOMMU groups */
        char *critical_error; /* why the daemon could not determine which devices the host needs; no device is allocated
                                 then. NULL when they are known */
        char **notes;         /* sentences about facts of the whole node that were skipped or are inconsistent */
        size_t n_notes;
} Inventory;

/* Returns the architecture of this node's domains: the node's own, or x86_64 when unknown. */
const char *inventory_architecture(const Inventory *inv);
/* Returns how to turn on the IOMMU where no device has an IOMMU group, otherwise how the remaining devices get one.
 * Leaves out what the node already has. */
const char *inventory_iommu_remedy(const Inventory *inv);
/* Notes about the IOMMU: a whole sentence, and the first words of another one. */
#define NOTE_NO_IOMMU                                                                                                  \
        "No device has an IOMMU group. The IOMMU is off or missing, and no device can be given to a guest."
#define NOTE_ACS_OVERRIDE "The kernel runs with pcie_acs_override="
/* Returns true when domain documents can be generated for the node's architecture. */
bool inventory_has_domains(const Inventory *inv);

/* Returns an empty inventory; NULL when out of memory. */
Inventory *inventory_new(void);
Inventory *inventory_free(Inventory *inv);
DEFINE_CLEANUP(Inventory *, inventory_free)

/*
 * Appends a device with all members unknown: zero, or -1 for the members for which -1 means unknown. The pointer is
 * valid until the next call. NULL: out of memory or INVENTORY_DEVICES_MAX reached.
 */
PciDevice *inventory_add_device(Inventory *inv, PciAddress address);
/*
 * Appends a copy of dev, a device of another inventory, in the state before inventory_finish(): numa_node is own_node,
 * and critical and console are NULL. 0 or -ENOMEM.
 */
int inventory_copy_device(Inventory *inv, const PciDevice *dev);
/* Appends a sentence to device->fault, separated by "; ". 0 or -ENOMEM. */
int pci_device_add_fault(PciDevice *dev, const char *format, ...) _printf_(2, 3);
/* Frees the members. */
void pci_device_done(PciDevice *dev);
/* Copies the members vgpu_types, vgpu_type, mdev_parent, mdev, mdev_types and mdevs. 0 or -ENOMEM. */
int pci_device_copy_vgpu(PciDevice *to, const PciDevice *from);
bool pci_device_same_vgpu(const PciDevice *a, const PciDevice *b);
/* 0, -ENOMEM, or -E2BIG beyond INVENTORY_VARIANTS_MAX. */
int inventory_add_variant(Inventory *inv, const char *pattern, const char *driver, bool loaded);
/* Copies drivers and variants. to must have neither. 0 or -ENOMEM. */
int inventory_copy_drivers(Inventory *to, const Inventory *from);
void inventory_swap_drivers(Inventory *a, Inventory *b);
/* Returns false only when the registered drivers are known and name is not one of them. */
bool inventory_may_have_driver(const Inventory *inv, const char *name);
int inventory_add_note(Inventory *inv, const char *format, ...) _printf_(2, 3);

/*
 * Call it after all devices are added. Adds the slots of mediated devices, and sorts the devices. Derives parents,
 * groups (from iommu_group of the devices), types, and the VFs of each PF (from its links). Keeps group flags set by
 * inventory_set_group_direct(). Idempotent. 0 or -ENOMEM.
 */
int inventory_finish(Inventory *inv);
int inventory_set_group_direct(Inventory *inv, int number);
/*
 * For Linux under Xen, which has no IOMMU groups because Xen owns the IOMMU. Gives each device the group that the
 * kernel would, from ACS, and calls inventory_finish(). The number of a group follows from its first member, so it does
 * not change when other devices come and go. A device without a path gets no group. 0 or -ENOMEM.
 */
int inventory_derive_groups(Inventory *inv);

/* Finds the device by binary search; NULL when absent. */
const PciDevice *inventory_find(const Inventory *inv, PciAddress address);
const IommuGroup *inventory_find_group(const Inventory *inv, int number);
/* Returns the device whose vGPUs depend on those of dev: the PF of a VF that can be a vGPU, otherwise dev itself. NULL
 * when dev is NULL or the PF is missing. */
const PciDevice *inventory_find_vgpu_parent(const Inventory *inv, const PciDevice *dev);
const NumaNode *inventory_find_node(const Inventory *inv, int id);
const Cpu *inventory_find_cpu(const Inventory *inv, unsigned id);
/* Returns the position of the node in nodes[], or -1. */
int inventory_node_index(const Inventory *inv, int id);
/*
 * Returns the node from which a guest with a device on node id gets its CPUs: that node, or if it has no CPUs (GPU
 * memory, CXL), the nearest node with CPUs, the lowest of several. If only one node has CPUs, returns it, even if id is
 * -1 (unknown). If no node has CPUs, returns id. -1: unknown.
 */
int inventory_cpu_node(const Inventory *inv, int id);
/* As inventory_cpu_node() for the node of the device, but -1 whenever that node is unknown. */
int inventory_device_cpu_node(const Inventory *inv, const PciDevice *dev);
/* Returns the GPU whose memory is this node without CPUs, or NULL. The node goes offline when the GPU gets another
 * driver. */
const PciDevice *inventory_memory_owner(const Inventory *inv, const NumaNode *node);
/* The device is a GPU beside a Grace CPU, on the node of its memory. */
bool inventory_gpu_has_memory_node(const Inventory *inv, const PciDevice *dev);
/* The numa_node attribute of the device is a node that the machine does not list. */
bool pci_device_has_unlisted_node(const Inventory *inv, const PciDevice *dev);
/*
 * Returns the node from which a guest with CPUs of node id gets its memory: the nearest node in the set `from`, the
 * lowest of several. If `from` is NULL: that node, or if it has no memory, the nearest node with both CPUs and memory.
 * -1: none.
 */
int inventory_memory_node(const Inventory *inv, int id, const CpuSet *from);
size_t inventory_device_index(const Inventory *inv, const PciDevice *dev);

/* Returns the bytes of the node's memory in ordinary pages: MemTotal less all hugepages. */
uint64_t numa_node_base_memory(const NumaNode *node);
const PagePool *numa_node_pages(const NumaNode *node, uint64_t page_size);

/* Returns true when the device's driver does not count as use by the host: none, a VFIO driver, pci-stub or pcieport,
 * with which VFIO accepts the group (driver_managed_dma in the kernel), or pciback, to which the devices of Xen's
 * guests are bound. */
bool pci_device_driver_is_harmless(const PciDevice *dev);
/* Returns true when the device is the boot VGA or drives the host's console. */
bool pci_device_is_display(const PciDevice *dev);
/* pci_device_is_gpu(): class 03xx except display controllers of a BMC or a hypervisor, or class 12xx of AMD (vendor
 * 1002), whose Instinct GPUs are "Processing accelerators", 1002:74a1 for example. pci_device_is_accelerator(): a GPU,
 * or any other device of class 12xx: FPGAs, NPUs and the like. pci_device_is_nic(): class 02xx. */
bool pci_device_is_gpu(const PciDevice *dev);
bool pci_device_is_accelerator(const PciDevice *dev);
bool pci_device_is_nic(const PciDevice *dev);
/* Returns true for a whole NIC of Mellanox or NVIDIA, false for a VF. */
bool pci_device_is_connectx(const PciDevice *dev);
/* Returns true for a PF of an mlx4 card, recognised by its driver or, because it may be unbound, by its device id. */
bool pci_device_is_mlx4_pf(const PciDevice *dev);
/* Returns true for an InfiniBand PF whose VFs have no link until their GUIDs and link policy are set. mlx4 does not
 * need them. */
bool pci_device_needs_guids(const PciDevice *pf);
/*
 * Returns true when `other` is passed to the guest with `assigned`, because it is another function of the same card and
 * IOMMU group, a GPU's audio function for example. False for VFs, which count as separate cards, and for a PF beside
 * its VF.
 */
bool pci_device_is_companion(const PciDevice *assigned, const PciDevice *other);
/*
 * Returns true for a part of the platform that sysfs lists as a PCI device: bridges of class 06 (host, ISA and others)
 * except 0680 (NVSwitch), SMBus 0c05, and system peripherals of class 08 except DMA engines (0801, and 0880 with a BAR:
 * Intel's DSA, IAA and CBDMA). PCI bridges are part of the platform as well; see is_bridge.
 */
bool pci_device_is_platform(const PciDevice *dev);
/* Returns the loaded VFIO variant driver whose alias matches dev most specifically; NULL when only vfio-pci matches. */
const char *inventory_variant_driver(const Inventory *inv, const PciDevice *dev);
/*
 * Coherent GPUs are those beside a Grace CPU, which reaches their memory. Their VFIO driver gives the guest that memory
 * as a BAR (Linux 6.8, drivers/vfio/pci/nvgrace-gpu/main.c); vfio-pci gives the GPU without it.
 */
#define COHERENT_DRIVER "nvgrace_gpu_vfio_pci"
bool driver_is_coherent(const char *driver);
/* modules.alias names that driver for dev, loaded or not, or dev is on the NUMA node of its memory. */
bool inventory_is_coherent(const Inventory *inv, const PciDevice *dev);
/* A sentence for a coherent GPU whose driver for guests is another one, and what to do. Both NULL for another device.
 * The caller frees *ret. 0 or -ENOMEM. */
int inventory_explain_lost_memory(const Inventory *inv, const PciDevice *dev, const char *driver, char **ret,
                                  const char **ret_remedy);
/*
 * Adds the n VFs that the kernel would create on a PF without VFs, then calls inventory_finish(). They get an IOMMU
 * group of their own, or that of the PF if ACS does not isolate them. 0, -ENOMEM, -ENODATA when the PF's vf_offset or
 * vf_stride is unknown, or -ERANGE when an address is taken or is beyond the last bus.
 */
int inventory_expect_vfs(Inventory *inv, PciAddress pf, unsigned n);
/* Returns true when the kernel would give each VF of this PF an IOMMU group of its own: no device outside the PF's slot
 * is in the PF's group. */
bool inventory_isolates_vfs(const Inventory *inv, const PciDevice *pf);
/* Returns sentences about what is assumed of an expected VF. The caller frees; NULL when out of memory. */
char *inventory_describe_expected(const Inventory *inv, const PciDevice *vf);
/*
 * Returns the length of the path up to and including the host bridge, "pci0000:80" with its prefix; 0 when the path
 * names no host bridge.
 */
size_t pci_device_host_length(const PciDevice *dev);
size_t pci_path_host_length(const char *path);
/*
 * Returns true when ACS isolates every port between dev and the root complex. Otherwise *ret_port is the nearest port
 * that does not isolate.
 */
bool inventory_path_is_isolated(const Inventory *inv, const PciDevice *dev, const PciDevice **ret_port);
