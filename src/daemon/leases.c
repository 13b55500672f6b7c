/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Leases: an allocation that is reserved on disk, whose devices stay with the host until Prepare. Its end is a time of
 * CLOCK_BOOTTIME, so that a change of the clock does not matter. How long the node was off is unknown, so after a boot
 * the lease has its full length again.
 */

#include <systemd/sd-id128.h>

#include "operations.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/strings.h"

static void get_boot(char ret[static SD_ID128_STRING_MAX]) {
        sd_id128_t boot = SD_ID128_NULL;

        (void) sd_id128_get_boot(&boot);
        (void) sd_id128_to_string(boot, ret);
}

void manager_lease(Allocation *a, uint32_t seconds) {
        _Static_assert(sizeof(a->lease_boot) == SD_ID128_STRING_MAX, "a boot id fits");
        a->hold = seconds;
        a->lease_end = clock_usec(CLOCK_BOOTTIME) + seconds * UINT64_C(1000000);
        get_boot(a->lease_boot);
}

/* After a boot. */
static void begin_again(Manager *m, Allocation *a) {
        char boot[SD_ID128_STRING_MAX];

        get_boot(boot);
        if (streq(a->lease_boot, boot))
                return;
        manager_lease(a, a->hold);
        (void) manager_set_state(m, a, ALLOCATION_RESERVED, a->reason);
}

static void expire(Manager *m, Allocation *a) {
        history_record_allocation(HISTORY_EXPIRED, a, NULL);
        manager_delete_allocation(m, a);
}

/* A lease that is over, or the one that ends first. */
static Allocation *find_next(Manager *m) {
        Allocation *next = NULL;

        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                Allocation *a = m->host.ledger->allocations[i];

                if (a->state != ALLOCATION_RESERVED)
                        continue;
                begin_again(m, a);
                if (!next || a->lease_end < next->lease_end)
                        next = a;
        }
        return next;
}

static int on_end(sd_event_source *source, uint64_t usec, void *userdata) {
        manager_follow_leases(userdata);
        return 0;
}

void manager_follow_leases(Manager *m) {
        Allocation *next;
        int r = 0;

        if (m->host.ledger->read_only)
                return;
        while ((next = find_next(m)) && next->lease_end <= clock_usec(CLOCK_BOOTTIME))
                expire(m, next);
        m->reconcile.lease_timer = sd_event_source_disable_unref(m->reconcile.lease_timer);
        if (next)
                r = sd_event_add_time(m->event, &m->reconcile.lease_timer, CLOCK_BOOTTIME, next->lease_end, 0, on_end,
                                      m);
        if (r < 0)
                log_warning_errno(r, "Leases do not end before the next one is made, ignoring: %m");
}
