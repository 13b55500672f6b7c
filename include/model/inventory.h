/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The hardware of this node as facts, without policy and without allocations: PCI functions, IOMMU groups, NUMA nodes,
 * CPUs. host/scan.h fills the inventory. A few members are set later, by host/critical.h, host/nvidia.h and
 * daemon/facts.h. Devices, groups, NUMA nodes and CPUs are sorted, so the same node always gives the same answer.
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

#define PCI_BARS_MAX           7U /* the first lines of "resource" in sysfs: six BARs and the expansion ROM */
#define PCI_VF_BARS_MAX        6U /* the lines after these in "resource" of a PF: the BARs of its VFs */
#define PAGE_SIZES_MAX         8U
#define VFIO_CDEV_MAX          16U
#define INVENTORY_VARIANTS_MAX 1024U
#define PCIBACK_DRIVER         "pciback" /* driver of the kernel module xen-pciback */

typedef enum PciType {
        PCI_TYPE_DEVICE, /* neither PF nor VF */
        PCI_TYPE_PF,     /* sriov_totalvfs is not 0, or it has VFs */
        PCI_TYPE_VF,     /* has a link physfn, or is a slot (model/mdev-slots.h) */
        _PCI_TYPE_MAX,
} PciType;
const char *pci_type_to_string(PciType t);

/* Access Control Services of a port or multifunction device, from config space (PCIe 6.12; pci_acs_enabled() in the
 * kernel's drivers/pci/pci.c). */
typedef enum PciAcs {
        PCI_ACS_UNKNOWN,  /* config space was not read */
        PCI_ACS_CLEAN,    /* isolates by definition: a VF, a slot for mediated devices, or an endpoint or upstream port
                             that is the only function of its PCI slot */
        PCI_ACS_ISOLATED, /* of SV, RR, CR and UF, those that the port has are enabled */
        PCI_ACS_OPEN,     /* does not isolate: functions can reach each other without the IOMMU */
        _PCI_ACS_MAX,
} PciAcs;
const char *pci_acs_to_string(PciAcs a);

/* Numbers of bits in the ACS capability and control registers. */
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

/* Whether an accelerator or NIC uses Address Translation Services. For a VF the setting of its PF counts
 * (peer_ats_function()). */
