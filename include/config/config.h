/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The configuration: parses INI text into a Config. Pure: host/configfiles.h reads the files, and adds the text of each
 * file to one Config. A broken line is ignored and becomes a ConfigProblem (file, line, sentence); the other lines
 * still apply. passthroughd.conf(5) documents the keys. */

#include "model/cpuset.h"
#include "model/endpoint-status.h"
#include "model/fabric.h"
#include "model/inventory.h"
#include "model/numapolicy.h"
#include "model/vfattr.h"

#define CONFIG_TEXT_MAX       (1024U * 1024U) /* bytes of all files together */
#define CONFIG_LINE_MAX       198U /* bytes, as libinih's buffer for a line has 200. Comments may be longer */
#define CONFIG_POOLS_MAX      64U
#define CONFIG_MATCHES_MAX    256U /* Match= lines of a pool, or of [Exclude] */
#define CONFIG_PROBLEMS_MAX   256U
#define CONFIG_INTERFACES_MAX 256U /* globs in KeepInterfaces= */
#define CONFIG_SPARE_MAX      8U
#define CONFIG_SERVICES_MAX   16U /* units in StopServices= of a pool */
#define CLEANER_WORDS_MAX     16U
#define UNIT_NAME_MAX         255U
#define POOL_NAME_MAX         63U /* [a-z0-9][a-z0-9-]* */
#define REMOTE_SERVICES_MAX   16U
#define REMOTE_ENDPOINTS_MAX  16U /* endpoints of a service */
#define ENDPOINT_SLOTS_MAX    1024U

/* The hypervisor that runs the guests of this node. */
typedef enum Hypervisor {
        HYPERVISOR_KVM, /* devices go to a VFIO driver (the default) */
        HYPERVISOR_XEN, /* devices go to xen-pciback */
        _HYPERVISOR_MAX,
        _HYPERVISOR_INVALID = -22,
} Hypervisor;
const char *hypervisor_to_string(Hypervisor h);
Hypervisor hypervisor_from_string(const char *s);

typedef enum AfterRelease {
        AFTER_RELEASE_RESTORE, /* restore the driver and driver_override from before the allocation (the default) */
        AFTER_RELEASE_KEEP,    /* leave the device bound to the VFIO driver */
        _AFTER_RELEASE_MAX,
        _AFTER_RELEASE_INVALID = -22,
} AfterRelease;
const char *after_release_to_string(AfterRelease a);
AfterRelease after_release_from_string(const char *s);

/* Whether guests get their devices by iommufd or by VFIO's own container (guest/iommufd.h). */
typedef enum IommufdMode {
        IOMMUFD_MODE_AUTO, /* iommufd where the guest loses no peer-to-peer DMA by it (the default) */
        IOMMUFD_MODE_NO,
        IOMMUFD_MODE_YES,
        _IOMMUFD_MODE_MAX,
        _IOMMUFD_MODE_INVALID = -22,
} IommufdMode;
const char *iommufd_mode_to_string(IommufdMode m);
IommufdMode iommufd_mode_from_string(const char *s);

typedef enum PoolBind {
        POOL_BIND_ALLOCATE, /* unbind the host driver when the device is allocated (the default) */
        POOL_BIND_START, /* bind the VFIO driver at startup, when a reload sets Bind=start, when the device is plugged
                            in, and when the VFIO driver is loaded later */
        _POOL_BIND_MAX,
        _POOL_BIND_INVALID = -22,
} PoolBind;
const char *pool_bind_to_string(PoolBind b);
PoolBind pool_bind_from_string(const char *s);

/* The source of the MAC address and the GUIDs of a VF if the request does not set them. */
typedef enum VfIdentity {
        VF_IDENTITY_FRESH,  /* new ones for each allocation (the default) */
        VF_IDENTITY_STABLE, /* the same ones in every allocation of this VF */
        _VF_IDENTITY_MAX,
        _VF_IDENTITY_INVALID = -22,
} VfIdentity;
const char *vf_identity_to_string(VfIdentity i);
VfIdentity vf_identity_from_string(const char *s);

