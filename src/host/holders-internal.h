/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Types and functions that the files host/holders*.c share. */

#include "host/holders.h"

#define HOLDER_NODE_NAME_MAX 64U

/* A part of a device, which has users of its own: a VF or a mediated device. */
typedef struct HolderPart {
        size_t device; /* index in the queries */
        bool is_vf;
        PciAddress vf;
        char uuid[HOLDER_NODE_NAME_MAX]; /* UUID of a mediated device; "": the part is a VF */
} HolderPart;

#define HOLDER_NO_PART SIZE_MAX

typedef struct HolderNode {
        char name[HOLDER_NODE_NAME_MAX]; /* end of the path: "vfio/12", "nvidia0"; "card1" for dri/card1 */
        size_t device;                   /* index in the queries */
        size_t part;                     /* index in HolderNodes.parts; HOLDER_NO_PART: the device itself */
        /* has_number: major and minor are known. The flags have the type uint8_t and not bool, because they come from
         * a socket, which may send numbers other than 0 and 1. */
        uint8_t has_number, is_block;
        uint8_t any_gpu; /* N of /dev/nvidiaN is unknown: any N counts */
        unsigned major, minor;
} HolderNode;

/* A unit whose processes do not count as holders of a device. */
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
        bool nvidia_was_read, nvidia_is_closed; /* result of nvidia_is_closed(), if nvidia_was_read */
} HolderNodes;

void holder_nodes_done(HolderNodes *nodes);

/* Appends the nodes of a device and of its parts. device: index in the queries; also set in *ret. Returns 1 when the
 * host uses the device without a process, with text and remedy of *ret set. Otherwise returns 0 or a negative errno. */
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
 * Returns as holders_find(), but sets only device, pid, command, unit and others of *ret. *ret_node: index of the node
 * that the process has open, if one is found.
 */
int holder_search(const Sysfs *fs, int proc_fd, const HolderNodes *nodes, bool by_number, uint64_t usec, Holder *ret,
                  size_t *ret_node);

/* Calls holder_search() on proc/ below the root, with HOLDER_LOOK_USEC. */
int holder_search_root(const Sysfs *fs, const HolderNodes *nodes, Holder *ret, size_t *ret_node);

/* Asks passthroughd-holders; without holders_use_socket(), calls holder_search_root() instead. */
int holder_ask(const Sysfs *fs, const HolderNodes *nodes, Holder *ret, size_t *ret_node);

/* Finds the unit or container that `cgroups`, the text of proc/PID/cgroup, names, and writes its name to buf:
 * "nvidia-persistenced.service" or "podman container 0123456789ab". buf is "" if the text names none. */
void holder_unit(const char *cgroups, char *buf, size_t size);