typedef enum PciAts {
        PCI_ATS_UNKNOWN, /* config space was not read, as for VFs */
        PCI_ATS_NONE,    /* no capability; the firmware of some NICs can hide it */
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
        bool named;        /* pci.ids was searched for name and vf_name */
        uint64_t serial;   /* serial number of the card (model/serial.h); for a VF, of its PF; 0: none */
        bool serial_known; /* the serial number was read; the daemon reads it only where it needs it
                              (manager_read_serial()) */
        unsigned module;   /* NVLink module id that NVIDIA's driver reported; 0: unknown (model/fabric.h) */
        char *path;        /* path below sys/devices: "pci0000:80/0000:80:02.0/0000:82:00.0". On some machines the path
                              begins with other devices: "LNXSYSTM:00/.../pci0000:80/...". "" or NULL: unknown */
        uint64_t instance; /* inode of its sysfs directory: another one when the card was replugged */
        int parent;        /* index of the bridge above, or -1 on a root bus */
        int numa_node;     /* NUMA node id; -1: unknown, which is not node 0. On a machine with one node: the id of that
                              node */
        int own_node;    /* the value of the sysfs attribute numa_node; -1: none; -2: invalid. If it is -1 or no node of
                            the machine, the member numa_node is that of the PF or of a bridge above */
        int iommu_group; /* number of the group. The kernel reuses numbers, so it is valid only until the next scan. -1:
                            none, or a group of VFIO's no-IOMMU mode */
        char *driver;    /* NULL when unbound */
        char *driver_override; /* NULL when not set */
        bool has_override;     /* there is a file driver_override */
        bool vfio; /* has vfio-dev/: the bound driver is a VFIO driver (ABI/testing/sysfs-devices-vfio-dev) */
        char vfio_cdev[VFIO_CDEV_MAX]; /* its VFIO character device, "vfio3", which iommufd needs; "": none */
        bool sets_guids;    /* the GUIDs of its VFs can be set, because it has a network interface (for InfiniBand by
                               ib_ipoib) or MLNX_OFED's directory sriov */
        char *vgpu_types;   /* of a VF or slot: types of vGPU that it can have (model/vgpu.h); NULL: its driver makes no
                               vGPUs */
        unsigned vgpu_type; /* id of the type of its vGPU; 0: it has none */
        bool mdev_parent;   /* its driver makes mediated devices. Of a VF or slot: its vGPU is a mediated device
                               (host/mdev.h) */
        char *mdev_types; /* of a GPU that is no VF: the types of its mediated devices. If the GPU can have no VFs, they
                             are the vgpu_types of its slots (model/mdev-slots.h); NULL: it has none */
        char *mdevs;      /* of a GPU that is no VF: a line "UUID TYPE" for each mediated device, ascending by UUID */
        char mdev[UUID_STRING_MAX]; /* of a VF or slot: UUID of the mediated device that is its vGPU; "": none */
        bool boot_vga;
        bool is_bridge; /* header type 1 or 2, class 0604 or 0607, or a secondary bus: VFIO refuses it */
        PciType type;
        PciAddress physfn;  /* of a VF: its PF; of a slot: its GPU */
        int vf_index;       /* of a VF: N of the PF's link virtfnN; of a slot: its number - 1; -1 unknown */
        size_t n_virtfns;   /* of a PF: number of links virtfnN */
        PciAddress *linked; /* of a PF: targets of these links, by N, as far as they are readable */
        size_t n_linked;
        PciAddress *vfs; /* of a PF: its VFs, first those in `linked`, then those whose physfn is the PF but which have
                            no link; of a GPU: its slots. Set by inventory_finish() */
        size_t n_vfs;
        unsigned total_vfs;
        uint16_t vf_device;            /* of a PF: PCI device id of its VFs (sriov_vf_device); 0 unknown */
        uint16_t vf_offset, vf_stride; /* of a PF without VFs: distance of routing IDs from the PF to its first VF, and
                                          between VFs; 0 unknown */
        uint64_t vf_bar_size[PCI_VF_BARS_MAX]; /* of a PF without VFs: size of each BAR of a VF in bytes; 0: unused */
        bool expected;                         /* the VF does not exist yet: inventory_expect_vfs() */
        char *reset_methods;                   /* text of reset_method; NULL: the device has none */
        char *power_state;
        bool runtime_pm; /* power/control is "auto": the kernel suspends the device while it is idle. Not read for
                            bridges and VFs: a VF has no power state of its own */
        bool d3cold; /* d3cold_allowed is 1: the kernel may also cut the device's power. Not read for bridges and VFs */
        char *kernel_names; /* names of its RDMA devices, network interfaces, NVMe controllers, DRM and accelerator
                               nodes, and disks, separated by spaces: "mlx5_0 ens1f0". Also network interfaces of
                               devices below it, such as scalable functions, modems or USB adapters. The node of
                               NVIDIA's driver, "nvidia0", is first if it is known. NULL: no names */
        char *bond;         /* the bond or team of which a network interface of the device is a port; NULL: none */
        unsigned link_speed, link_width; /* the link's maximum (model/pcilink.h); of bridges, and of accelerators and
                                            NICs that are no VFs */
        unsigned current_speed, current_width; /* the link as it runs now; of accelerators and NICs that are no VFs */
        uint64_t bar_size[PCI_BARS_MAX];       /* size in bytes; 0: unused */
        PciAcs acs;
        uint16_t acs_capabilities, acs_enabled; /* the capability and control registers, as PCI_ACS_BIT()s; 0 when acs
                                                   is unknown or clean */
        PciAts ats;
        char *critical; /* why the host needs the device, as a chain of uses; NULL: it does not. See host/critical.h */
        const char *critical_remedy; /* static sentence: how to end that use; NULL: see passthroughd(8) */
        bool has_memory_node;        /* memory_node is valid: NVIDIA's driver reports the NUMA node of the GPU's memory
                                        (host/nvidia.h) */
        int memory_node;             /* NUMA node of the GPU's memory */
        uint64_t online_memory;      /* bytes of a GPU's memory that the host has online; host/critical.h */
        ConfidentialMode mode;       /* of a GPU, as NVIDIA's driver last reported it; set by daemon/facts-modules.c */
        char *console; /* why the console needs the device, as a chain of uses; NULL: it does not (host/critical.h) */
        char *fault;   /* sentences about attributes that are unreadable or invalid; NULL: none is */
} PciDevice;

typedef struct IommuGroup {
        int number;
        uint32_t *members; /* indices into devices, ascending */
        size_t n_members;
        bool direct; /* a member has a reserved region of type "direct", so that VFIO refuses the group (require_direct
                        in drivers/iommu/iommu.c) */
} IommuGroup;

typedef struct PagePool {
        uint64_t size;  /* bytes of a page, 2 MiB or 1 GiB for example; never 0 */
        uint64_t total; /* number of pages */
        uint64_t free;
} PagePool;

