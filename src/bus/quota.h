/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What callers use at once, or in a minute. Each use is charged to an account and given back later. A caller is a uid
 * with all its connections, or one connection of root or of an unknown uid. Root and all others are counted apart. No
 * caller can use up what another one needs: the last places are for callers that have none.
 */

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "util/cleanup.h"

typedef enum QuotaKind {
        QUOTA_UNKNOWN_CALLS,    /* calls that wait until the bus has told the uid of their connection */
        QUOTA_UNKNOWN_BYTES,    /* of those of them that are longer than ADMISSION_SIZE_SMALL */
        QUOTA_AUTHORIZATIONS,   /* calls that wait for polkit */
        QUOTA_ANSWERS,          /* calls whose replies are computed in processes */
        QUOTA_PROCESSES,        /* these processes */
        QUOTA_DESCRIPTORS,      /* of long replies, until the client closes them */
        QUOTA_DESCRIPTOR_BYTES, /* the memory behind them */
        QUOTA_LIST_BYTES,       /* in a minute: estimated bytes of long typed replies */
        QUOTA_REFUSALS_LOGGED,  /* in a minute */
        _QUOTA_KIND_MAX,
} QuotaKind;

typedef struct Account Account;

/* Zeros: nothing is used. */
typedef struct Quota {
        Account *accounts;
        uint64_t used[2][_QUOTA_KIND_MAX]; /* by others, by root */
        uint64_t minute;                   /* CLOCK_MONOTONIC, in microseconds: when the minute began */
} Quota;

/* Zeros: nothing is charged. */
typedef struct Charge {
        Quota *quota;
        Account *account;
        QuotaKind kind;
        uint64_t amount;
} Charge;

#define UID_UNKNOWN UINT32_MAX

/* Root, or the daemon's own uid. */
bool caller_is_root(uint32_t uid);

/*
 * Charges the caller. False: the caller, or all callers, use too much. call: NULL: by the uid alone. ret: NULL: for
 * the kinds in a minute, which nobody gives back.
 */
bool quota_charge(Quota *q, sd_bus_message *call, uint32_t uid, QuotaKind kind, uint64_t amount, Charge *ret);
uint64_t quota_used(const Quota *q, sd_bus_message *call, uint32_t uid, QuotaKind kind);
void quota_give_back(Charge *c);
/* Begins a new minute. */
void quota_start_minute(Quota *q);
void quota_done(Quota *q);
