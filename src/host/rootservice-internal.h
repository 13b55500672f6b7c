/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The messages between the daemon, rootservice.c, and passthroughd-root, rootservice-answer.c. */

#include "host/rootservice.h"
#include "util/log.h"
#include "util/wire.h"

#define ROOT_PAYLOAD_MAX 65536U /* bytes of a request */

/* The code of a request. */
typedef enum RootAction {
        ROOT_STOP_UNIT,   /* name: of the unit */
        ROOT_START_UNIT,  /* name: of the unit */
        ROOT_CLEAN,       /* name: of the pool; payload: the addresses of the devices */
        ROOT_SET_OPTIONS, /* payload: the text */
        ROOT_REMOVE_OPTIONS,
        ROOT_PLUG,       /* name: the UUID of the domain; payload: the action, the seconds, the <hostdev> */
        ROOT_ACTIVATE,   /* payload: the id of an NVLink partition */
        ROOT_DEACTIVATE, /* payload: the same */
        ROOT_FOLLOW,     /* payload: partitions */
        ROOT_MODULE,     /* payload: the address of a GPU */
        ROOT_XEN_GUESTS,
        ROOT_PERSISTENCE,     /* payload: the addresses of GPUs */
        ROOT_SET_PERSISTENCE, /* payload: the address of a GPU */
        ROOT_CHECK_GPUS,      /* payload: the addresses of GPUs */
} RootAction;

/* The payload of ROOT_PLUG. */
typedef struct PlugPayload {
        uint32_t action, timeout_sec;
        char hostdev[PLUG_HOSTDEV_MAX + 1];
} PlugPayload;

/* The payload of ROOT_FOLLOW. */
typedef struct PartitionsPayload {
        uint64_t active; /* bit i: the i-th is active, so an allocation has it */
        uint32_t n;
        unsigned ids[FABRIC_PARTITIONS_MAX];
} PartitionsPayload;

/* The payload follows in the same message. */
typedef struct RootRequest {
        char name[UNIT_NAME_MAX + 1];
        uint64_t end;
} RootRequest;

/* The code of its message is the result. What follows it: for ROOT_PLUG the text, for ROOT_XEN_GUESTS an array of
 * XenGuestDevice. */
typedef struct RootAnswer {
        int32_t status;
        bool asked;
        FabricReport fabric;
        int32_t gpus[ROOT_GPUS_MAX]; /* the results of a question about GPUs */
} RootAnswer;

_Static_assert(ROOT_DEVICES_MAX * sizeof(PciAddress) <= ROOT_PAYLOAD_MAX, "a message holds the addresses");
_Static_assert(sizeof(PlugPayload) <= ROOT_PAYLOAD_MAX, "a message holds the <hostdev>");
_Static_assert(XEN_GUEST_DEVICES_MAX * sizeof(XenGuestDevice) <= PLUG_DOCUMENT_MAX, "an answer holds the devices");

/* Logs why a request is refused. */
#define log_denied(...) (log_warning("Refused: " __VA_ARGS__), -EPERM)

/*
 * Checks of passthroughd-root, which does not trust the daemon's word: 0, or -EPERM, which is logged. Otherwise a
 * negative errno.
 */

/* Only root can change the files that the command of the pool names, and the interpreters of those that are scripts.
 * -ENOENT: there is no such command. */
int root_check_command(const Pool *pool);
/* As root_check_command(). Each device exists, is in the pool, and is on its way back to the host by the ledger, all of
 * whose files can be read; no other allocation has it. */
int root_check_clean(const RootHost *h, const Pool *pool, const PciAddress *devices, size_t n);
/* The device of the <hostdev> is being attached or detached by the ledger. One to attach exists and is offered, and no
 * other allocation has it. */
int root_check_plug(const RootHost *h, PlugAction action, const char *hostdev);
/* Each line is a comment or the options for a pool. */
int root_check_options(const Config *c, const char *text);
/* The partitions are in the configuration, and an allocation has each whose bit in p->active is set. */
int root_check_partitions(const RootHost *h, const PartitionsPayload *p);
/* Each GPU exists and is in a pool: for ROOT_MODULE in one with Fabric=yes or ConfidentialMode=. For the other actions
 * NVIDIA's driver has it; except for ROOT_PERSISTENCE it is on its way back to the host, as root_check_clean() says.
 * results: of each GPU. Returns 0 when one of them may be asked about. */
int root_check_gpus(const RootHost *h, RootAction action, const PciAddress *gpus, size_t n, int32_t *results);