typedef struct NumaNode {
        int id;             /* the ids of nodes may have gaps */
        CpuSet cpus;        /* online CPUs */
        int package;        /* the socket of its CPUs; -1: no CPUs, or unknown */
        uint64_t memory;    /* MemTotal in bytes; 0: the node has no memory */
        uint64_t available; /* bytes of ordinary pages that are free, or that the kernel can reclaim from caches */
        bool available_known;
        PagePool pages[PAGE_SIZES_MAX]; /* hugepages, ascending by size */
        size_t n_pages;
        unsigned distance[INVENTORY_NODES_MAX]; /* SLIT distance to nodes[i] of the inventory: 10 is local, 0 unknown */
} NumaNode;

/* Hybrid CPUs have cores that differ in speed and in SMT. The cores of all other CPUs are CORE_PERFORMANCE. */
typedef enum CoreKind {
        CORE_PERFORMANCE,
        CORE_EFFICIENT,
        CORE_LOW_POWER,
        _CORE_KIND_MAX,
} CoreKind;

typedef struct Cpu {
        unsigned id;
        int node;      /* NUMA node id, -1 unknown */
        unsigned core; /* the lowest online CPU of its core, which identifies the core */
        unsigned die;  /* the lowest online CPU that shares its die and L3 cache. If dies are unknown, 0 for all CPUs */
        CoreKind kind;
} Cpu;

/* A line of modules.alias about a VFIO variant driver. */
typedef struct VfioVariant {
        char *pattern; /* the part of the alias after "vfio_pci:", such as "v000015B3d..." */
        char *driver;  /* name of the driver; while the driver is not loaded, the name of its module */
        bool loaded;   /* loaded, or built into the kernel */
} VfioVariant;

#define ARCHITECTURE_MAX     16U
#define ARCHITECTURE_X86_64  "x86_64"
#define ARCHITECTURE_AARCH64 "aarch64"

typedef enum IommuBoot {
        IOMMU_BOOT_DEFAULT, /* no such option, or an unknown command line */
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
        unsigned phys_bits;                  /* bits of a physical address; 0 unknown */
        bool amd;                            /* vendor AMD or Hygon: CPUID has AMD's leaves */
        char architecture[ARCHITECTURE_MAX]; /* as uname -m prints it; "": unknown, which counts as x86_64 */
        unsigned kernel;                     /* version of Linux: major * 1000 + minor; 0 unknown */
        LibvirtFeatures libvirt;
        ConfidentialHost confidential;
        char **drivers; /* registered PCI drivers, ascending by name */
        size_t n_drivers;
        bool drivers_known;
        VfioVariant *variants;
        size_t n_variants;
        bool iommu;           /* there is an IOMMU group */
        IommuBoot iommu_boot; /* what the kernel command line says */
        bool xen;             /* Linux is dom0 of Xen: IOMMU groups are those of inventory_derive_groups() */
        char *critical_error; /* why it is unknown which devices the host needs. No device is allocated then; NULL: it
                                 is known */
        char **notes;         /* sentences about the node: facts that were skipped, or contradict each other */
        size_t n_notes;
} Inventory;

/* Returns the architecture of domains on this node: that of the node; x86_64 if unknown. */
const char *inventory_architecture(const Inventory *inv);
/* Returns how to turn on the IOMMU or, if some devices have IOMMU groups, how the others get one. Leaves out what is
 * done already. */
const char *inventory_iommu_remedy(const Inventory *inv);
/* Notes about the IOMMU: the first is a whole note, the second the beginning of one. */
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
 * Appends a device: parent, numa_node, iommu_group and vf_index are -1, all other members zero. The pointer is valid
 * until the next call. NULL: out of memory or INVENTORY_DEVICES_MAX reached.
 */
PciDevice *inventory_add_device(Inventory *inv, PciAddress address);
/* Appends a copy of a device of another inventory, for a later inventory_finish(): the copy's numa_node is own_node,
 * and its vfs, critical and console are empty. 0 or -ENOMEM. */
int inventory_copy_device(Inventory *inv, const PciDevice *dev);
/* Appends a sentence to dev->fault, after "; " if there is one already. Drops the sentence if dev->fault has 1 KiB. 0
 * or -ENOMEM. */
