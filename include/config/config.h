/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Configuration: INI text to a Config. Pure: host/configfiles.h reads the files, this reads their text, one after the
 * other into one Config. One broken line never hides the rest: each gives a ConfigProblem (file, line, sentence) and is
 * ignored. passthroughd.conf(5) documents the keys.
 */

#include "model/cpuset.h"
#include "model/inventory.h"
#include "model/numapolicy.h"
#include "model/vfattr.h"

#define CONFIG_TEXT_MAX       (1024U * 1024U) /* bytes of all files */
#define CONFIG_LINE_MAX       198U            /* bytes: libinih reads into 200; comments may be longer */
#define CONFIG_POOLS_MAX      64U
#define CONFIG_MATCHES_MAX    256U /* Match= lines of a pool, or of [Exclude] */
#define CONFIG_PROBLEMS_MAX   256U
#define CONFIG_INTERFACES_MAX 256U /* of KeepInterfaces= */
#define CONFIG_SPARE_MAX      8U
#define CONFIG_SERVICES_MAX   16U /* of StopServices= of a pool */
#define CLEANER_WORDS_MAX     16U
#define UNIT_NAME_MAX         255U
#define POOL_NAME_MAX         63U /* [a-z0-9][a-z0-9-]* */

typedef enum AfterRelease {
        AFTER_RELEASE_RESTORE, /* driver and override as they were before the allocation (the default) */
        AFTER_RELEASE_KEEP,    /* stays on the VFIO driver */
        _AFTER_RELEASE_MAX,
        _AFTER_RELEASE_INVALID = -22,
} AfterRelease;
const char *after_release_to_string(AfterRelease a);
AfterRelease after_release_from_string(const char *s);

typedef enum PoolBind {
        POOL_BIND_ALLOCATE, /* taken from the host's driver when allocated (the default) */
        POOL_BIND_START,    /* on the VFIO driver from start */
        _POOL_BIND_MAX,
        _POOL_BIND_INVALID = -22,
} PoolBind;
const char *pool_bind_to_string(PoolBind b);
PoolBind pool_bind_from_string(const char *s);

/* Where the MAC or the GUIDs of a VF come from that nobody named. */
typedef enum VfIdentity {
        VF_IDENTITY_FRESH,  /* others for each allocation (the default) */
        VF_IDENTITY_STABLE, /* always the same for this VF of this PF of this node */
        _VF_IDENTITY_MAX,
        _VF_IDENTITY_INVALID = -22,
} VfIdentity;
const char *vf_identity_to_string(VfIdentity i);
VfIdentity vf_identity_from_string(const char *s);

/* Which PFs the VFs of a pool are taken from, where nothing that counts more decides. */
typedef enum VfPlacement {
        VF_PLACEMENT_SPREAD, /* those with the fewest in use (the default) */
        VF_PLACEMENT_PACK,   /* those with the fewest left over */
        _VF_PLACEMENT_MAX,
        _VF_PLACEMENT_INVALID = -22,
} VfPlacement;
const char *vf_placement_to_string(VfPlacement p);
VfPlacement vf_placement_from_string(const char *s);

/* What a port of an mlx4 card speaks; the numbers are those of mlx4_core's port_type_array. */
typedef enum PortType {
        PORT_TYPE_AUTO, /* as its firmware says */
        PORT_TYPE_IB,
        PORT_TYPE_ETH,
        _PORT_TYPE_MAX,
        _PORT_TYPE_INVALID = -22,
} PortType;
const char *port_type_to_string(PortType t);
PortType port_type_from_string(const char *s);
#define PORT_TYPES_MAX 2U /* ports of a card */

typedef struct ConfigPlace {
        const char *file; /* of Config.files */
        unsigned line;
} ConfigPlace;

/* One Match= line: all terms that are set must hold. */
typedef struct Match {
        ConfigPlace place;
        char *address;                          /* glob over DDDD:BB:SS.F; NULL: not set, as below */
        char *pf;                               /* glob over the address of a VF's PF; holds for VFs only */
        int vendor, device;                     /* -1 not set; id= sets both */
        int subsystem_vendor, subsystem_device; /* -1 not set */
        char *class;                            /* hex digits, prefix of the six-digit class */
        int type;                               /* PciType, -1 not set */
        int numa;                               /* node id, -1 not set: there is no matching for "unknown" */
} Match;

