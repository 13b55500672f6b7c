/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who has a device in use. Unbinding a device that a process has open sleeps in the kernel until the process closes it,
 * or leaves both driver and process broken (domain.md B14, B16), so this is looked at before anything is unbound.
 *
 * A device has parts: the VFs of a PF, and mediated devices. The kernel destroys them when the driver of the device is
 * unbound (C10), and a reset of a PF resets its VFs. A part counts as the device, whoever made it and whatever driver
 * it is on.
 *
 * A look reads names in sysfs and the links in /proc/PID/fd of all processes, in all mount namespaces: it opens no
 * device, and waits for none. What is not seen: memory of a device that is mapped by a process that closed it, for the
 * list of mappings waits for a process that hangs; descriptors on their way in a socket.
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

typedef struct HolderQuery {
        PciAddress address;
        int group;          /* -1: the device has none */
        const char *driver; /* the host's, from which it will be unbound; NULL: it is on a VFIO driver, or on none */
        bool is_vf;
        uint32_t nvidia_minor; /* on NVIDIA's driver: host/nvidia.h */
        bool only_parts;       /* only parts that a process holds count, not the device itself */
        char *const *ignored;  /* processes of these units do not count */
        size_t n_ignored;
} HolderQuery;

/* Anybody may have very many files open: a look ends after so long, for the daemon does nothing else meanwhile. */
#define HOLDER_LOOK_USEC (2U * 1000U * 1000U)

#define HOLDER_UNIT_MAX    280
#define HOLDER_TEXT_MAX    512
#define HOLDER_SUBJECT_MAX 128

typedef struct Holder {
        size_t device; /* the how many-th of those that were asked about */
        int pid;       /* 0: no process, but what the host has made of it */
        bool has_vf;   /* the process holds vf, a VF of the device */
        PciAddress vf;
        char command[64];           /* proc/PID/comm, fit for a sentence */
        char unit[HOLDER_UNIT_MAX]; /* "nvidia-persistenced.service", "docker container 0123456789ab"; "" unknown */
        unsigned others;            /* processes that have it in use as well */
        char subject[HOLDER_SUBJECT_MAX]; /* before "is in use by": "0000:12:10.0, a VF of 0000:12:00.0," */
        /* After it: "process 812 (nvidia-persiste, nvidia-persistenced.service) and 2 others". */
        char text[HOLDER_TEXT_MAX];
        char remedy[HOLDER_TEXT_MAX]; /* a sentence */
} Holder;

/*
 * Looks for whoever uses one of the devices, at the cost of one look at all processes: 1 and *ret, 0 when nobody does.
 * Negative errno when it cannot be told: a process may not be looked at, -ETIMEDOUT: too many files are open on the
 * node, -E2BIG: there is too much in sysfs below one of the devices.
 *
 * On a VFIO driver: a process that has dev/vfio/GROUP open or, as guests with iommufd do, dev/vfio/devices/vfioX.
 * On a driver of the host:
 * - a process that has one of its device nodes open, as sysfs lists them below the device: DRM, RDMA, NVMe, disks,
 *   sound, USB, ...; besides /dev/nvidiaN, any where the number is unknown, and /dev/kfd for each device of amdgpu;
 * - a network interface that is up, part of a bond or bridge, below a VLAN, or in another network namespace. One of a
 *   VF that is merely up is not used: network managers bring up whatever they see. It is with an address: one that gave
 *   a route in the main table, or of IPv6 and more than link-local;
 * - device mapper, md or the like on one of its disks. Mounted ones are for host/critical.h.
 * On any driver, or none, unless only_parts: a part, also when no process holds it.
 */
int holders_find(const Sysfs *fs, const HolderQuery *queries, size_t n, Holder *ret);