/* The reset methods of the kernel (pci_reset_fn_methods[] in its drivers/pci/pci.c). */
typedef enum ResetMethod {
        RESET_METHOD_DEFAULT, /* the methods that the device's reset_method lists, in that order (the default) */
        RESET_METHOD_DEVICE_SPECIFIC,
        RESET_METHOD_ACPI,
        RESET_METHOD_FLR,
        RESET_METHOD_AF_FLR,
        RESET_METHOD_PM,
        RESET_METHOD_BUS,
        RESET_METHOD_CXL_BUS,
        _RESET_METHOD_MAX,
        _RESET_METHOD_INVALID = -22,
} ResetMethod;
const char *reset_method_to_string(ResetMethod m);
ResetMethod reset_method_from_string(const char *s);

/* The PF from which a VF is taken when NUMA and proximity leave a choice between several PFs. */
typedef enum VfPlacement {
        VF_PLACEMENT_SPREAD, /* the PF with the fewest allocated VFs (the default) */
        VF_PLACEMENT_PACK,   /* the PF with the fewest free VFs */
        _VF_PLACEMENT_MAX,
        _VF_PLACEMENT_INVALID = -22,
} VfPlacement;
const char *vf_placement_to_string(VfPlacement p);
VfPlacement vf_placement_from_string(const char *s);

/* The program that decides which guest gets the devices of a pool. */
typedef enum PoolScheduler {
        POOL_SCHEDULER_NONE,       /* the daemon, for each request (the default) */
        POOL_SCHEDULER_PLACEMENT,  /* OpenStack Placement: a request names its consumer there, and the exact devices */
        POOL_SCHEDULER_KUBERNETES, /* Kubernetes: a request names its ResourceClaim, and the exact devices */
        POOL_SCHEDULER_NOVA,       /* Nova assigns the devices itself; the daemon only prepares and cleans them */
        _POOL_SCHEDULER_MAX,
        _POOL_SCHEDULER_INVALID = -22,
} PoolScheduler;
const char *pool_scheduler_to_string(PoolScheduler s);
PoolScheduler pool_scheduler_from_string(const char *s);

/* The protocol of a port of an mlx4 card. The numbers are those of mlx4_core's port_type_array. */
typedef enum PortType {
        PORT_TYPE_AUTO, /* as set in the card's firmware */
        PORT_TYPE_IB,
        PORT_TYPE_ETH,
        _PORT_TYPE_MAX,
        _PORT_TYPE_INVALID = -22,
} PortType;
const char *port_type_to_string(PortType t);
PortType port_type_from_string(const char *s);
#define PORT_TYPES_MAX 2U /* ports of an mlx4 card */

typedef struct ConfigPlace {
        const char *file; /* points into Config.files */
        unsigned line;
} ConfigPlace;

/* One Match= line: a device matches when all terms that are set match. */
typedef struct Match {
        ConfigPlace place;
        char *address;                          /* glob for DDDD:BB:SS.F; here and below NULL means not set */
        char *pf;                               /* glob for the address of a VF's PF; matches VFs only */
        int vendor, device;                     /* -1 not set; id= sets both */
        int subsystem_vendor, subsystem_device; /* -1 not set */
        char *class;                            /* hex digits, prefix of the six-digit class */
        int type;                               /* PciType, -1 not set */
        int numa;                               /* node id, -1 not set. An unknown node cannot be matched */
} Match;

