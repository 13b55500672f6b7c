/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "quota.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/strings.h"

#define MINUTE_USEC  (UINT64_C(60) * 1000000)
#define MIB          (UINT64_C(1) << 20)
/* The most accounts. By default the bus allows fewer connections. */
#define ACCOUNTS_MAX 4096U

/* The limits fit those of dbus-daemon. It charges a message to its sender until the receiver has read it: dbus-daemon
 * reads no message of passthroughd while 127 MiB of messages of passthroughd, or 64 descriptors in them, wait for
 * clients. It allows one uid 256 connections. */
static const struct {
        uint64_t low;    /* for a caller that uses at most this much, only the limit `most` applies */
        uint64_t of_one; /* limit of a caller that uses more than low */
        uint64_t shared; /* limit of all callers together, for a caller that uses more than low */
        uint64_t most;
        bool in_a_minute;
} limits[_QUOTA_KIND_MAX] = {
        [QUOTA_UNKNOWN_CALLS] = { 0, 32, 512, 1024 },
        [QUOTA_UNKNOWN_BYTES] = { 0, 4 * MIB, 4 * MIB, 4 * MIB },
        [QUOTA_AUTHORIZATIONS] = { 0, 32, 128, UINT64_MAX },
        [QUOTA_ANSWERS] = { 0, 16, 64, UINT64_MAX },
        [QUOTA_PROCESSES] = { 0, 2, 6, 8 },
        [QUOTA_DESCRIPTORS] = { 0, 8, 20, 28 },
        [QUOTA_DESCRIPTOR_BYTES] = { 0, UINT64_MAX, 12 * MIB, UINT64_MAX },
        [QUOTA_LIST_BYTES] = { 9 * MIB, 24 * MIB, 48 * MIB, UINT64_MAX, true },
        [QUOTA_REFUSALS_LOGGED] = { 0, 1, 16, 16, true },
};

struct Account {
        Account *next;
        char caller[64];
        bool is_root;
        uint64_t used[_QUOTA_KIND_MAX];
};

bool caller_is_root(uint32_t uid) {
        return uid == 0 || uid == getuid();
}

/* Formats the name of the caller's account. If a unique name is part of it, so is the connection to the bus, because
 * another bus gives the same unique names to other callers. */
static void name_caller(sd_bus_message *call, uint32_t uid, char *buf, size_t size) {
        if (!call || (uid != UID_UNKNOWN && !caller_is_root(uid)))
                (void) snprintf(buf, size, "uid %" PRIu32, uid);
        else
                (void) snprintf(buf, size, "%p %s", (void *) sd_bus_message_get_bus(call),
                                sd_bus_message_get_sender(call) ?: "");
}

/* Finds the account. is_root: root and the other callers have separate accounts, even under the same name: while the
 * uid of a connection is unknown, the connection does not count as root's. */
static Account *find_account(const Quota *q, const char *caller, bool is_root) {
        for (Account *a = q->accounts; a; a = a->next)
                if (a->is_root == is_root && streq(a->caller, caller))
                        return a;
        return NULL;
}

static Account *add_account(Quota *q, const char *caller, bool is_root) {
        Account *a;
        size_t n = 0;

        for (a = q->accounts; a; a = a->next)
                n++;
        a = n < ACCOUNTS_MAX ? calloc(1, sizeof(*a)) : NULL;
        if (!a)
                return NULL;
        *a = (Account) { .next = q->accounts, .is_root = is_root };
        strcpy(a->caller, caller);
        q->accounts = a;
        return a;
}

static void free_unused(Quota *q) {
        static const Account unused = { 0 };

        for (Account **i = &q->accounts; *i;) {
                Account *a = *i;

                if (memcmp(a->used, unused.used, sizeof(a->used)) != 0) {
                        i = &a->next;
                        continue;
                }
                *i = a->next;
                free(a);
        }
}

void quota_start_minute(Quota *q) {
        for (QuotaKind kind = 0; kind < _QUOTA_KIND_MAX; kind++) {
                if (!limits[kind].in_a_minute)
                        continue;
                q->used[0][kind] = q->used[1][kind] = 0;
                for (Account *a = q->accounts; a; a = a->next)
                        a->used[kind] = 0;
        }
        q->minute = clock_usec(CLOCK_MONOTONIC);
        free_unused(q);
}

bool quota_charge(Quota *q, sd_bus_message *call, uint32_t uid, QuotaKind kind, uint64_t amount, Charge *ret) {
        bool is_root = caller_is_root(uid);
        uint64_t *all = &q->used[is_root][kind], own;
        char caller[sizeof(((Account *) NULL)->caller)];
        Account *a;

        assert(!ret || !limits[kind].in_a_minute);
        if (limits[kind].in_a_minute && clock_usec(CLOCK_MONOTONIC) - q->minute >= MINUTE_USEC)
                quota_start_minute(q);
        name_caller(call, uid, caller, sizeof(caller));
        a = find_account(q, caller, is_root);
        own = a ? a->used[kind] : 0;
        if (own <= limits[kind].low ? *all + amount > limits[kind].most
                                    : own + amount > limits[kind].of_one || *all + amount > limits[kind].shared)
                return false;
        if (!a)
                a = add_account(q, caller, is_root);
        if (!a)
                return false;
        *all += amount;
        a->used[kind] += amount;
        if (ret)
                *ret = (Charge) { q, a, kind, amount };
        return true;
}

uint64_t quota_used(const Quota *q, sd_bus_message *call, uint32_t uid, QuotaKind kind) {
        char caller[sizeof(((Account *) NULL)->caller)];
        const Account *a;

        name_caller(call, uid, caller, sizeof(caller));
        a = find_account(q, caller, caller_is_root(uid));
        return a ? a->used[kind] : 0;
}

void quota_give_back(Charge *c) {
        uint64_t *all;

        if (!c->account)
                return;
        all = &c->quota->used[c->account->is_root][c->kind];
        assert(c->account->used[c->kind] >= c->amount && *all >= c->amount);
        c->account->used[c->kind] -= c->amount;
        *all -= c->amount;
        free_unused(c->quota);
        *c = (Charge) { 0 };
}

void quota_done(Quota *q) {
        while (q->accounts) {
                Account *a = q->accounts;

                q->accounts = a->next;
                free(a);
        }
        *q = (Quota) { 0 };
}
