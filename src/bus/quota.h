/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Limits on what callers use at the same time, or within a minute. Each use is charged to an account and given back
 * later. A caller is a uid with all its connections, or one connection of root or of an unknown uid. Root and the other
 * callers have separate totals. No caller can use up what another one needs: the last places are reserved for callers
 * that use none.
 */

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "util/cleanup.h"

typedef enum QuotaKind {
        QUOTA_UNKNOWN_CALLS,    /* calls that wait until the bus has reported the uid of their connection */
        QUOTA_UNKNOWN_BYTES,    /* bytes of these calls that are longer than ADMISSION_SIZE_SMALL */
        QUOTA_AUTHORIZATIONS,   /* calls that wait for polkit */
        QUOTA_ANSWERS,          /* calls whose replies are computed in processes */
        QUOTA_PROCESSES,        /* the processes of these replies */
        QUOTA_DESCRIPTORS,      /* descriptors of long replies, until the client closes them */
        QUOTA_DESCRIPTOR_BYTES, /* the memory behind them */
        QUOTA_LIST_BYTES,       /* estimated bytes of long typed replies within a minute */
        QUOTA_REFUSALS_LOGGED,  /* logged refusals within a minute */
        _QUOTA_KIND_MAX,
} QuotaKind;

typedef struct Account Account;

/* The accounts. Zeros: nothing is used. */
typedef struct Quota {
        Account *accounts;
        uint64_t used[2][_QUOTA_KIND_MAX]; /* totals of the other callers and of root */
        uint64_t minute;                   /* begin of the minute: CLOCK_MONOTONIC, in microseconds */
} Quota;

/* A charge that can be given back. Zeros: nothing is charged. */
typedef struct Charge {
        Quota *quota;
        Account *account;
        QuotaKind kind;
        uint64_t amount;
} Charge;

#define UID_UNKNOWN UINT32_MAX

/* Returns true for root and for the daemon's own uid. */
bool caller_is_root(uint32_t uid);

/*
 * Charges the caller. False: the caller, or all callers together, use too much. call: NULL: charge by the uid only.
 * ret: NULL for the kinds within a minute, which are not given back.
 */
bool quota_charge(Quota *q, sd_bus_message *call, uint32_t uid, QuotaKind kind, uint64_t amount, Charge *ret);
uint64_t quota_used(const Quota *q, sd_bus_message *call, uint32_t uid, QuotaKind kind);
void quota_give_back(Charge *c);
/* Starts a new minute. */
void quota_start_minute(Quota *q);
void quota_done(Quota *q);
