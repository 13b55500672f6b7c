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

#define PCI_BARS_MAX           7U /* six BARs and the expansion ROM: the first lines of the sysfs "resource" file */
#define PCI_VF_BARS_MAX        6U /* the next lines: the BARs of all VFs of a PF */
#define PAGE_SIZES_MAX         8U
#define VFIO_CDEV_MAX          16U
#define INVENTORY_VARIANTS_MAX 1024U
#define PCIBACK_DRIVER         "pciback" /* of the module xen-pciback */

typedef enum PciType {
        PCI_TYPE_DEVICE, /* neither PF nor VF */
        PCI_TYPE_PF,     /* can create VFs: sriov_totalvfs exists and is not 0 */
        PCI_TYPE_VF,     /* has a physfn link */
        _PCI_TYPE_MAX,
} PciType;
const char *pci_type_to_string(PciType t);

/* Access Control Services of a port or multifunction device, from config space (PCIe 6.12; domain.md A13 to A15). */
typedef enum PciAcs {
        PCI_ACS_UNKNOWN,  /* config space could not be read that far */
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
        PCI_ATS_NONE,    /* no capability (some NICs can be configured so in firmware) */
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
        uint64_t serial;   /* of the card; a VF has that of its PF (model/serial.h); 0: none */
        bool serial_known; /* the serial number was read; read only when an allocation needs it */
        unsigned module;   /* NVLink module id that was learnt from the driver; 0: unknown (model/fabric.h) */
        char *path; /* path below sys/devices: "pci0000:80/0000:80:02.0/0000:82:00.0". Some machines have a prefix,
                       "LNXSYSTM:00/.../pci0000:80/..." */
        uint64_t instance; /* inode of its sysfs directory: changes when the card is replugged */
        int parent;        /* index of the bridge above, or -1 on a root bus */
        int numa_node;     /* one of the listed nodes, where there is one node that one; -1 unknown: never treat it as 0
                              (domain.md E1) */
        int own_node;      /* the device's own numa_node attribute, before another node replaces -1 or a node that the
                              machine does not list */
        int iommu_group;   /* kernel's number, valid only until the next scan (domain.md A2); -1: none, or a group of
                              VFIO's no-IOMMU mode (A17) */
        char *driver;      /* NULL when unbound */
        char *driver_override;         /* NULL when not set */
        bool has_override;             /* the driver_override file exists */
        bool vfio;                     /* vfio-dev/ exists: the device is bound to a VFIO driver (domain.md B11) */
        char vfio_cdev[VFIO_CDEV_MAX]; /* its VFIO character device, which iommufd needs: "vfio3"; "": none */
        bool sets_guids;    /* the GUIDs of its VFs can be set: it has a network interface (for InfiniBand that of the
                               module ib_ipoib), or the directory sriov of MLNX_OFED */
        char *vgpu_types;   /* the vGPU types that can be created on this VF (model/vgpu.h); NULL: the VF is not on a
                               driver with vGPUs */
        unsigned vgpu_type; /* id of the type of its vGPU, 0 none */
        bool mdev_parent;   /* its driver creates mediated devices, which are the vGPUs of a VF; host/mdev.h */
        char *mdev_types;   /* of a GPU without VFs: the types of its mediated devices, as vgpu_types of its slots
                               (model/mdev-slots.h); NULL: it has none */
        char *mdevs;        /* of such a GPU: a line "UUID TYPE" for each mediated device, ascending */
        char mdev[UUID_STRING_MAX]; /* UUID of the mediated device that is its vGPU; "": none */
        bool boot_vga;
        bool is_bridge; /* header type 1 or class 0604/0607: cannot be passed to a guest (A11) */
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
        uint16_t vf_offset, vf_stride; /* of a PF without VFs: from its routing ID to that of its first VF, and from VF
                                          to VF; 0 unknown */
        uint64_t vf_bar_size[PCI_VF_BARS_MAX]; /* of a PF without VFs: bytes of each VF, 0 unused */
        bool expected;                         /* a VF that does not exist yet (inventory_expect_vfs()) */
        char *reset_methods;                   /* reset_method attribute, NULL when the device has none */
        char *power_state;
        bool runtime_pm; /* power/control is "auto": the kernel suspends the device while it is not used. Not read for
                            bridges and VFs: a VF has no power of its own, and its PF keeps the link up */
        bool d3cold;     /* d3cold_allowed is 1: the kernel may also turn its power off. Not read for them either */
        char *kernel_names; /* names of its RDMA devices, network interfaces, NVMe controllers, DRM and accelerator
                               nodes, disks, and interfaces below it (scalable functions, modems, USB ...), separated by
                               spaces: "mlx5_0 ens1f0"; first the node of NVIDIA's driver, if known: "nvidia0"; NULL
                               when it has none */
        char *bond;         /* the bond or team that a network interface of it is a port of; NULL: none */
        unsigned link_speed,
                link_width; /* maximum of the link (model/pcilink.h); for bridges, GPUs and NICs other than VFs */
        unsigned current_speed, current_width; /* the link as trained, for GPUs and NICs other than VFs */
        uint64_t bar_size[PCI_BARS_MAX];       /* bytes, 0 unused */
        PciAcs acs;
        uint16_t acs_capabilities, acs_enabled; /* PCI_ACS_BIT()s of the capability and control registers; 0 when acs is
                                                   unknown or clean */
        PciAts ats;
        char *critical;              /* why the host needs the device, a chain of dependencies; NULL when it does not.
                                        host/critical.h */
        const char *critical_remedy; /* how to end that use, a static sentence; NULL: passthroughd(8) tells */
        bool has_memory_node;        /* NVIDIA's driver tells the NUMA node of the GPU's memory (host/nvidia.h) */
        int memory_node;             /* that node */
        uint64_t online_memory;      /* bytes of this memory that the host has online; host/critical.h */
        bool mode_known; /* NVIDIA's driver has told the confidential mode of the GPU: daemon/facts-modules.c */
        ConfidentialMode mode;
        char *console; /* why the host's console uses the device, a chain of dependencies; NULL when it does not.
                          host/critical.h */
        char *fault;   /* sentences about unreadable or invalid attributes; NULL when all are valid */
} PciDevice;

