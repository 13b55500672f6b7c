/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What this node is: PCI functions, IOMMU groups, NUMA nodes, CPUs. Facts only, as read at one moment; no policy, no
 * promises. host/scan.h fills it; everything else only reads it. Arrays are sorted, so that the same node always gives
 * the same answer.
 */

#include "guest/libvirt-features.h"
#include "model/cpuset.h"
#include "model/pciaddr.h"
#include "util/cleanup.h"

#define INVENTORY_DEVICES_MAX  65536U
#define INVENTORY_NODES_MAX    64U
#define PCI_BARS_MAX           7U /* six BARs and the expansion ROM: the first lines of the sysfs "resource" file */
#define PAGE_SIZES_MAX         8U
#define INVENTORY_VARIANTS_MAX 1024U

typedef enum PciType {
        PCI_TYPE_DEVICE, /* neither PF nor VF */
        PCI_TYPE_PF,     /* can create VFs: sriov_totalvfs is there and not 0 */
        PCI_TYPE_VF,     /* has a physfn link */
        _PCI_TYPE_MAX,
} PciType;
const char *pci_type_to_string(PciType t);

/* Access Control Services of a port or multifunction device, from config space (PCIe 6.12; domain.md A13 to A15). */
typedef enum PciAcs {
        PCI_ACS_UNKNOWN,  /* config space could not be read that far */
        PCI_ACS_CLEAN,    /* isolates by definition: upstream port, single-function endpoint */
        PCI_ACS_ISOLATED, /* capability there, SV RR CR UF all enabled */
        PCI_ACS_OPEN,     /* no capability, or not all enabled: peers can reach each other behind the IOMMU's back */
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
        PCI_ATS_UNKNOWN, /* config space was not read that far */
        PCI_ATS_NONE,    /* no capability: what a NIC's firmware can be set to */
        PCI_ATS_OFF,
        PCI_ATS_ON,
        _PCI_ATS_MAX,
} PciAts;
const char *pci_ats_to_string(PciAts a);

typedef struct PciDevice {
        PciAddress address;
        uint16_t vendor, device, subsystem_vendor, subsystem_device;
        uint32_t class;        /* 24 bits, 0x030200 */
        char *name;            /* from pci.ids, or NULL */
        char *vf_name;         /* the same of the VFs that it has or can have, by vf_device */
        bool named;            /* both were looked up */
        uint64_t serial;       /* of the card, a VF's of its PF's (model/serial.h); 0 none */
        bool serial_known;     /* read: only where an allocation needs to know */
        char *path;            /* below sys/devices: "pci0000:80/0000:80:02.0/0000:82:00.0", on some machines with
                                  more before it, "LNXSYSTM:00/.../pci0000:80/..." */
        uint64_t instance;     /* inode of its directory: another one each time it is plugged in */
        int parent;            /* index of the bridge above, or -1 on a root bus */
        int numa_node;         /* -1 unknown: never treat it as 0 (domain.md E1) */
        int own_node;          /* what the device says itself, before what is above it was asked */
        int iommu_group;       /* kernel's number, good only until the next scan (domain.md A2); -1 none, or of VFIO's
                                  no-IOMMU mode (A17) */
        char *driver;          /* NULL when unbound */
        char *driver_override; /* NULL when not set */
        bool has_override;     /* the driver_override file exists */
        bool vfio;             /* vfio-dev/ exists: bound to some VFIO driver (domain.md B11) */
        bool vfio_cdev;        /* and it has a character device of its own, as iommufd needs */
        bool boot_vga;
        bool is_bridge; /* header type 1 or class 0604/0607: can never be given to a guest (A11) */
        PciType type;
        PciAddress physfn;  /* PCI_TYPE_VF: its PF */
        int vf_index;       /* PCI_TYPE_VF: which virtfn link of its PF leads to it, -1 unknown */
        size_t n_virtfns;   /* virtfn links it has */
        PciAddress *linked; /* where those of them lead that could be read, by index */
        size_t n_linked;
        PciAddress *vfs; /* PCI_TYPE_PF: present VFs by index; gaps are left out. Of linked, by inventory_finish() */
        size_t n_vfs;
        unsigned total_vfs;
        uint16_t vf_device;  /* device id its VFs will have (sriov_vf_device), 0 unknown */
        char *reset_methods; /* as the kernel lists them, NULL when none */
        char *power_state;
        unsigned link_speed, link_width; /* the most it can (model/pcilink.h). Of bridges, GPUs and NICs that are no VFs
                                          */
        uint64_t bar_size[PCI_BARS_MAX]; /* bytes, 0 unused */
        PciAcs acs;
        uint16_t acs_can, acs_does; /* PCI_ACS_BIT()s of capability and control; 0 when acs is unknown or clean */
        PciAts ats;
        char *critical; /* why the host cannot do without it, a chain; NULL when it can. host/critical.h */
        char *console;  /* why the host's console is on it, a chain; NULL when it is not. host/critical.h */
        char *fault;    /* attributes that could not be read or made no sense, a sentence; NULL when all did */
} PciDevice;