typedef struct Pool {
        char *name;
        ConfigPlace place;  /* place of the pool's first section header */
        ConfigPlace latest; /* place of its latest section header: a later file may continue a pool */
        Match *matches;
        size_t n_matches;
        unsigned virtual_functions;          /* 0: create none */
        bool external;                       /* VirtualFunctions=external: another program creates the VFs */
        ConfigPlace virtual_functions_place; /* place of VirtualFunctions=; line 0 when not set */
        PoolBind bind;
        VfAttributes attributes;  /* VfAttributes=: of the pool's VFs, unless the request sets others */
        VfIdentity identity;      /* VfIdentity= */
        NumaPolicy numa;          /* NumaPolicy=: the stricter one of this policy and the request's applies */
        VfPlacement placement;    /* VfPlacement= */
        PoolScheduler scheduler;  /* Scheduler= */
        bool one_time_use;        /* OneTimeUse=: a released device is quarantined until an admin clears it */
        ResetMethod reset_method; /* ResetMethod=: how a release resets its devices */
        bool allow_no_reset;      /* AllowNoReset=: a device that cannot be reset is offered again without a reset */
        PortType port_types[PORT_TYPES_MAX]; /* PortTypes=: for the mlx4 cards on which the pool creates VFs */
        size_t n_port_types;                 /* 0: not set */
        ConfigPlace port_types_place;
        char *cleaner;   /* CleanerCommand=: a path and arguments, separated by spaces; NULL: none */
        char *vgpu_type; /* VgpuType=: the pool offers vGPUs of this type; NULL: it offers whole devices */
        ConfigPlace vgpu_type_place;
        char **stop_services; /* StopServices=: units to stop, in this order, before the host driver is unbound from a
                                 device */
        size_t n_stop_services;
        ConfidentialMode confidential_mode; /* ConfidentialMode=: required of the pool's GPUs and NVSwitches */
        ConfigPlace confidential_place;
        bool fabric; /* Fabric=: the GPUs that a guest gets from pools with Fabric=yes form an NVLink partition, unless
                        the request has fabric=off */
} Pool;

/* Returns true when the daemon asks NVIDIA's library about the GPUs of the pool. */
static inline bool pool_asks_library(const Pool *pool) {
        return pool->fabric || pool->confidential_mode != CONFIDENTIAL_MODE_OFF;
}

/* The program in the guest that uses the remote GPUs. It decides which variables tell the guest its endpoints. */
typedef enum RemoteKind {
        REMOTE_KIND_CUSTOM, /* only those that Variables= sets (the default) */
        REMOTE_KIND_RCUDA,
        REMOTE_KIND_GVIRTUS,
        REMOTE_KIND_CRICKET,
        REMOTE_KIND_LUPINE,
        _REMOTE_KIND_MAX,
        _REMOTE_KIND_INVALID = -22,
} RemoteKind;
const char *remote_kind_to_string(RemoteKind k);
RemoteKind remote_kind_from_string(const char *s);
/* Returns true when a client of this kind can use several endpoints at once. */
bool remote_kind_spans(RemoteKind k);

/* How the daemon checks whether an endpoint is in service. */
typedef enum RemoteHealth {
        REMOTE_HEALTH_NONE, /* no check: only slots=0 takes an endpoint out of service (the default) */
        REMOTE_HEALTH_TCP,  /* by periodic connects (model/endpoint-status.h) */
        _REMOTE_HEALTH_MAX,
        _REMOTE_HEALTH_INVALID = -22,
} RemoteHealth;
const char *remote_health_to_string(RemoteHealth h);
RemoteHealth remote_health_from_string(const char *s);

typedef struct RemoteEndpoint {
        char name[ENDPOINT_MAX + 1]; /* HOST:PORT, lower case */
        unsigned slots;              /* 0: out of service */
} RemoteEndpoint;

/* A [Service NAME] section: GPUs of other machines, reached over the network. They are counted in slots, and have no
 * PCI function on this node. */
typedef struct RemoteService {
        char *name;
        ConfigPlace place, latest; /* as in Pool */
        RemoteKind kind;
        RemoteHealth health;                            /* Health= */
        RemoteEndpoint endpoints[REMOTE_ENDPOINTS_MAX]; /* an endpoint is in one service only */
        size_t n_endpoints;
        char *via;       /* Via=: an allocation with slots also gets a device of this pool; NULL: none */
        char *variables; /* Variables=: NAME=VALUE words; %h, %p, %n: host, port, slots. NULL: none */
} RemoteService;

