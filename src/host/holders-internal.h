/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Which device nodes stand for a device, and what the host has made of it without any process. */

#include "host/holders.h"

#define HOLDER_NODE_NAME_MAX 64U

/* A VF of a device, or a mediated device. */
typedef struct HolderPart {
        size_t device;
        bool is_vf;
        PciAddress vf;
        char uuid[HOLDER_NODE_NAME_MAX]; /* of a mediated device, its name in sysfs */
} HolderPart;

#define HOLDER_NO_PART SIZE_MAX

typedef struct HolderNode {
        char name[HOLDER_NODE_NAME_MAX]; /* how its path ends, below some dev/: "vfio/12", "nvidia0", "card1" */
        size_t device;                   /* the how many-th of those that are asked about */
        size_t part;                     /* of it, in HolderNodes.parts; HOLDER_NO_PART: the device itself */
        bool has_number, is_block;
        bool any_gpu; /* nobody can tell which of the /dev/nvidiaN it is: all are meant */
        unsigned major, minor;
} HolderNode;

typedef struct HolderNodes {
        HolderNode *nodes;
        size_t n;
        HolderPart *parts;
        size_t n_parts;
} HolderNodes;

void holder_nodes_done(HolderNodes *nodes);

/* Appends those of a device and its parts. 1: the host uses it all the same, and *ret has text and remedy. 0, or
 * negative errno. */
int holder_nodes_find(const Sysfs *fs, const HolderQuery *q, size_t device, HolderNodes *nodes, Holder *ret);

/* The host uses the device without a process: fills in text and remedy of *ret and returns 1. */
int holder_found(Holder *ret, const char *remedy, const char *format, ...) _printf_(3, 4);

/* The same for the interfaces of the device, names in net_fd, which is its directory net. 0: none is in use. */
int holder_interfaces_find(const Sysfs *fs, bool is_vf, int net_fd, char **names, size_t n, Holder *ret);

/*
 * Processes with one of the nodes open, by the links in proc_fd's PID/fd. queries (NULL: none ignores any unit): what
 * the nodes' device counts in. by_number: proc_fd is the proc of this very
 * machine, where a node is known by its number whatever its name; else links are only text. As holders_find(), but with
 * text and remedy left alone, and the node that the process was found by; -ETIMEDOUT when it is not done in usec
 * microseconds.
 */
int holder_search(int proc_fd, const HolderNodes *nodes, const HolderQuery *queries, bool by_number, uint64_t usec,
                  Holder *ret, const HolderNode **ret_node);

/* "nvidia-persistenced.service", "podman container 0123456789ab" of what proc/PID/cgroup says; "" when nothing. */
void holder_unit(const char *cgroups, char *buf, size_t size);
