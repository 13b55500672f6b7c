/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "budget.h"

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

/* The bytes of the sender. NULL: there is no room to count them. */
static uint64_t *find_bytes(Budget *b, const char *sender) {
        for (size_t i = 0; i < BUDGET_SENDERS_MAX; i++) {
                char *name = b->senders[i].sender;

                if (!*name)
                        (void) snprintf(name, sizeof(b->senders[i].sender), "%s", sender);
                if (streq(name, sender))
                        return &b->senders[i].bytes;
        }
        return NULL;
}

/* False: the sender, or all, have asked for too much. */
static bool charge(Budget *b, const char *sender, uint64_t bytes) {
        uint64_t now = clock_usec(CLOCK_MONOTONIC), *own;

        if (now - b->since >= MINUTE_USEC)
                *b = (Budget){ .since = now };
        own = find_bytes(b, sender);
        if (b->all + bytes > BUDGET_OF_ALL || (own && *own + bytes > BUDGET_OF_ONE))
                return false;
        b->all += bytes;
        if (own)
                *own += bytes;
        return true;
}

bool budget_allows(Server *s, sd_bus_message *call) {
        const char *sender = sd_bus_message_get_sender(call);
        HostView view;
        uint64_t bytes;

        if (!sender)
                return true;
        view = server_view(s);
        bytes = estimate(&view, call);
        return bytes <= SMALL || charge(&s->budget, sender, bytes);
}
