/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the users of a device (holders). When a process has a device open, unbinding the device blocks in the kernel
 * until the process closes it (vfio_unregister_group_dev()), or breaks both driver and process
 * (NVIDIA/open-gpu-kernel-modules issue 1374). So the daemon searches for holders before it unbinds a device.
 *
 * The parts of a device are the VFs of a PF, and mediated devices. The kernel destroys them when the device is unbound,
 * and a reset of a PF resets its VFs. So use of a part counts as use of the device, whichever program created the part
 * and whichever driver it has.
 *
 * A search reads names in sysfs and the links in /proc/PID/fd of all processes, in all mount namespaces. It opens no
 * device and waits for none. It cannot see three kinds of use: device memory that a process has mapped and then closed,
 * because reading the mappings would wait for a process that hangs; descriptors in transit through a socket; and
 * descriptors of a process that is about to end. For GPUs of NVIDIA's driver, reference counts of the kernel are read
 * first (nvidia_is_closed()). They cover these three kinds of use, too. While they show no use, the driver's nodes are
 * not searched for. If no other node is left, the search is skipped, which saves time on a machine with many open
 * files.
 *
 * Reading the links takes CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, with which a process can take over any other. So only
 * a separate service, passthroughd-holders, has them. It answers one question: which process has one of these device
 * nodes open? The daemon, and each child process of a job or probe, connects to its socket for each question, sends the
 * nodes and waits for the answer. The service has several processes, each of which answers one question after the
 * other.
 */

#include "model/pciaddr.h"
#include "util/sysfs.h"

/* A device whose holders are searched for. */
typedef struct HolderQuery {
        PciAddress address;
        int group;          /* IOMMU group; -1: none */
        const char *driver; /* the host driver to unbind from; NULL: the device has a VFIO driver or none */
        bool is_vf;
        uint32_t nvidia_minor; /* the N of /dev/nvidiaN when the device is bound to NVIDIA's driver (host/nvidia.h) */
        bool only_parts;       /* only the parts that a process holds count, not the device itself */
        bool is_locked;        /* no process has the device itself open, and none can open it (host/nvidia.h) */
        const char *mdev;      /* with only_parts: UUID of the only part that counts, a mediated device; NULL: all */
        char *const *ignored;  /* names of units whose processes do not count */
        size_t n_ignored;
} HolderQuery;

/*
 * A search blocks the daemon, and a user may have very many files open. So a search has two limits: of CPU time, and of
 * elapsed time when other programs use the CPUs.
 */
#define HOLDER_LOOK_USEC   (2U * 1000U * 1000U)
#define HOLDER_ANSWER_USEC (4U * HOLDER_LOOK_USEC)

/* The socket of the service. */
#define HOLDERS_SOCKET "/run/passthroughd-holders"

/*
 * From now on, holders_find() in this process and its children asks the service at this socket. NULL, the initial
 * value: the process itself searches. path is borrowed.
 */
void holders_use_socket(const char *path);
/* Lets holders_find() wait longer for passthroughd-holders; for processes without an event loop. */
void holders_may_block(void);

/* For passthroughd-holders: answers the question that a client sends on the connection fd. Returns 0 or a negative
 * errno. */
int holders_answer(const Sysfs *fs, int fd);

#define HOLDER_UNIT_MAX    280
#define HOLDER_TEXT_MAX    512
#define HOLDER_SUBJECT_MAX 128

/* Writes to buf the name of the unit or container of a process of this machine; "" when the process has none or has
 * ended. A longer name is cut off. HOLDER_UNIT_MAX bytes have room for all but the longest names of units of users. */
void holder_unit_of_process(int pid, char *buf, size_t size);

typedef struct Holder {
        size_t device; /* index in the queries */
        int pid; /* 0: a guest of Xen has the device, or the host uses it without a process, for example as a network
                    interface or disk */
        bool has_vf; /* the process, or guest of Xen, holds vf, a VF of the device */
        PciAddress vf;
        char command[64];           /* proc/PID/comm, safe to print */
        char unit[HOLDER_UNIT_MAX]; /* "nvidia-persistenced.service", "docker container 0123456789ab"; "" unknown */
        unsigned others;            /* number of further processes that use the device */
        bool by_guest;              /* a guest of Xen has the device, or may have it; pid is 0 */
        char subject[HOLDER_SUBJECT_MAX]; /* the text before "is in use by": "0000:12:10.0, a VF of 0000:12:00.0," */
        /* The text after "is in use by": "process 812 (nvidia-persiste, nvidia-persistenced.service) and 2 others". */
        char text[HOLDER_TEXT_MAX];
        char remedy[HOLDER_TEXT_MAX]; /* what the caller can do, a sentence */
} Holder;

/*
 * Searches for a holder of any of the devices, in one pass over all processes. Returns 1 and *ret for the first holder,
 * 0 when no device is in use, or a negative errno when a process cannot be inspected; -ETIMEDOUT when the search takes
 * longer than HOLDER_LOOK_USEC or HOLDER_ANSWER_USEC; -E2BIG when sysfs has too many entries below a device, or the
 * devices have too many nodes; -EHOSTDOWN when passthroughd-holders does not answer. A question without an answer waits
 * a second longer than a search may take, or more after holders_may_block(); until the service answers it, further
 * questions of the process fail at once.
 *
 * A device with a VFIO driver is in use when a process has dev/vfio/GROUP open or, as guests with iommufd do,
 * dev/vfio/devices/vfioX.
 *
 * A device with a host driver is in use when
 * - a process has one of its device nodes open. sysfs lists them below the device: DRM, RDMA, NVMe, disks, sound, USB
 *   and others. Nodes outside of sysfs are /dev/nvidiaN (any of them when N is unknown), and /dev/kfd for each device
 *   of amdgpu;
 * - its network interface is up, is a port of a bond or bridge, has a VLAN on top, or is in another network namespace.
 *   An interface of a VF that is merely up is in use only if it has an address too: network managers bring up any
 *   interface. An address counts when it has a route in the main table, or is an IPv6 address of more than link-local
 *   scope;
 * - device mapper, md or the like is stacked on one of its disks. host/critical.h covers mounted disks.
 *
 * Unless only_parts is set, any device that has parts is in use, even if no process holds a part.
 *
 * Under Xen no process of dom0 has the device of a guest open. There a device is in use when xenstore says that a guest
 * has it. While xenstore does not answer and a guest has PCI devices, each device that is bound to pciback is in use.
 */
int holders_find(const Sysfs *fs, const HolderQuery *queries, size_t n, Holder *ret);
