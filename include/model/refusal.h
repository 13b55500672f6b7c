/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A refusal is data, not an error: what stands in the way, which device, one sentence, and what to do about it. The
 * same sentence reaches D-Bus, the command line and the journal.
 */

#include "model/pciaddr.h"
#include "util/cleanup.h"

typedef enum Verdict {
        VERDICT_NONE, /* not refused */
        /* the device */
        VERDICT_NO_SUCH_DEVICE,
        VERDICT_NOT_IN_POOL,
        VERDICT_EXCLUDED,
        VERDICT_BRIDGE,
        VERDICT_BOOT_VGA,
        VERDICT_HOST_CRITICAL,
        VERDICT_NO_IOMMU,
        VERDICT_NO_DRIVER_OVERRIDE,
        VERDICT_NO_VFIO_DRIVER, /* the kernel has none that it could be bound to: no module is loaded */
        VERDICT_RESERVED_REGION,
        VERDICT_GROUP_NOT_VIABLE,
        VERDICT_PF_HAS_VFS,
        VERDICT_PF_ALLOCATED,
        VERDICT_PF_ABSENT, /* gone, or without its driver */
        VERDICT_ALLOCATED,
        VERDICT_STUCK,
        VERDICT_QUARANTINED,
        VERDICT_UNHEALTHY, /* it does not answer, or had errors */
        VERDICT_CONTESTED, /* somebody has it to whom we did not give it */
        VERDICT_MISSING,
        VERDICT_HARDWARE_CHANGED,
        VERDICT_BUSY, /* a job works on it */
        /* the request */
        VERDICT_INVALID_REQUEST,
        VERDICT_NO_SUCH_POOL,
        VERDICT_INSUFFICIENT_DEVICES,
        VERDICT_INSUFFICIENT_CPUS,
        VERDICT_INSUFFICIENT_MEMORY,
        VERDICT_NUMA,      /* enough in all, not where the policy wants it */
        VERDICT_PROXIMITY, /* enough in all, not close enough */
        /* the ledger */
        VERDICT_NAME_TAKEN,
        VERDICT_SHARED_MEMORY_TAKEN, /* that name is of memory of another owner, or of another kind */
        VERDICT_NO_SUCH_ALLOCATION,
        VERDICT_STALE_GENERATION,
        VERDICT_WRONG_STATE,
        VERDICT_LIMIT,
        VERDICT_READ_ONLY,
        /* hardware that cannot do it */
        VERDICT_NOT_SUPPORTED,
        VERDICT_VFS_PRESENT,
        /* the template of a domain */
        VERDICT_INVALID_TEMPLATE,
        VERDICT_NOT_VALIDATED, /* libvirt did not say whether its document is valid */
        /* a new configuration that is not taken */
        VERDICT_CONFIG_REFUSED,
        _VERDICT_MAX,
        _VERDICT_INVALID = -22,
} Verdict;

/* "insufficient-devices": in JSON. */
const char *verdict_to_string(Verdict v);

typedef struct Refusal {
        Verdict verdict;
        bool has_device;
        PciAddress device;
        char *message; /* a sentence with a full stop */
        char *remedy;  /* what to do, a sentence; NULL when there is nothing to do */
        char *nearest; /* of a request: what like it would succeed, a sentence; NULL when that is not known */
} Refusal;

void refusal_done(Refusal *r);
#define _cleanup_refusal_ _cleanup_(refusal_done)

/*
 * Fills *ret (NULL: the caller does not want to know) and returns v, or VERDICT_NONE never: for "return refuse(...)".
 * Out of memory leaves message NULL, the verdict stands. remedy may be NULL.
 */
Verdict refuse(Refusal *ret, Verdict v, const PciAddress *device, const char *remedy, const char *format, ...)
        _printf_(5, 6);
#define refuse_request(ret, remedy, ...) refuse((ret), VERDICT_INVALID_REQUEST, NULL, (remedy), __VA_ARGS__)
Verdict refuse_no_memory(Refusal *ret);
/* Message, remedy and nearest request in one text, sentence after sentence. Caller frees; NULL when out of memory. */
char *refusal_text(const Refusal *r);
/* Hands from over to *ret (NULL: the caller does not want to know); from is empty then. */
void refusal_move(Refusal *ret, Refusal *from);
