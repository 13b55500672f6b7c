/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A refusal is a value: verdict, device, sentence and remedy. D-Bus, command line and journal show it alike. */

#include "model/pciaddr.h"
#include "util/cleanup.h"

typedef enum Verdict {
        VERDICT_NONE, /* not refused */
        /* About the device. */
        VERDICT_NO_SUCH_DEVICE,
        VERDICT_NOT_IN_POOL,
        VERDICT_EXCLUDED,
        VERDICT_BRIDGE,
        VERDICT_BOOT_VGA,
        VERDICT_HOST_CRITICAL,
        VERDICT_NO_IOMMU,
        VERDICT_NO_DRIVER_OVERRIDE,
        VERDICT_NO_VFIO_DRIVER, /* the VFIO driver for the device (with Xen: pciback) is not registered, because its
                                   module is not loaded */
        VERDICT_RESERVED_REGION,
        VERDICT_GROUP_NOT_VIABLE,
        VERDICT_PF_HAS_VFS,
        VERDICT_PF_ALLOCATED,
        VERDICT_PF_ABSENT, /* the PF is gone, is not bound to its driver, or cannot set the GUIDs of its VFs */
        VERDICT_ALLOCATED,
        VERDICT_STUCK,
        VERDICT_QUARANTINED,
        VERDICT_UNHEALTHY, /* the device has a finding from DEVICE_UNHEALTHY to DEVICE_LINKED */
        VERDICT_CONTESTED, /* another program uses or has changed what the allocation or request needs */
        VERDICT_NO_VGPU, /* the device can have no vGPU (of the type) now, or the vGPU of an allocated device is gone */
        VERDICT_MISSING,
        VERDICT_HARDWARE_CHANGED,
        VERDICT_BUSY, /* a job, a process or a guest uses the device or the allocation, or may use it; or the daemon is
                         stopping */
        /* About the request. */
        VERDICT_INVALID_REQUEST,
        VERDICT_NO_SUCH_POOL,
        VERDICT_INSUFFICIENT_DEVICES,
        VERDICT_INSUFFICIENT_CPUS,
        VERDICT_INSUFFICIENT_MEMORY,
        VERDICT_INSUFFICIENT_SLOTS, /* too few slots of remote services are free */
        VERDICT_SCHEDULED,          /* a scheduler gives out the devices of the pool (Scheduler=) */
        VERDICT_NUMA, /* enough is free, but not on NUMA nodes that the policy allows; or a requested node is unusable;
                         or there are fewer nodes than requested cells */
        VERDICT_PROXIMITY,    /* enough free devices, but not near enough to each other */
        VERDICT_NO_FREE_PORT, /* the running guest has no free port where the device belongs */
        /* About the ledger. */
        VERDICT_NAME_TAKEN,
        VERDICT_SHARED_MEMORY_TAKEN, /* the name belongs to shared memory of another owner, node, size or page size, to
                                        a file, or to the socket of a server */
        VERDICT_NO_SUCH_ALLOCATION,
        VERDICT_STALE_GENERATION,
        VERDICT_WRONG_STATE,
        VERDICT_LIMIT,
        VERDICT_READ_ONLY,
        /* About the hardware. */
        VERDICT_NOT_SUPPORTED,
        VERDICT_VFS_PRESENT,
        /* About the domain template. */
        VERDICT_INVALID_TEMPLATE,
        VERDICT_NOT_VALIDATED, /* libvirt did not report whether the template's document is valid */
        /* About the reply. */
        VERDICT_NOT_ANSWERED, /* the process that computes the reply took too long, or died */
        /* About the configuration. */
        VERDICT_CONFIG_REFUSED,
        _VERDICT_MAX,
        _VERDICT_INVALID = -22,
} Verdict;

/* Returns the name in JSON, for example "insufficient-devices". */
const char *verdict_to_string(Verdict v);

typedef struct Refusal {
        Verdict verdict;
        bool has_device;
        PciAddress device;
        char *message; /* a sentence with a full stop */
        char *remedy;  /* a sentence: what the caller can do; NULL: no remedy is known */
        char *nearest; /* of a refused request: a sentence with the nearest request that would succeed; NULL: unknown */
} Refusal;

void refusal_done(Refusal *r);
#define _cleanup_refusal_ _cleanup_(refusal_done)

/* Replaces *ret, which must be initialised, and returns v, for "return refuse(...)". ret is NULL if the caller does not
 * want the refusal. v is not VERDICT_NONE. device and remedy may be NULL. When memory runs out, message or remedy is
 * NULL and the verdict stands. */
Verdict refuse(Refusal *ret, Verdict v, const PciAddress *device, const char *remedy, const char *format, ...)
        _printf_(5, 6);
#define refuse_request(ret, remedy, ...) refuse((ret), VERDICT_INVALID_REQUEST, NULL, (remedy), __VA_ARGS__)
Verdict refuse_no_memory(Refusal *ret);
/* Returns message, remedy and nearest request as one text. The caller frees; NULL when out of memory. */
char *refusal_text(const Refusal *r);
/* Moves a refusal from *from to *ret, and leaves *from empty. With ret NULL, does nothing. */
void refusal_move(Refusal *ret, Refusal *from);