/* Returns true for HOST:PORT with a host name or an IPv4 address in lower case and a port from 1 to 65535. */
bool endpoint_is_valid(const char *endpoint);
/* Returns true for words NAME=VALUE, separated by spaces, that are safe in a file of environment variables. */
bool variables_are_valid(const char *variables);

/* A Module= line of [Fabric]. */
typedef struct ConfigModule {
        PciAddress address;
        unsigned module;
} ConfigModule;

typedef struct ConfigProblem {
        char *file;
        unsigned line; /* 0: the file as a whole */
        char *message; /* a sentence */
} ConfigProblem;

/* Formats the problem as "FILE:LINE: MESSAGE", or as "FILE: MESSAGE" if line is 0. Frees the former *ret. Returns 0 or
 * -ENOMEM; the caller frees *ret. */
int config_problem_format(const ConfigProblem *p, char **ret);

typedef struct Config {
        char **files; /* names of the files read so far, in order; if none, all settings are the defaults */
        size_t n_files;
        size_t size;           /* bytes of the text of these files */
        Hypervisor hypervisor; /* Hypervisor=, default kvm */
        char *vfio_driver;     /* VfioDriver=; "vfio-pci" for auto, the default; with Xen always PCIBACK_DRIVER */
        bool variants; /* VfioDriver=auto: a device for which a VFIO variant driver is loaded is bound to it; not with
                          Xen */
        unsigned job_timeout;      /* JobTimeoutSec=, seconds, 1..3600, default 60 */
        unsigned parallel_devices; /* ParallelDevices=, 1..64, default 16 */
        CpuSet housekeeping;       /* HousekeepingCpus=, CPUs never allocated to guests; default none */
        uint64_t reserve_memory; /* ReserveMemory=, bytes kept for the host on every node with memory, default 1 GiB */
        unsigned spare_ports;    /* SparePorts=, empty PCIe ports on each root bus of a guest, 0..8, default 1 */
        IommufdMode iommufd;     /* Iommufd=, default auto */
        unsigned guest_nodes;    /* GuestNodes=, NUMA nodes that the kernels of guests can have, 1..1024, default 16 */
        AfterRelease after_release;
        char *libvirt;             /* Libvirt=: URI of the libvirt to ask for running domains, default
                                      "qemu:///system", for Xen "xen:///system"; NULL: none */
        bool libvirt_given;        /* Libvirt= is set in a file */
        char *shared_memory_group; /* SharedMemoryGroup=, default "kvm": members may open the shared memory of guests */
        char *shared_memory_server; /* SharedMemoryServer=: path of the ivshmem server's socket, %n for the region's
                                       name; NULL: no server */
        char **keep_interfaces;     /* KeepInterfaces=: globs of network interfaces whose devices stay with the host */
        size_t n_keep_interfaces;
        Pool *pools; /* in the order of their first section headers */
        size_t n_pools;
        RemoteService *services; /* in the order of their first section headers. A service and a pool never have the
                                    same name */
        size_t n_services;
        Match *excludes;
        size_t n_excludes;
        char *fabric_manager; /* Manager= of [Fabric]: HOST:PORT or the path of a socket; NULL: none */
        FabricTable fabric;   /* Partitions= and Partition= of [Fabric] */
        ConfigModule modules[FABRIC_MODULE_MAX]; /* Module= of [Fabric]: each address and each module id at most once */
        size_t n_modules;
        /*
         * NULL, or a sentence about a part of the configuration that may exclude devices but could not be read: a
         * broken line of [Exclude], a broken KeepInterfaces= line, a Match= line outside any section or below a header
         * that may be a misspelt [Exclude], another line that may be meant as this header, or an unreadable file. While
         * this is set, no device is offered and no VFs are created; the rest of the configuration applies.
         */
        char *block_reason;
        char *unreadable; /* NULL, or a sentence about the first file that could not be read; block_reason is set too */
        const char *unreadable_remedy; /* remedy for the failure in unreadable, a static sentence */
        ConfigProblem *problems;
        size_t n_problems;
        size_t n_unlisted; /* number of problems that are not in the list; the last problem in it gives this number */
} Config;

