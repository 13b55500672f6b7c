/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Messages between the daemon (rootservice.c) and passthroughd-root (rootservice-answer.c), and the checks of
 * passthroughd-root. */

#include "host/rootservice.h"
#include "util/log.h"
#include "util/wire.h"

#define ROOT_PAYLOAD_MAX 65536U /* the most bytes after a RootRequest */

/* What a request asks for: the code of its message. */
typedef enum RootAction {
        ROOT_STOP_UNIT,   /* name: the unit */
        ROOT_START_UNIT,  /* name: the unit */
        ROOT_CLEAN,       /* name: the pool; payload: addresses of devices */
        ROOT_SET_OPTIONS, /* payload: the text of the options */
        ROOT_REMOVE_OPTIONS,
        ROOT_PLUG,       /* name: the domain's UUID; payload: PlugPayload */
        ROOT_ACTIVATE,   /* payload: id of an NVLink partition */
        ROOT_DEACTIVATE, /* payload: id of an NVLink partition */
        ROOT_FOLLOW,     /* payload: PartitionsPayload */
        ROOT_MODULE,     /* payload: address of a GPU */
        ROOT_XEN_GUESTS,
        ROOT_PERSISTENCE,     /* payload: addresses of GPUs */
        ROOT_SET_PERSISTENCE, /* payload: address of a GPU */
        ROOT_CHECK_GPUS,      /* payload: addresses of GPUs */
} RootAction;

/* The payload of ROOT_PLUG. */
typedef struct PlugPayload {
        uint32_t action, timeout_sec;
        char hostdev[PLUG_HOSTDEV_MAX + 1];
} PlugPayload;

/* The payload of ROOT_FOLLOW. */
typedef struct PartitionsPayload {
        uint64_t active; /* bit i: the partition ids[i] is active, because an allocation has it */
        uint32_t n;
        unsigned ids[FABRIC_PARTITIONS_MAX];
} PartitionsPayload;

/* Head of a request. The payload follows in the message. */
typedef struct RootRequest {
        char name[UNIT_NAME_MAX + 1];
        uint64_t end; /* the deadline: CLOCK_MONOTONIC, microseconds */
} RootRequest;

/* An answer. The code of its message is the result. The text of ROOT_PLUG, or the array of XenGuestDevice of
 * ROOT_XEN_GUESTS, follows in the message. */
typedef struct RootAnswer {
        int32_t status; /* of ROOT_CLEAN: the exit status; of ROOT_PLUG: a PlugResult */
        bool asked;     /* of ROOT_START_UNIT */
        FabricReport fabric;
        int32_t gpus[ROOT_GPUS_MAX]; /* result of each GPU, by its index in the request */
} RootAnswer;

_Static_assert(ROOT_DEVICES_MAX * sizeof(PciAddress) <= ROOT_PAYLOAD_MAX, "a message holds the addresses");
_Static_assert(sizeof(PlugPayload) <= ROOT_PAYLOAD_MAX, "a message holds the <hostdev>");
_Static_assert(XEN_GUEST_DEVICES_MAX * sizeof(XenGuestDevice) <= PLUG_DOCUMENT_MAX, "an answer holds the devices");

/* Logs why a request is refused, and has the value -EPERM. */
#define log_denied(...) (log_warning("Refused: " __VA_ARGS__), -EPERM)

/*
 * The checks of passthroughd-root, which does not trust the daemon. They return 0, -EPERM, which is logged, or another
 * negative errno.
 */

/* Checks that only root can change the files that the pool's command names, and the interpreters of scripts among them.
 * Returns -ENOENT if there is no such command. */
int root_check_command(const Pool *pool);
/* Makes the checks of root_check_command(), too. Each device must exist, be in the pool, and by the ledger be returning
 * to the host. All files of the ledger must be readable. No other allocation may have the device, its PF or GPU, or one
 * of its VFs or slots. */
int root_check_clean(const RootHost *h, const Pool *pool, const PciAddress *devices, size_t n);
/* PLUG_DESCRIBE is always allowed. By the ledger, the device of the <hostdev> must be attaching or, for a detach,
 * attaching or detaching. For an attach, the device must exist, must be in a pool unless it is a companion, and no
 * other allocation may have it; all files of the ledger must be readable. */
int root_check_plug(const RootHost *h, PlugAction action, const char *hostdev);
/* Each line must be a comment, or have the options for a pool. */
int root_check_options(const Config *c, const char *text);
/* The partitions must be in the configuration. Those whose bit in p->active is set must be in an allocation. */
int root_check_partitions(const RootHost *h, const PartitionsPayload *p);
/* Each GPU must exist and be in a pool: for ROOT_MODULE in one with Fabric=yes or ConfidentialMode=. For the other
 * actions the GPU must be on NVIDIA's driver, and except for ROOT_PERSISTENCE be returning to the host, as for
 * root_check_clean(). Sets the result of each GPU. Returns 0 if at least one GPU passes, otherwise the result of the
 * first GPU, or the error of reading the devices. */
int root_check_gpus(const RootHost *h, RootAction action, const PciAddress *gpus, size_t n, int32_t *results);