int pci_device_add_fault(PciDevice *dev, const char *format, ...) _printf_(2, 3);
/* Frees what the device owns. */
void pci_device_done(PciDevice *dev);
/* Copies vgpu_types, vgpu_type, mdev_parent, mdev, mdev_types and mdevs. 0 or -ENOMEM. */
int pci_device_copy_vgpu(PciDevice *to, const PciDevice *from);
bool pci_device_same_vgpu(const PciDevice *a, const PciDevice *b);
/* Appends a variant. 0, -ENOMEM, or -E2BIG beyond INVENTORY_VARIANTS_MAX. */
int inventory_add_variant(Inventory *inv, const char *pattern, const char *driver, bool loaded);
/* Copies drivers and variants to an inventory that has none. 0 or -ENOMEM. */
int inventory_copy_drivers(Inventory *to, const Inventory *from);
void inventory_swap_drivers(Inventory *a, Inventory *b);
/* Returns false when the registered drivers are known, and none has this name. */
bool inventory_may_have_driver(const Inventory *inv, const char *name);
int inventory_add_note(Inventory *inv, const char *format, ...) _printf_(2, 3);

/*
 * Call it after all devices are added. Adds the slots of mediated devices, and sorts the devices and CPUs, so that
 * pointers to them become invalid. Derives parents, groups (from iommu_group of the devices), types, and the VFs of
 * each PF (from its links, and from physfn of the VFs). Keeps group flags set by inventory_set_group_direct().
 * Idempotent. 0 or -ENOMEM.
 */
int inventory_finish(Inventory *inv);
int inventory_set_group_direct(Inventory *inv, int number);
/*
 * For Linux under Xen, which has no IOMMU groups because Xen owns the IOMMU. Gives each device a group, computed from
 * ACS by the rules of the kernel, and calls inventory_finish(). The number of a group follows from its first member, so
 * it does not change when other devices come and go. A device without a path, or in a PCI domain above 7fff, gets no
 * group. 0 or -ENOMEM.
 */
int inventory_derive_groups(Inventory *inv);

/* Returns the device at the address; NULL: there is none. */
const PciDevice *inventory_find(const Inventory *inv, PciAddress address);
const IommuGroup *inventory_find_group(const Inventory *inv, int number);
/* Returns the device whose vGPUs limit those of dev: if dev is a VF or slot with vgpu_types, its PF or GPU; otherwise
 * dev itself. NULL if dev is NULL, or if that PF or GPU is missing. */
const PciDevice *inventory_find_vgpu_parent(const Inventory *inv, const PciDevice *dev);
const NumaNode *inventory_find_node(const Inventory *inv, int id);
const Cpu *inventory_find_cpu(const Inventory *inv, unsigned id);
/* Returns the index in nodes[] of the node with this id, or -1. */
int inventory_node_index(const Inventory *inv, int id);
/*
 * Returns the node from which a guest with a device on node `id` gets its CPUs: that node, or if it has no CPUs (GPU
 * memory, CXL), the nearest node with CPUs, the lowest of several. If only one node has CPUs, or there is only one
 * node, returns that, even if `id` is -1 (unknown). If no node has CPUs, returns `id`. -1: unknown.
 */
int inventory_cpu_node(const Inventory *inv, int id);
/* As inventory_cpu_node() for the node of the device, but -1 whenever that node is unknown. */
int inventory_device_cpu_node(const Inventory *inv, const PciDevice *dev);
/* Returns the GPU whose memory is this node; NULL if the node has CPUs or is no GPU's memory. The node goes offline
 * when the GPU gets another driver. */
const PciDevice *inventory_memory_owner(const Inventory *inv, const NumaNode *node);
/* Returns true when the device is a GPU beside a Grace CPU and is on the NUMA node of its memory. */
bool inventory_gpu_has_memory_node(const Inventory *inv, const PciDevice *dev);
/* Returns true when the device's attribute numa_node is a node that the machine does not have. */
bool pci_device_has_unlisted_node(const Inventory *inv, const PciDevice *dev);
/*
 * Returns the node from which a guest with CPUs of node `id` gets its memory: the nearest node in the set `from`; of
 * equally near nodes, the lowest. If `from` is NULL: node `id`, or if it has no memory, the nearest node with both CPUs
 * and memory. If only one node qualifies, returns it even if its distance is unknown. -1: node `id` does not exist, no
 * node qualifies, or several qualify and no distance to them is known.
 */
int inventory_memory_node(const Inventory *inv, int id, const CpuSet *from);
size_t inventory_device_index(const Inventory *inv, const PciDevice *dev);

/* Returns the bytes of the node's memory that are not in hugepages: MemTotal less these. */
uint64_t numa_node_base_memory(const NumaNode *node);
const PagePool *numa_node_pages(const NumaNode *node, uint64_t page_size);

/* Returns true when the device's driver does not count as use by the host: none, a VFIO driver, pci-stub or pcieport,
 * with which VFIO accepts the group (driver_managed_dma in the kernel), or pciback, to which the devices of Xen's
 * guests are bound. */
