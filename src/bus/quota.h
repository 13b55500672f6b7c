/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Limits on what callers use at the same time, or within a minute. Each use is charged to an account. A use that lasts
 * is given back when it ends; uses within a minute are forgotten when the next minute starts. A caller is a uid with
 * all its connections; or one connection, if its uid is root or not known yet. Root and the other callers have separate
 * totals. For most kinds, a part of the total is reserved for callers that use little or nothing yet, so that no caller
 * can use up what another one needs.
 */

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "util/cleanup.h"

typedef enum QuotaKind {
        QUOTA_UNKNOWN_CALLS,    /* calls in the queue of admission.h */
        QUOTA_UNKNOWN_BYTES,    /* bytes of such calls; a call of at most ADMISSION_SIZE_SMALL bytes does not count */
        QUOTA_AUTHORIZATIONS,   /* calls that wait for polkit */
        QUOTA_ANSWERS,          /* calls whose replies children compute (answers.h) */
        QUOTA_PROCESSES,        /* the children that compute these replies */
        QUOTA_DESCRIPTORS,      /* descriptors of long replies, until the client closes them */
        QUOTA_DESCRIPTOR_BYTES, /* bytes of memory behind these descriptors */
        QUOTA_LIST_BYTES,       /* estimated bytes of long typed replies within a minute */
        QUOTA_REFUSALS_LOGGED,  /* logged refusals within a minute */
        _QUOTA_KIND_MAX,
} QuotaKind;

typedef struct Account Account;

/* What each caller uses now, in one account per caller. A zeroed Quota is valid and empty. */
typedef struct Quota {
        Account *accounts;
        uint64_t used[2][_QUOTA_KIND_MAX]; /* totals; [0]: of callers other than root, [1]: of root */
        uint64_t minute;                   /* start of the current minute: CLOCK_MONOTONIC, in microseconds */
} Quota;

/* What was charged, for quota_give_back(). A zeroed Charge charges nothing. */
typedef struct Charge {
        Quota *quota;
        Account *account;
        QuotaKind kind;
        uint64_t amount;
} Charge;

#define UID_UNKNOWN UINT32_MAX

/* Returns true for the uid of root and for the daemon's own uid. */
bool caller_is_root(uint32_t uid);

/* Charges the caller. Returns false, and charges nothing, when the caller or all callers together would use too much,
 * or when no account can be added. If uid is root's or UID_UNKNOWN, and call is not NULL, the connection of call is
 * charged; otherwise the uid is. ret: the charge to give back later; NULL for the kinds that count within a minute. */
bool quota_charge(Quota *q, sd_bus_message *call, uint32_t uid, QuotaKind kind, uint64_t amount, Charge *ret);
uint64_t quota_used(const Quota *q, sd_bus_message *call, uint32_t uid, QuotaKind kind);
void quota_give_back(Charge *c);
/* Starts a new minute: the kinds that count within a minute begin at 0. */
void quota_start_minute(Quota *q);
void quota_done(Quota *q);
