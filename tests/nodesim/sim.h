/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The simulated node: its tree, and the state of its kernel that no file shows. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "node.h"

typedef struct DriverId {
        char *vendor; /* four hex digits */
        char *device; /* four hex digits, or "*" */
} DriverId;

typedef struct Driver {
        char *name;
        DriverId *ids; /* the driver's own table */
        size_t n_ids;
        DriverId *new_ids; /* added by new_id */
        size_t n_new_ids;
        char *class_prefix;    /* prefix of the class it matches; NULL: any class */
        bool sriov;            /* has sriov_configure */
        bool keeps_vfs;        /* the VFs stay when the PF is unbound */
        unsigned long max_vfs; /* the driver's limit; 0: the device's */
        bool vfio;
        bool any;      /* by override only, like VFIO, but without VFIO's files */
        bool pciback;  /* by override, which adds a slot, or by a slot of its list */
        bool declared; /* by %driver, else learned from the tree */
        bool serial;   /* its unbinds wait for each other, as with NVIDIA's driver */
} Driver;

/* The attributes of VFs that a PF's driver supports. */
typedef enum VfKind {
        VF_KIND_NONE,
        VF_KIND_ETHERNET,   /* mlx5 */
        VF_KIND_ICE,        /* as ETHERNET, with 802.1ad */
        VF_KIND_IGB,        /* without link state and minimum rate */
        VF_KIND_MLX4_EN,    /* without trust */
        VF_KIND_INFINIBAND, /* mlx5, through IPoIB */
        VF_KIND_OFED,       /* mlx5 with the sriov directory */
        VF_KIND_MLX4,       /* InfiniBand, with the iov directory */
        _VF_KIND_MAX,
} VfKind;

/* The files of VFs of a PF. */
typedef struct VfTemplate {
        char *pf;
        char *device;       /* four hex digits */
        char *reset_method; /* NULL: flr */
        unsigned long offset, stride;
        unsigned long created; /* number of VFs at the start */
        unsigned long total;   /* sriov_totalvfs without a driver's limit; 0: the tree's */
        bool group_of_pf;
        VfKind kind;
} VfTemplate;

/* A node outside of the tree that may return: a removed device, or a driver's file. */
typedef struct Parked {
        Node *node;
        Node *parent;    /* referenced */
        Node *device;    /* referenced; NULL: node is a removed device */
        char *driver;    /* the driver with which the node returns */
        uint64_t serial; /* serial of the youngest node at that time */
} Parked;

typedef struct LoggedWrite LoggedWrite;
typedef struct Fault Fault;
typedef struct HeldLock HeldLock;

typedef struct Sim {
        pthread_mutex_t lock; /* protects everything below */
        Node *root;
        Node *control; /* .nodesim, a child of the root */
        bool no_iommu;

        Driver **drivers; /* in the order of probes */
        size_t n_drivers;
        VfTemplate *vfs;
        size_t n_vfs;
        Parked *parked;
        size_t n_parked;

        LoggedWrite **log; /* writes since the last reset, in the order of their arrival */
        size_t n_log;
        Fault *faults;
        size_t n_faults;
        HeldLock *locks; /* locks of the kernel that writes hold */
        size_t n_locks;
        unsigned jitter_seed, jitter_msec; /* each write is delayed by up to jitter_msec, the same for each file; events
                                              of different devices are mixed */
        const char *jitter;                /* NODE_JITTER=SEED for the whole run, or NULL */
        unsigned long releases;            /* count of the command release, for which hung writes wait */
        FILE *log_file;
        struct UEvents *uevents; /* NULL: no events */
        struct fuse_session *session;
} Sim;

/* Frees the members of a simulated node. */
void sim_done(Sim *sim);