typedef struct IommuGroup {
        int number;
        uint32_t *members; /* indices into devices, ascending */
        size_t n_members;
        bool direct; /* has a "direct" reserved region: VFIO refuses the group (domain.md A20) */
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
        uint64_t available; /* bytes of ordinary pages that are free or in reclaimable caches */
        bool available_known;
        PagePool pages[PAGE_SIZES_MAX]; /* hugepages, ascending by size */
        size_t n_pages;
        unsigned distance[INVENTORY_NODES_MAX]; /* to inventory->nodes[i], SLIT units, 10 is local, 0 unknown */
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

/* A VFIO variant driver: a line of modules.alias, "vfio_pci:v000015B3d..." without the prefix. */
typedef struct VfioVariant {
        char *pattern;
        char *driver; /* its name; the name of its module while it is not loaded */
        bool loaded;  /* or built in */
} VfioVariant;

#define ARCHITECTURE_MAX     16U
#define ARCHITECTURE_X86_64  "x86_64"
#define ARCHITECTURE_AARCH64 "aarch64"

typedef enum IommuBoot {
        IOMMU_BOOT_DEFAULT, /* nothing, or the command line is unknown */
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
        Cpu *cpus; /* online ones, ascending by id */
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
        IommuBoot iommu_boot; /* what the kernel command line says about it */
        bool xen;             /* Linux runs under Xen, and the IOMMU groups are those of inventory_derive_groups() */
        char *critical_error; /* why the devices that the host needs could not be determined; no device is allocated
                                   then. NULL when they are known */
        char **notes;         /* sentences about skipped or odd facts of the node as a whole */
        size_t n_notes;
} Inventory;

/* Architecture of this node's domains: the node's own, or x86_64 when unknown. */
const char *inventory_architecture(const Inventory *inv);
/* How a device without an IOMMU group gets one. Where no device has one: how to turn on the IOMMU. Does not name what
 * the node has already. */
const char *inventory_iommu_remedy(const Inventory *inv);
/* Notes about the IOMMU: the whole sentence, and the first words of the other. */
#define NOTE_NO_IOMMU                                                                                                  \
        "No device has an IOMMU group. The IOMMU is off or missing, and no device can be given to a guest."
#define NOTE_ACS_OVERRIDE "The kernel runs with pcie_acs_override="
/* Domain documents can be generated for the node's architecture. */
bool inventory_has_domains(const Inventory *inv);

/* Empty inventory; NULL when out of memory. */
Inventory *inventory_new(void);
Inventory *inventory_free(Inventory *inv);
DEFINE_CLEANUP(Inventory *, inventory_free)

/*
 * Appends a zeroed device; unknown members are -1. The pointer is valid until the next call. NULL: out of memory or
 * INVENTORY_DEVICES_MAX reached.
 */
PciDevice *inventory_add_device(Inventory *inv, PciAddress address);
/*
 * Appends a copy of dev, a device of another inventory, in the state before inventory_finish(): numa_node is own_node,
 * and critical and console are NULL. 0 or -ENOMEM.
 */
int inventory_copy_device(Inventory *inv, const PciDevice *dev);
/* Appends a sentence to device->fault, separated by "; ". 0 or -ENOMEM. */
int pci_device_add_fault(PciDevice *dev, const char *format, ...) _printf_(2, 3);
/* Copies vgpu_types, vgpu_type, mdev_parent, mdev, mdev_types and mdevs. 0 or -ENOMEM. */
int pci_device_copy_vgpu(PciDevice *to, const PciDevice *from);
bool pci_device_same_vgpu(const PciDevice *a, const PciDevice *b);
/* 0, -ENOMEM, or -E2BIG beyond INVENTORY_VARIANTS_MAX. */
int inventory_add_variant(Inventory *inv, const char *pattern, const char *driver, bool loaded);
/* Copies drivers and variants. to must have neither. 0 or -ENOMEM. */
int inventory_copy_drivers(Inventory *to, const Inventory *from);
void inventory_swap_drivers(Inventory *a, Inventory *b);
/* False only when the registered drivers are known and name is not among them. */
bool inventory_may_have_driver(const Inventory *inv, const char *name);
int inventory_add_note(Inventory *inv, const char *format, ...) _printf_(2, 3);

/*
 * To be called after all devices are added. Adds the slots of mediated devices, sorts, and derives parent, groups (from
 * iommu_group of the devices), type and the VFs of each PF (from its links). Group flags set by
 * inventory_set_group_direct() are kept. Idempotent. 0 or -ENOMEM.
 */
int inventory_finish(Inventory *inv);
int inventory_set_group_direct(Inventory *inv, int number);
/*
 * For Linux under Xen, which has no IOMMU groups because Xen has the IOMMU: gives each device the group that the kernel
 * would, from ACS, and calls inventory_finish(). The number of a group follows from its first member, so it stays the
 * same when other devices come and go. A device without a path has no group. 0 or -ENOMEM.
 */
int inventory_derive_groups(Inventory *inv);

/* Binary searches; NULL when absent. */
const PciDevice *inventory_find(const Inventory *inv, PciAddress address);
const IommuGroup *inventory_find_group(const Inventory *inv, int number);
/* The device whose VFs change with dev: the PF of a VF that can be a vGPU, or dev itself. NULL when dev is NULL or the
 * PF is missing. */
const PciDevice *inventory_find_vgpu_parent(const Inventory *inv, const PciDevice *dev);
const NumaNode *inventory_find_node(const Inventory *inv, int id);
const Cpu *inventory_find_cpu(const Inventory *inv, unsigned id);
/* Position in nodes[], or -1. */
int inventory_node_index(const Inventory *inv, int id);
/*
 * The node that gives CPUs to a guest with a device on node id: that node, or if it has no CPUs (GPU memory, CXL), the
 * nearest node with CPUs; of several the lowest. Where only one node has CPUs, it is this node, even when id is -1,
 * that is unknown. When no node has CPUs, it is node id. -1: unknown.
 */
int inventory_cpu_node(const Inventory *inv, int id);
/* The same for a device; -1 whenever the node of the device is unknown. */
int inventory_device_cpu_node(const Inventory *inv, const PciDevice *dev);
/* The GPU whose memory the node without CPUs is. It goes offline when the GPU gets another driver. NULL: none. */
const PciDevice *inventory_memory_owner(const Inventory *inv, const NumaNode *node);
/* The device is a GPU beside a Grace CPU, on the node of its memory. */
bool inventory_gpu_has_memory_node(const Inventory *inv, const PciDevice *dev);
/* The numa_node attribute of the device is a node that the machine does not list. */
bool pci_device_has_unlisted_node(const Inventory *inv, const PciDevice *dev);
/*
 * The node that gives memory to a guest with CPUs of node id: of the nodes in from, the nearest; of several the lowest.
 * from NULL: that node, or if it has no memory, the nearest node with both CPUs and memory. -1: none.
 */
int inventory_memory_node(const Inventory *inv, int id, const CpuSet *from);
size_t inventory_device_index(const Inventory *inv, const PciDevice *dev);

/* Memory of a node in ordinary pages: MemTotal less all hugepages, bytes. */
uint64_t numa_node_base_memory(const NumaNode *node);
const PagePool *numa_node_pages(const NumaNode *node, uint64_t page_size);

/* No use by the host: VFIO accepts a group whose member has this driver (domain.md A4 to A6): none, a VFIO driver,
 * pci-stub, pcieport. The same for pciback, to which Xen's guests have their devices bound. */
bool pci_device_driver_is_harmless(const PciDevice *dev);
/* The device is the boot VGA or drives the host's console. */
bool pci_device_is_display(const PciDevice *dev);
/* pci_device_is_gpu(): class 03xx, but no display controller of a BMC or a hypervisor, or class 12xx of AMD's GPUs
 * (vendor 1002: pci.ids has 1002:74a1, MI300X, and "Processing accelerators" for class 12).
 * pci_device_is_accelerator(): a GPU, or any other device of class 12xx: FPGAs, NPUs and the like.
 * pci_device_is_nic(): class 02xx. */
bool pci_device_is_gpu(const PciDevice *dev);
bool pci_device_is_accelerator(const PciDevice *dev);
bool pci_device_is_nic(const PciDevice *dev);
/* A whole NIC of Mellanox or NVIDIA, not a VF. */
bool pci_device_is_connectx(const PciDevice *dev);
/* A PF of an mlx4 card, recognised by its driver or its device id: an unbound PF has no driver to go by. */
bool pci_device_is_mlx4_pf(const PciDevice *dev);
/* A VF of this InfiniBand PF has no link until its GUIDs and its link policy are set. mlx4 does without them. */
bool pci_device_needs_guids(const PciDevice *pf);
/*
 * other is another function of assigned's card and IOMMU group (for example a GPU's audio function), so it is passed to
 * the guest with assigned. False for VFs, which count as separate cards, and for a PF beside its VF (scenario D10).
 */
bool pci_device_is_companion(const PciDevice *assigned, const PciDevice *other);
/*
 * A part of the platform that is listed as a PCI device (domain.md A12): host, ISA and other class 06 bridges except
 * 0680 (NVSwitch), SMBus 0c05, system peripherals 08 except DMA engines: 0801, and 0880 with a BAR (Intel's DSA, IAA
 * and CBDMA). PCI bridges are part of the platform as well; see is_bridge.
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
/* The kernel would give each VF of this PF an IOMMU group of its own: no device outside its slot is in its group. */
bool inventory_isolates_vfs(const Inventory *inv, const PciDevice *pf);
/* Says what is assumed about a VF that is expected: sentences, which the caller frees. NULL when out of memory. */
char *inventory_describe_expected(const Inventory *inv, const PciDevice *vf);
/*
 * Length of the part of the path up to and including the host bridge, "pci0000:80" with its prefix; 0 when the path
 * names no host bridge.
 */
size_t pci_device_host_length(const PciDevice *dev);
size_t pci_path_host_length(const char *path);
/*
 * True when ACS isolates every port between dev and the root complex. Otherwise *ret_port is the nearest port that does
 * not isolate.
 */
bool inventory_path_is_isolated(const Inventory *inv, const PciDevice *dev, const PciDevice **ret_port);