typedef struct IommuGroup {
        int number;
        uint32_t *members; /* indices into devices, ascending */
        size_t n_members;
        bool direct; /* has a "direct" reserved region: VFIO will refuse it (domain.md A20) */
} IommuGroup;

typedef struct PagePool {
        uint64_t size;  /* bytes: 2 MiB, 1 GiB; never 0 */
        uint64_t total; /* pages */
        uint64_t free;
} PagePool;

typedef struct NumaNode {
        int id;             /* ids may be sparse */
        CpuSet cpus;        /* online CPUs */
        int package;        /* socket of its CPUs, -1 when it has none */
        uint64_t memory;    /* bytes, MemTotal; 0 for a memory-less node */
        uint64_t available; /* bytes of ordinary pages that are free or hold caches the kernel can drop */
        bool available_known;
        PagePool pages[PAGE_SIZES_MAX]; /* hugepages, ascending by size */
        size_t n_pages;
        unsigned distance[INVENTORY_NODES_MAX]; /* to inventory->nodes[i], SLIT units, 10 is local, 0 unknown */
} NumaNode;

typedef struct Cpu {
        unsigned id;
        int node;      /* NUMA node id, -1 unknown */
        unsigned core; /* the smallest online SMT sibling: CPUs with the same value share a core */
        unsigned die;  /* the smallest online CPU of its die; 0 where that is not known */
} Cpu;

/* A VFIO driver that is made for certain devices: a line of modules.alias, "vfio_pci:v000015B3d..." without the prefix.
 */
typedef struct VfioVariant {
        char *pattern;
        char *driver; /* that is there: loaded */
} VfioVariant;

#define ARCHITECTURE_MAX     16U
#define ARCHITECTURE_X86_64  "x86_64"
#define ARCHITECTURE_AARCH64 "aarch64"

typedef struct Inventory {
        PciDevice *devices; /* ascending by address */
        size_t n_devices;
        IommuGroup *groups; /* ascending by number */
        size_t n_groups;
        NumaNode *nodes; /* ascending by id, at most INVENTORY_NODES_MAX */
        size_t n_nodes;
        Cpu *cpus; /* online ones, ascending by id */
        size_t n_cpus;
        unsigned phys_bits;                  /* of the processors' physical addresses, 0 unknown */
        char architecture[ARCHITECTURE_MAX]; /* as uname -m has it; "" unknown, which counts as x86_64 */
        LibvirtFeatures libvirt;
        char **drivers; /* PCI drivers the kernel has, ascending by name */
        size_t n_drivers;
        bool drivers_known;
        VfioVariant *variants;
        size_t n_variants;
        bool iommu;             /* some group exists */
        char *critical_unknown; /* why nobody can tell what the host stands on: nothing is given away; NULL when known
                                 */
        char **notes;           /* what was skipped or odd about the node as a whole, sentences */
        size_t n_notes;
} Inventory;

/* Of the domains that this node runs: its own, or x86_64 where it is not known. */
const char *inventory_architecture(const Inventory *inv);
/* There is a domain document for it. */
bool inventory_has_domains(const Inventory *inv);

/* Empty inventory; NULL when out of memory. */
Inventory *inventory_new(void);
Inventory *inventory_free(Inventory *inv);
DEFINE_CLEANUP(Inventory *, inventory_free)