typedef struct Pool {
        char *name;
        ConfigPlace place;  /* of the first section header */
        ConfigPlace latest; /* of the last one: files may add to a pool of the files before */
        Match *matches;
        size_t n_matches;
        unsigned virtual_functions;          /* 0: create none */
        bool external;                       /* VirtualFunctions=external: somebody else makes them */
        ConfigPlace virtual_functions_place; /* of VirtualFunctions=, line 0 when it is not set */
        PoolBind bind;
        VfAttributes attributes; /* VfAttributes=: what its VFs have unless a request says otherwise */
        VfIdentity identity;     /* VfIdentity= */
        NumaPolicy numa;         /* NumaPolicy=: with that of the request, the stricter counts */
        VfPlacement placement;   /* VfPlacement= */
        bool one_time_use;       /* OneTimeUse=: an admin looks at each device before it is given away again */
        PortType port_types[PORT_TYPES_MAX]; /* PortTypes=: of mlx4 cards whose VFs it wants */
        size_t n_port_types;                 /* 0: not set */
        ConfigPlace port_types_place;
        char *cleaner;        /* CleanerCommand=: a path and arguments, separated by spaces; NULL none */
        char **stop_services; /* StopServices=: units that are stopped, in this order, while a device is taken from
                                 the host */
        size_t n_stop_services;
} Pool;

typedef struct ConfigProblem {
        char *file;
        unsigned line; /* 0: the file as a whole */
        char *message; /* a sentence */
} ConfigProblem;

/* "FILE:LINE: MESSAGE". 0 or -ENOMEM; the caller frees. */
int config_problem_format(const ConfigProblem *p, char **ret);

typedef struct Config {
        char **files; /* those that were read, in this order; none: the defaults */
        size_t n_files;
        size_t size;             /* of their text */
        char *vfio_driver;       /* VfioDriver=, "vfio-pci" */
        bool variants;           /* it is auto: devices that have a driver of their own get that */
        unsigned job_timeout;    /* JobTimeoutSec=, seconds, 1..3600, 60 */
        CpuSet housekeeping;     /* HousekeepingCpus=, never given to guests, empty */
        uint64_t reserve_memory; /* ReserveMemory=, bytes kept for the host on every node with memory, 1 GiB */
        unsigned spare_ports;    /* SparePorts=, empty PCIe ports on each root bus of a guest, 0..8, 1 */
        AfterRelease after_release;
        char *shared_memory_group;  /* SharedMemoryGroup=, "kvm": whose members may open what guests share */
        char *shared_memory_server; /* SharedMemoryServer=: path of its socket, %n for the name; NULL: none */
        char **keep_interfaces;     /* KeepInterfaces=: globs of names of interfaces whose devices stay with the host */
        size_t n_keep_interfaces;
        Pool *pools; /* in the order of their first sections */
        size_t n_pools;
        Match *excludes;
        size_t n_excludes;
        /*
         * NULL, or a sentence with FILE:LINE: what that line was to keep from guests is not known, because it is a
         * broken line of [Exclude] or a section header (or what may be one) that may have meant [Exclude], or because a
         * file could not be read. Then nothing is on offer, no VFs are created, until that is mended. Everything else
         * stays as it was read.
         */
        char *held_back;
        char *unreadable; /* NULL, or the first file that could not be read and why, a sentence; held_back is set too */
        ConfigProblem *problems;
        size_t n_problems;
} Config;

/* Defaults only, no pools. */
Config *config_new(void);
Config *config_free(Config *c);
DEFINE_CLEANUP(Config *, config_free)

/*
 * Reads text, size bytes that need no NUL after them, named file, on top of what was read before: scalars replace,
 * Match= lines add up, an empty value brings back the default. Broken lines, one with a NUL byte among them, become
 * problems. Fails only for want of memory.
 */
int config_read_text(Config *c, const char *file, const char *text, size_t size);
/* The same for a file that is there, but why it cannot be read is all that is known. */
int config_read_failed(Config *c, const char *file, const char *why);
/* After the last file: what only shows when all are read. */
int config_finish(Config *c);
/* All of it for a configuration of one file. */
int config_parse(const char *file, const char *text, size_t size, Config **ret);

/* line 0: the file as a whole. */
int config_add_problem(Config *c, const char *file, unsigned line, const char *format, ...) _printf_(4, 5);

const Pool *config_find_pool(const Config *c, const char *name);
bool pool_name_is_valid(const char *name);
/* A unit that may be stopped: a service, socket, timer or path, none that the daemon itself cannot be without. */
bool service_name_is_valid(const char *name);

/*
 * The value of one Match= line, terms separated by spaces. On -EINVAL *ret_problem, NULL before, is a sentence that the
 * caller frees and *ret is untouched: half a line would match more than was meant. ret->place is left to the caller.
 */
int match_parse(const char *text, Match *ret, char **ret_problem);
void match_done(Match *m);

/* Does the line match the device? The PF of a VF is not consulted except by its address. */
bool match_device(const Match *m, const PciDevice *dev);
/* The first matching line or NULL. */
const Match *match_any(const Match *matches, size_t n, const PciDevice *dev);
