/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "budget.h"

#include <inttypes.h>
#include <stdio.h>

#include "server-internal.h"
#include "util/clock.h"
#include "util/strings.h"

#define MINUTE_USEC (UINT64_C(60) * 1000000)
#define SMALL       16384U

typedef enum Objects {
        DEVICES = 1,
        ALLOCATIONS = 2,
} Objects;

/* The calls, and the bytes of their replies for each object. */
static const struct {
        const char *interface, *member;
        int objects;
        unsigned size;
} calls[] = {
        { BUS_MANAGER_INTERFACE, "ListDevices", DEVICES, 160 },
        { BUS_MANAGER_INTERFACE, "ListAllocations", ALLOCATIONS, 160 },
        { "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", DEVICES | ALLOCATIONS, 2048 },
};

static uint64_t estimate(const HostView *view, sd_bus_message *m) {
        for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
                uint64_t n = 0;

                if (sd_bus_message_is_method_call(m, calls[i].interface, calls[i].member) <= 0)
                        continue;
                n += calls[i].objects & DEVICES ? view->inventory->n_devices : 0;
                n += calls[i].objects & ALLOCATIONS ? view->ledger->n_allocations : 0;
                return n * calls[i].size;
        }
        return 0;
}

/* The bytes of the caller. NULL: there is no room to count them. */
static uint64_t *find_bytes(Budget *b, const char *caller) {
        for (size_t i = 0; i < BUDGET_CALLERS_MAX; i++) {
                char *name = b->callers[i].name;

                if (!*name)
                        (void) snprintf(name, sizeof(b->callers[i].name), "%s", caller);
                if (streq(name, caller))
                        return &b->callers[i].bytes;
        }
        return NULL;
}

/* False: the caller, or all, have asked for too much. */
static bool charge(Budget *b, const char *caller, bool is_root, uint64_t bytes) {
        uint64_t now = clock_usec(CLOCK_MONOTONIC), *own, *all = is_root ? &b->root : &b->others;

        if (now - b->since >= MINUTE_USEC)
                *b = (Budget) { .since = now };
        own = find_bytes(b, caller);
        if ((!own || *own > BUDGET_SHARE) && (*all + bytes > BUDGET_OF_ALL || (own && *own + bytes > BUDGET_OF_ONE)))
                return false;
        *all += bytes;
        if (own)
                *own += bytes;
        return true;
}

static bool allows(Server *s, sd_bus_message *call) {
        const char *sender = sd_bus_message_get_sender(call);
        char caller[32];
        bool is_root;
        HostView view;
        uint64_t bytes;
        uint32_t uid;

        if (!sender)
                return true;
        view = server_view(s);
        bytes = estimate(&view, call);
        if (bytes <= SMALL)
                return true;
        uid = caller_uid(s, call);
        is_root = caller_is_root(uid);
        if (is_root)
                (void) snprintf(caller, sizeof(caller), "%s", sender);
        else
                (void) snprintf(caller, sizeof(caller), "uid %" PRIu32, uid);
        return charge(&s->budget, caller, is_root, bytes);
}

int budget_check(Server *s, sd_bus_message *call) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        if (allows(s, call))
                return 0;
        (void) refuse(&refusal, VERDICT_LIMIT, NULL, "Wait a minute, and follow the signals instead of asking again.",
                      "Too many long replies were asked for within a minute.");
        return refuse_sender(s, call, &refusal);
}