/* Appends a zeroed device with unknowns set (-1). The pointer is good until the next call. NULL: out of memory or
 * INVENTORY_DEVICES_MAX. */
PciDevice *inventory_add_device(Inventory *inv, PciAddress address);
/* Appends a copy, as it was before inventory_finish(): numa_node is own_node, critical and console NULL. dev is of
 * another inventory. */
int inventory_copy_device(Inventory *inv, const PciDevice *dev);
/* Appends text to device->fault, "; " between. */
int pci_device_add_fault(PciDevice *dev, const char *format, ...) _printf_(2, 3);
/* -E2BIG beyond INVENTORY_VARIANTS_MAX. */
int inventory_add_variant(Inventory *inv, const char *pattern, const char *driver);
/* to has neither. */
int inventory_copy_drivers(Inventory *to, const Inventory *from);
void inventory_swap_drivers(Inventory *a, Inventory *b);
/* False where the drivers are known and this one is not among them. */
bool inventory_may_have_driver(const Inventory *inv, const char *name);
int inventory_add_note(Inventory *inv, const char *format, ...) _printf_(2, 3);

/*
 * After all devices are added: sorts, and derives parent, groups (members from devices' iommu_group), type and each
 * PF's vfs from the links. Groups found here keep direct from an earlier inventory_set_group_direct(). Twice is as good
 * as once.
 */
int inventory_finish(Inventory *inv);
int inventory_set_group_direct(Inventory *inv, int number);

/* Binary searches; NULL when absent. */
const PciDevice *inventory_find(const Inventory *inv, PciAddress address);
const IommuGroup *inventory_find_group(const Inventory *inv, int number);
const NumaNode *inventory_find_node(const Inventory *inv, int id);
const Cpu *inventory_find_cpu(const Inventory *inv, unsigned id);
/* Position in nodes[], or -1. */
int inventory_node_index(const Inventory *inv, int id);
size_t inventory_device_index(const Inventory *inv, const PciDevice *dev);

/* Memory a node keeps for ordinary pages: MemTotal less all its hugepages, bytes. */
uint64_t numa_node_base_memory(const NumaNode *node);
const PagePool *numa_node_pages(const NumaNode *node, uint64_t page_size);

/* The driver is one under which VFIO still finds the group viable (domain.md A4 to A6): none, a VFIO driver, pci-stub,
 * pcieport. */
bool pci_device_driver_is_harmless(const PciDevice *dev);
/* The boot VGA, or the console is on it: somebody may be looking. */
bool pci_device_is_display(const PciDevice *dev);
/* Class 03xx or 12xx: a GPU or accelerator. Class 02xx: a NIC. */
bool pci_device_is_gpu(const PciDevice *dev);
bool pci_device_is_nic(const PciDevice *dev);
/* A PF of a card that mlx4_core drives. By device id too: while the driver is not loaded its cards have none. */
bool pci_device_is_mlx4_pf(const PciDevice *dev);
/*
 * other is another function of the same card and IOMMU group as assigned (a GPU's audio), so it goes with it. Not for
 * VFs, which are cards of their own, nor for a PF beside its VF (scenario D10).
 */
bool pci_device_is_companion(const PciDevice *assigned, const PciDevice *other);
/*
 * A part of the machine itself that is listed like any device (domain.md A12): host, ISA and other class 06 bridges
 * except 0680 (NVSwitch is one of those), SMBus 0c05, system peripherals 08. PCI bridges are so too, see is_bridge.
 */
bool pci_device_is_platform(const PciDevice *dev);
/* The variant driver that fits dev best, the one that leaves least open; NULL when it has none but vfio-pci. */
const char *inventory_variant_driver(const Inventory *inv, const PciDevice *dev);
/* How much of path names the host bridge it is below, "pci0000:80" with what is before that; 0 when none is named. */
size_t pci_device_host_length(const PciDevice *dev);
size_t pci_path_host_length(const char *path);
/* 0 unless the whole way up to the root complex isolates; names the first open port in *ret_port when it does not. */
bool inventory_path_is_isolated(const Inventory *inv, const PciDevice *dev, const PciDevice **ret_port);
