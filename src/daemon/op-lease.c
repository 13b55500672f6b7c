/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prepare and Renew: what a caller does with an allocation that has a lease. */

#include "inventory.h"
#include "operations.h"
#include "util/strings.h"

/* VERDICT_NONE when a has this generation. */
static Verdict check_lease(const Manager *m, const Allocation *a, const char *name, uint64_t generation, Refusal *ret) {
        Verdict v = manager_check_may_change(m, ret);

        return v != VERDICT_NONE ? v : manager_check_generation(a, name, generation, ret);
}

static Verdict refuse_state(const Allocation *a, Refusal *ret) {
        return refuse(ret, VERDICT_WRONG_STATE, NULL, NULL, "'%s' is %s, and has no lease.", a->name,
                      allocation_state_to_string(allocation_shown_state(a)));
}

/* What may have changed since the devices were planned. */
static Verdict check_devices(Manager *m, const Allocation *a, Refusal *ret) {
        Verdict v = manager_check_blocked(m, a, false, ret);

        if (v != VERDICT_NONE)
                return v;
        if (manager_refresh_drivers(m) < 0 || manager_refresh_host(m) < 0 || manager_refresh_groups(m, a) < 0)
                return refuse_no_memory(ret);
        v = manager_check_hardware(m, a, ret);
        return v != VERDICT_NONE ? v : manager_check_use(m, a, USE_ALLOCATE, ret);
}

/* On disk first: at the end of a lease that is still on disk, the devices would be forgotten while they are bound. */
static Verdict end_lease(Manager *m, Allocation *a, Refusal *ret) {
        Verdict v = manager_begin_state(m, a, ALLOCATION_PREPARING, ret);

        if (v != VERDICT_NONE)
                return v;
        a->hold = 0;
        a->lease_end = 0;
        manager_tell_allocation(m, a);
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
        manager_publish_allocation(m, a);
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
        /* A caller that did not get the reply asks again. */
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
                /* If this fails too, the next start finds the other lease, with the same devices. */
                if (written)
                        (void) store_save(m->store, a);
                return refuse_storage(ret, r);
        }
        manager_tell_allocation(m, a);
        manager_follow_leases(m);
        return VERDICT_NONE;
}
