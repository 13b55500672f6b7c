/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leases. A lease is an allocation in the state reserved: the ledger on disk has it, but its devices stay with the host
 * until Prepare. A lease ends at a time of CLOCK_BOOTTIME, so that changes of the wall clock do not move its end. After
 * a boot it starts again with its full length, because it is unknown how long the node was off. */

#include <systemd/sd-id128.h>

#include "facts.h"
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

/* If the lease began before the boot, starts it again with its full length. */
static void begin_again(Manager *m, Allocation *a) {
        char boot[SD_ID128_STRING_MAX];

        get_boot(boot);
        if (streq(a->lease_boot, boot))
                return;
        manager_lease(a, a->hold);
        (void) manager_set_state(m, a, ALLOCATION_RESERVED, a->reason);
}

static void expire(Manager *m, Allocation *a) {
        note_allocation_event(m, HISTORY_EXPIRED, a, NULL);
        manager_delete_allocation(m, a);
}

/* Returns the lease that ends first; it may be over already. NULL: there is no lease. */
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
        m->lease_timer = sd_event_source_disable_unref(m->lease_timer);
        if (next)
                r = sd_event_add_time(m->event, &m->lease_timer, CLOCK_BOOTTIME, next->lease_end, 0, on_end, m);
        if (r < 0)
                log_warning_errno(r, "Leases do not end before the next one is made, ignoring: %m");
}

/* Refuses unless changes are possible now, and `a` exists and has this generation. The caller checks whether `a` is a
 * lease. */
static Verdict check_lease(const Manager *m, const Allocation *a, const char *name, uint64_t generation, Refusal *ret) {
        Verdict v = manager_check_may_change(m, ret);

        return v != VERDICT_NONE ? v : manager_check_generation(a, name, generation, ret);
}

static Verdict refuse_state(const Allocation *a, Refusal *ret) {
        return refuse(ret, VERDICT_WRONG_STATE, NULL, NULL, "'%s' is %s, and has no lease.", a->name,
                      allocation_state_to_string(allocation_shown_state(a)));
}

/* Refuses when the devices cannot be prepared any more, because something has changed since the plan. */
static Verdict check_devices(Manager *m, const Allocation *a, Refusal *ret) {
        Verdict v = manager_check_blocked(m, a, false, ret);

        if (v != VERDICT_NONE)
                return v;
        if (manager_refresh_drivers(m) < 0 || manager_refresh_host(m) < 0 || manager_refresh_groups(m, a) < 0)
                return refuse_no_memory(ret);
        v = manager_check_hardware(m, a, ret);
        return v != VERDICT_NONE ? v : manager_check_use(m, a, USE_ALLOCATE, ret);
}

/* Makes the lease an allocation in the state preparing, on disk before the job begins. Otherwise a crash could leave a
 * lease on disk that runs out, and its end would remove the allocation while the devices are bound. */
static Verdict end_lease(Manager *m, Allocation *a, Refusal *ret) {
        Verdict v = manager_begin_state(m, a, ALLOCATION_PREPARING, ret);

        if (v != VERDICT_NONE)
                return v;
        a->hold = 0;
        a->lease_end = 0;
        note_allocation(m, a);
        return VERDICT_NONE;
}

static Verdict prepare(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret) {
        Verdict v = job_queue_check_room(&m->jobs, ret);

        if (v == VERDICT_NONE)
                v = check_devices(m, a, ret);
        if (v == VERDICT_NONE)
                v = manager_check_drivers(&m->host, a, ret);
        if (v != VERDICT_NONE)
                return v;
        manager_note_serials(m, a);
        v = end_lease(m, a, ret);
        if (v != VERDICT_NONE)
                return v;
        note_allocation(m, a);
        v = manager_start_prepare(m, a, false, ret_job, ret);
        if (v != VERDICT_NONE)
                manager_delete_allocation(m, a);
        manager_follow_leases(m);
        return v;
}

Verdict manager_prepare(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret) {
        Allocation *a = ledger_find(m->host.ledger, name);
        Verdict v = check_lease(m, a, name, generation, ret);

        if (v != VERDICT_NONE)
                return v;
        *ret_job = 0;
        if (a->state == ALLOCATION_RESERVED)
                return prepare(m, a, ret_job, ret);
        /* The caller may repeat a call whose reply was lost. */
        if (a->state == ALLOCATION_PREPARING)
                *ret_job = job_queue_find_subject(&m->jobs, name);
        return *ret_job > 0 || a->state == ALLOCATION_READY ? VERDICT_NONE : refuse_state(a, ret);
}

Verdict manager_renew(Manager *m, const char *name, uint64_t generation, uint32_t seconds, Refusal *ret) {
        Allocation *a = ledger_find(m->host.ledger, name);
        Verdict v = check_lease(m, a, name, generation, ret);
        Allocation before;
        int r;

        if (v != VERDICT_NONE)
                return v;
        if (seconds == 0 || seconds > ALLOCATION_HOLD_MAX)
                return refuse_request(ret, NULL, "The lease must have 1 to %u seconds.", ALLOCATION_HOLD_MAX);
        if (a->state != ALLOCATION_RESERVED)
                return refuse_state(a, ret);
        before = *a;
        manager_lease(a, seconds);
        r = store_save(m->store, a);
        if (r < 0) {
                bool written = store_may_have(m->store, a);

                a->hold = before.hold;
                a->lease_end = before.lease_end;
                /* The file may have the new length, so write the former one again. If that fails too, the next start
                 * finds the new length, with the same devices. */
                if (written)
                        (void) store_save(m->store, a);
                return refuse_storage(ret, r);
        }
        note_allocation(m, a);
        manager_follow_leases(m);
        return VERDICT_NONE;
}
