/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The simulated node: its tree, and what its kernel knows that no file shows. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "node.h"

typedef struct DriverId {
        char *vendor; /* four hex digits */
        char *device; /* the same, or "*" */
} DriverId;

typedef struct Driver {
        char *name;
        DriverId *ids; /* what it matches by itself */
        size_t n_ids;
        DriverId *new_ids; /* added through new_id */
        size_t n_new_ids;
        char *class_prefix;    /* NULL: any class */
        bool sriov;            /* implements sriov_configure */
        bool keeps_vfs;        /* they outlive its binding */
        unsigned long max_vfs; /* it allows no more; 0: as many as the device has */
        bool vfio;
        bool any;      /* by override only, like vfio, but makes nothing */
        bool pciback;  /* by override or by a slot of its list, to which it adds what it binds */
        bool declared; /* by %driver, else inferred from the tree */
        bool serial;   /* its unbinds wait for each other, as those of NVIDIA's driver do */
} Driver;

/* What a PF can be told of its VFs, by the driver that is behind it. */
typedef enum VfKind {
        VF_KIND_NONE,
        VF_KIND_ETHERNET,   /* mlx5 */
        VF_KIND_ICE,        /* the same, with 802.1ad */
        VF_KIND_IGB,        /* no link state, no least rate */
        VF_KIND_MLX4_EN,    /* no trust */
        VF_KIND_INFINIBAND, /* mlx5, through IPoIB */
        VF_KIND_OFED,       /* mlx5 with the sriov directory */
        VF_KIND_MLX4,       /* InfiniBand, iov */
        _VF_KIND_MAX,
} VfKind;

/* What VFs of a PF look like. */
typedef struct VfTemplate {
        char *pf;
        char *device;       /* four hex digits */
        char *reset_method; /* NULL: flr */
        unsigned long offset, stride;
        unsigned long created; /* so many are there from the start */
        unsigned long total;   /* what sriov_totalvfs is when no driver limits it; 0: as the tree says */
        bool group_of_pf;
        VfKind kind;
} VfTemplate;

/* Something that is out of the tree for now and comes back: a removed device, or what a driver made. */
typedef struct Parked {
        Node *node;
        Node *parent;    /* referenced */
        Node *device;    /* referenced; NULL: node is a removed device */
        char *driver;    /* who makes it appear again */
        uint64_t serial; /* of the youngest node then */
} Parked;

typedef struct LoggedWrite LoggedWrite;
typedef struct Fault Fault;
typedef struct HeldLock HeldLock;

typedef struct Sim {
        pthread_mutex_t lock; /* around everything below */
        Node *root;
        Node *control; /* .nodesim, a child of the root */
        bool no_iommu;

        Driver **drivers; /* in the order in which they are asked */
        size_t n_drivers;
        VfTemplate *vfs;
        size_t n_vfs;
        Parked *parked;
        size_t n_parked;

        LoggedWrite **log; /* writes since the last reset, in order of arrival */
        size_t n_log;
        Fault *faults;
        size_t n_faults;
        HeldLock *locks; /* of the kernel, that writes hold */
        size_t n_locks;
        unsigned jitter_seed, jitter_msec; /* each write waits for up to so long, always the same for its file, and
                                              the events of several devices come in another order */
        const char *jitter;                /* NODE_JITTER=SEED: at all times; else NULL */
        unsigned long releases;            /* counts the command, hung writes wait for it to change */
        FILE *log_file;
        struct UEvents *uevents; /* NULL: changes are told to nobody */
        struct fuse_session *session;
} Sim;

/* Frees all that a simulated node has. */
void sim_done(Sim *sim);
