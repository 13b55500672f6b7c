/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Interface between the files that find holders: the device nodes of a device, and uses by the host without a process.
 */

#include "host/holders.h"

#define HOLDER_NODE_NAME_MAX 64U

/* A part of a device: a VF or a mediated device. */
typedef struct HolderPart {
        size_t device;
        bool is_vf;
        PciAddress vf;
        char uuid[HOLDER_NODE_NAME_MAX]; /* name of the mediated device in sysfs */
} HolderPart;

#define HOLDER_NO_PART SIZE_MAX

typedef struct HolderNode {
        char name[HOLDER_NODE_NAME_MAX]; /* end of the path below some dev/: "vfio/12", "nvidia0", "card1" */
        size_t device;                   /* index in the queries */
        size_t part;                     /* index in HolderNodes.parts; HOLDER_NO_PART: the device itself */
        /* Booleans, but not of type bool: the values come from a socket and may be invalid for bool. */
        uint8_t has_number, is_block;
        uint8_t any_gpu; /* N of /dev/nvidiaN is unknown, so the node stands for all N */
        unsigned major, minor;
} HolderNode;

/* A unit whose processes do not count as users of a device. */
typedef struct HolderIgnored {
        size_t device; /* index in the queries */
        char unit[HOLDER_UNIT_MAX];
} HolderIgnored;

typedef struct HolderNodes {
        HolderNode *nodes;
        size_t n;
        HolderPart *parts;
        size_t n_parts;
        HolderIgnored *ignored;
        size_t n_ignored;
        bool nvidia_was_read, nvidia_is_closed; /* nvidia_is_closed() of host/nvidia.h, called for the first GPU */
} HolderNodes;

void holder_nodes_done(HolderNodes *nodes);

/* Appends the nodes of a device and of its parts. device: index in the queries. Returns 1 when the host uses the device
 * without a process, with text and remedy of *ret set. Otherwise returns 0 or a negative errno. */
int holder_nodes_find(const Sysfs *fs, const HolderQuery *q, size_t device, HolderNodes *nodes, Holder *ret);

/* Fills in text and remedy of *ret for a use by the host without a process. Returns 1. */
int holder_found(Holder *ret, const char *remedy, const char *format, ...) _printf_(3, 4);

/*
 * Finds processes that have one of the nodes open, by the links in PID/fd below proc_fd.
 *
 * by_number: compare device numbers, because proc_fd is the proc of this machine. Otherwise only the text of the links
 * is compared. usec: limit of the CPU time in microseconds, such as HOLDER_LOOK_USEC. The limit of the elapsed time is
 * HOLDER_ANSWER_USEC / HOLDER_LOOK_USEC times as long.
 *
 * Returns as holders_find(), without text and remedy in *ret. *ret_node: index of the node that the process has open.
 */
int holder_search(const Sysfs *fs, int proc_fd, const HolderNodes *nodes, bool by_number, uint64_t usec, Holder *ret,
                  size_t *ret_node);

/* Calls holder_search() for the proc of the root, with HOLDER_LOOK_USEC. */
int holder_search_root(const Sysfs *fs, const HolderNodes *nodes, Holder *ret, size_t *ret_node);

/* Asks passthroughd-holders if holders_use_socket() was called. Otherwise calls holder_search_root(). */
int holder_ask(const Sysfs *fs, const HolderNodes *nodes, Holder *ret, size_t *ret_node);

/* Writes the name of the unit or container in the text of proc/PID/cgroup, such as "nvidia-persistenced.service" or
 * "podman container 0123456789ab", or "". */
void holder_unit(const char *cgroups, char *buf, size_t size);