/* Returns the driver to which the device is bound for a guest: with VfioDriver=auto the loaded VFIO variant driver for
 * the device if there is one; otherwise Config.vfio_driver. */
const char *config_driver(const Config *config, const Inventory *inv, const PciDevice *dev);

/* Creates a Config with the defaults and without pools. NULL when out of memory. */
Config *config_new(void);
Config *config_free(Config *c);
DEFINE_CLEANUP(Config *, config_free)

/* Adds the text of a file, size bytes without a NUL, to c. A value replaces the value of an earlier line, except in
 * keys of which each line adds to a list: Match=, KeepInterfaces=, Partition=, Module= and Endpoint=. An empty value
 * restores the default, except that an empty Libvirt= means no libvirt. Broken lines, among them lines with a NUL byte,
 * become problems. If all files together would have more than CONFIG_TEXT_MAX bytes, the file counts as unreadable
 * (config_read_failed()). Returns 0 or -ENOMEM. */
int config_read_text(Config *c, const char *file, const char *text, size_t size);
/* Records that an existing file cannot be read: adds a problem, and sets unreadable and block_reason unless they are
 * set. why: the cause; remedy: a static sentence. Returns 0 or -ENOMEM. */
int config_read_failed(Config *c, const char *file, const char *why, const char *remedy);
/* Checks the configuration as a whole, adds the problems, and drops settings that contradict others. With
 * Hypervisor=xen, also sets vfio_driver, variants and the default of Libvirt=. Call it after the last file. Returns 0
 * or -ENOMEM. */
int config_finish(Config *c);
/* Makes a Config from one file, as config_new(), config_read_text() and config_finish() do. Returns 0 or -ENOMEM. */
int config_parse(const char *file, const char *text, size_t size, Config **ret);

/* Adds a problem. line 0: the problem is one of the whole file. When the list is full, only counts the problem. Returns
 * 0 or -ENOMEM. */
int config_add_problem(Config *c, const char *file, unsigned line, const char *format, ...) _printf_(4, 5);

const Pool *config_find_pool(const Config *c, const char *name);
const RemoteService *config_find_service(const Config *c, const char *name);
/* Returns why no request can get a device of the pool in Via= of s, as the end of a sentence; NULL if requests can.
 * While there is a reason, no slot of the service is offered. */
const char *config_via_problem(const Config *c, const RemoteService *s);
/* Returns the number of slots of the endpoint; 0 when no service has the endpoint. */
unsigned config_endpoint_slots(const Config *c, const char *endpoint);
/* Returns the NVLink module id of the GPU: the id in Module=, otherwise the id that NVIDIA's driver reported; 0:
 * unknown. */
unsigned config_module(const Config *c, const PciDevice *gpu);
bool pool_name_is_valid(const char *name);
/* Returns true for a name that StopServices= accepts: the name of a service, socket, timer or path unit on which the
 * daemon itself does not depend. */
bool service_name_is_valid(const char *name);

/* Parses the value of one Match= line, terms separated by spaces. Returns 0, -EINVAL or -ENOMEM. On -EINVAL,
 * *ret_problem is a sentence that the caller frees, and *ret is unchanged, because an incomplete line would match too
 * many devices. *ret_problem must be NULL before. The caller sets ret->place. */
int match_parse(const char *text, Match *ret, char **ret_problem);
void match_done(Match *m);

/* Returns true when the line matches the device. pf= is compared with the address of the VF's PF; no other property of
 * the PF is read. */
bool match_device(const Match *m, const PciDevice *dev);
/* Returns the first of the n lines that matches the device, or NULL. */
const Match *match_any(const Match *matches, size_t n, const PciDevice *dev);
