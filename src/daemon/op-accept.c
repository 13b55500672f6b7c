/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Accept: at an admin's request, an allocation takes the cards that replaced its devices. */

#include <errno.h>

#include "facts.h"
#include "operations.h"
#include "util/strings.h"

/* Records the replaced cards. a: with the identity of the old cards. */
static void record(Manager *m, const HostView *view, const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (plan_find_replacement(view, &a->devices[i]))
                        note_event(m, HISTORY_ACCEPTED, a->devices[i].address, a,
                                   "%s is a different card than before, and was accepted for '%s'.",
                                   PCI_ADDRESS_STR(a->devices[i].address), a->name);
}

static Verdict accept_replacements(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *b = allocation_copy(a);
        HostView view = host_state_view(&m->host);
        Allocation *accepted = b;
        Verdict v;

        if (!b || plan_accept(&view, b) < 0)
                return refuse_no_memory(ret);
        manager_note_serials(m, b);
        v = manager_check_hardware(m, b, ret);
        if (v == VERDICT_NONE)
                v = manager_check_drivers(&m->host, b, ret);
        if (v != VERDICT_NONE)
                return v;
        b->state = ALLOCATION_PREPARING;
        b->status.resume_refused = false;
        if (string_copy(&b->reason, NULL) < 0)
                return refuse_no_memory(ret);
        v = manager_replace_allocation(m, a, &b, ret);
        if (v != VERDICT_NONE)
                return v;
        /* While the old allocation still has the identity of the old cards. */
        record(m, &view, b);
        v = manager_start_prepare(m, accepted, true, ret_job, ret);
        if (v != VERDICT_NONE) {
                (void) manager_set_state(m, accepted, ALLOCATION_FAILED, ret->message);
                return v;
        }
        /* As for a resumed job, only a release undoes a failure. */
        job_queue_find(&m->jobs, *ret_job)->resumed = true;
        note_allocation(m, accepted);
        return VERDICT_NONE;
}

Verdict manager_accept(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret) {
        Allocation *a = ledger_find(m->host.ledger, name);
        HostView view;
        Verdict v = manager_check_tenancy(m, a, name, generation, ret);

        if (v == VERDICT_NONE)
                v = manager_check_blocked(m, a, false, ret);
        if (v == VERDICT_NONE)
                v = job_queue_check_room(&m->jobs, ret);
        if (v != VERDICT_NONE)
                return v;
        if (manager_refresh_host(m) < 0 || manager_refresh_groups(m, a) < 0)
                return refuse_no_memory(ret);
        view = host_state_view(&m->host);
        v = plan_check_accept(&view, a, ret);
        return v != VERDICT_NONE ? v : accept_replacements(m, a, ret_job, ret);
}