bool pci_device_driver_is_harmless(const PciDevice *dev);
/* Returns true when the device is the boot VGA device or shows the host's console. */
bool pci_device_is_display(const PciDevice *dev);
/* pci_device_is_gpu(): class 03xx except display controllers of a BMC or a hypervisor, or class 12xx of AMD (vendor
 * 1002), whose Instinct GPUs are "Processing accelerators", 1002:74a1 for example. pci_device_is_accelerator(): a GPU,
 * or any other device of class 12xx: FPGAs, NPUs and the like. pci_device_is_nic(): class 02xx. */
bool pci_device_is_gpu(const PciDevice *dev);
bool pci_device_is_accelerator(const PciDevice *dev);
bool pci_device_is_nic(const PciDevice *dev);
/* Returns true for a NIC with the vendor id of Mellanox (15b3) that is no VF. */
bool pci_device_is_connectx(const PciDevice *dev);
/* Returns true for a PF of an mlx4 card: its driver is mlx4_core, or its device id is one of that driver. */
bool pci_device_is_mlx4_pf(const PciDevice *dev);
/* Returns true for an InfiniBand PF whose VFs have no link until their GUIDs and link policy are set. VFs of mlx4 have
 * a link without these settings. */
bool pci_device_needs_guids(const PciDevice *pf);
/*
 * Returns true when `other` can be passed to the guest with `assigned`, because it is another function of the same card
 * and IOMMU group, a GPU's audio function for example. False if one of the two is a VF, because VFs count as separate
 * cards, or if `other` is a bridge.
 */
bool pci_device_is_companion(const PciDevice *assigned, const PciDevice *other);
/*
 * Returns true for a part of the platform that sysfs lists as a PCI device: bridges of class 06 (host, ISA and others)
 * except 0680 (NVSwitch), SMBus 0c05, and system peripherals of class 08 except DMA engines (0801, and 0880 with a BAR:
 * Intel's DSA, IAA and CBDMA). True for PCI bridges as well, which is_bridge marks too.
 */
bool pci_device_is_platform(const PciDevice *dev);
/* Returns the loaded VFIO variant driver whose pattern matches dev most specifically; NULL: none. */
const char *inventory_variant_driver(const Inventory *inv, const PciDevice *dev);
/* The VFIO driver for coherent GPUs, whose memory the Grace CPU beside them can access. With this driver the guest gets
 * that memory as a BAR (drivers/vfio/pci/nvgrace-gpu/main.c since Linux 6.8); with vfio-pci it does not. */
#define COHERENT_DRIVER "nvgrace_gpu_vfio_pci"
bool driver_is_coherent(const char *driver);
/* Returns true for a coherent GPU: modules.alias names COHERENT_DRIVER for it, loaded or not, or the GPU is on the node
 * of its memory. */
bool inventory_is_coherent(const Inventory *inv, const PciDevice *dev);
/* If dev is a coherent GPU and `driver`, its driver for guests, is not COHERENT_DRIVER, sets *ret to a sentence about
 * that, which the caller frees, and *ret_remedy to the remedy, a static sentence. Otherwise sets both to NULL. 0 or
 * -ENOMEM. */
int inventory_explain_lost_memory(const Inventory *inv, const PciDevice *dev, const char *driver, char **ret,
                                  const char **ret_remedy);
/*
 * Adds the n VFs that the kernel would create on a PF without VFs, then calls inventory_finish(). Each VF gets an IOMMU
 * group of its own, or that of the PF if ACS does not isolate the PF. 0, -ENOMEM, -ENODATA when the PF's vf_offset or,
 * for several VFs, vf_stride is unknown, or -ERANGE when an address is taken or is beyond the last bus.
 */
int inventory_expect_vfs(Inventory *inv, PciAddress pf, unsigned n);
/* Returns true when the kernel would give each VF of the PF a group of its own: only functions of the PF's slot are in
 * the PF's group. False if the PF has no group. */
bool inventory_isolates_vfs(const Inventory *inv, const PciDevice *pf);
/* Returns sentences: what this program assumes about an expected VF. The caller frees; NULL when out of memory. */
char *inventory_describe_expected(const Inventory *inv, const PciDevice *vf);
/* Returns the length of the path's part up to its host bridge, "pci0000:80" and what precedes it. 0: the path has no
 * host bridge. */
size_t pci_device_host_length(const PciDevice *dev);
size_t pci_path_host_length(const char *path);
/* Returns true when all ports between dev and the root complex isolate. If not, sets *ret_port to the nearest one that
 * does not. ret_port may be NULL. */
bool inventory_path_is_isolated(const Inventory *inv, const PciDevice *dev, const PciDevice **ret_port);
