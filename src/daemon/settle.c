/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The work that the daemon does once per turn of the event loop. manager_settle() has its order. */

#include <systemd/sd-daemon.h>

#include "facts.h"
#include "operations.h"
#include "plan/promise.h"
#include "settle.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/strings.h"

#define CLEANING_DELAY_MAX_SEC 60U

/* Compares a ready allocation with the facts of the node. Notes once when a promise to the allocation is broken, once
 * when it is broken for another reason, and once when it is kept again. */
void settle_promise(Manager *m, Allocation *a) {
        _cleanup_refusal_ Refusal why = { 0 };
        _cleanup_free_ char *reason = NULL;
        HostView view = host_state_view(&m->host);

        if (a->state != ALLOCATION_READY)
                return;
        manager_look_at_regions(m, a);
        if (promise_check_kept(&view, a, &why) != VERDICT_NONE) {
                /* A missing driver or a lost vGPU cannot be mended here. settle_retry_resumes() has the allocation
                 * prepared again when that is possible. */
                a->status.resume_refused = a->status.resume_refused || why.verdict == VERDICT_NO_VFIO_DRIVER ||
                                           why.verdict == VERDICT_NO_VGPU;
                /* The vGPU is lost, but its VF is there, so no event of a device would start the work. Note the device
                 * as new. If the driver is missing too, do not: the registration of the driver will start the work. */
                if (why.verdict == VERDICT_NO_VGPU && promise_check_hardware(&view, a, NULL) == VERDICT_NONE &&
                    manager_check_drivers(&m->host, a, NULL) == VERDICT_NONE)
                        note_arrived(m, why.device);
                /* Keep the reason that `a` has, because it also names the user of the device. */
                if (a->status.taken && why.verdict == VERDICT_CONTESTED)
                        return;
                reason = refusal_text(&why);
                if (!reason)
                        return;
        }
        a->status.taken = false;
        if (streq_ptr(reason, a->reason))
                return;
        note_promise(m, a, reason ? &why : NULL);
        (void) manager_set_state(m, a, ALLOCATION_READY, reason);
}

/* Checks the promises to all allocations, except those that are about to be resumed; these are checked afterwards. */
static void settle_promises(Manager *m) {
        if (!m->announced || !m->notes.promises_unchecked)
                return;
        m->notes.promises_unchecked = false;
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                Allocation *a = m->host.ledger->allocations[i];

                if (manager_is_arriving(m, a))
                        m->notes.promises_unchecked = true;
                else
                        settle_promise(m, a);
        }
}

/* Tells systemd that the daemon is ready. By now the daemon owns its bus name, so that clients which systemd starts
 * next can call it; or it has given up waiting for the name. */
static void tell_ready(Manager *m) {
        (void) sd_notifyf(false, "READY=1\nSTATUS=%zu device%s, %zu allocation%s%s", m->host.inventory->n_devices,
                          PLURAL(m->host.inventory->n_devices), m->host.ledger->n_allocations,
                          PLURAL(m->host.ledger->n_allocations), m->host.ledger->read_only ? ", read-only" : "");
        log_info("Ready: %zu device%s, %zu allocation%s.", m->host.inventory->n_devices,
                 PLURAL(m->host.inventory->n_devices), m->host.ledger->n_allocations,
                 PLURAL(m->host.ledger->n_allocations));
        m->ready = true;
}

/* Releases an allocation whose domain has ended, if its request asked for that. Returns false when a job must end
 * first. */
static bool release_with_domain(Manager *m, Allocation *a) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        uint32_t job;

        if (!a->release_with_domain || !a->had_domain || a->status.domain || a->state != ALLOCATION_READY)
                return true;
        /* Changes are not possible now. A later start of the daemon releases the allocation. */
        if (manager_check_may_change(m, NULL) != VERDICT_NONE)
                return true;
        if (job_queue_find_subject(&m->jobs, a->name) > 0)
                return false;
        log_full(LOG_NOTICE, 0, (&(LogFields) { .allocation = a->name }),
                 "The domain that ran with '%s' has ended, releasing the allocation as requested.", a->name);
        if (manager_release_now(m, a, &job, &refusal) != VERDICT_NONE)
                log_full(LOG_WARNING, 0, (&(LogFields) { .allocation = a->name }), "'%s' is not released: %s", a->name,
                         refusal.message);
        return true;
}

static void release_abandoned(Manager *m) {
        m->notes.guests_read = false;
        m->settle.cleaning_delay = 0;
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++)
                if (!release_with_domain(m, m->host.ledger->allocations[i]))
                        m->notes.guests_read = true;
}

static int on_cleaning(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        m->notes.cleaning_due = true;
        note_turn(m);
        return 0;
}

/* Cleans the devices that guests of Nova have left. The process of a guest may have devices open for a while after the
 * guest's end, so a timer repeats this. */
static void clean_used(Manager *m) {
        Settle *settle = &m->settle;
        bool done = true;
        int r;

        m->notes.cleaning_due = false;
        settle->cleaning_timer = sd_event_source_disable_unref(settle->cleaning_timer);
        for (size_t i = 0; i < m->host.ledger->n_quarantined; i++)
                done = manager_clean_used(m, m->host.ledger->quarantined[i]->devices[0].address) && done;
        if (done)
                return;
        settle->cleaning_delay =
                settle->cleaning_delay == 0 ? 1 : MIN(2 * settle->cleaning_delay, CLEANING_DELAY_MAX_SEC);
        r = sd_event_add_time_relative(m->event, &settle->cleaning_timer, CLOCK_MONOTONIC,
                                       settle->cleaning_delay * UINT64_C(1000000), 0, on_cleaning, m);
        if (r < 0)
                log_warning_errno(r, "Devices that are in use are cleaned when a guest starts or ends, ignoring: %m");
}

/* Does the work on devices that had to wait while a job or an orphan worked on them. */
static void handle_released(Manager *m) {
        if (!m->notes.released)
                return;
        m->notes.released = false;
        manager_handle_kept_uevents(m);
        manager_attributes_job_gone(m);
        manager_probe_gpus(m);
}

static void update_watches(Manager *m) {
        Notes *n = &m->notes;

        if (n->reloaded) {
                manager_follow_fabric(m);
                manager_follow_endpoints(m);
                manager_probe_gpus_again(m);
                /* A pool may have got a device that a guest has. */
                n->guests_due = true;
        }
        n->reloaded = false;
        if (n->guests_due)
                manager_find_guests(m);
        n->guests_due = false;
        if (n->n_unchecked > 0)
                manager_check_health_of(m, n->unchecked, n->n_unchecked);
        n->n_unchecked = 0;
}

void manager_settle(Manager *m) {
        /* 1. Update the watches. Read facts that could not be read before. Serve calls that waited for libvirt. */
        update_watches(m);
        handle_released(m);
        if (m->notes.guests_answered > 0)
                server_guests_listed(m->told.server, m->notes.guests_answered);
        m->notes.guests_answered = 0;
        /* 2. Start the work that follows from the notes and that no caller has asked for. */
        if (m->notes.services_due)
                manager_start_services(m);
        m->notes.services_due = false;
        if (m->announced && m->notes.guests_read)
                release_abandoned(m);
        if (m->announced && m->notes.cleaning_due)
                clean_used(m);
        if (m->announced && m->notes.changes_due)
                manager_continue_changes(m);
        if (m->announced && m->notes.promises_unchecked)
                settle_retry_resumes(m);
        settle_continue_start(m);
        /* 3. Check the promises, after step 2: allocations that are about to be resumed are left out. */
        settle_promises(m);
        /* 4. Tell the journal and the clients what has changed. */
        settle_tell(m);
        /* 5. At the end of startup, announce the daemon to clients, and then to systemd. */
        if (!m->announced && m->settle.phase == START_DONE)
                settle_announce(m);
        if (m->announced && !m->ready && !server_waits_for_bus(m->told.server))
                tell_ready(m);
        store_prepare(m->store);
        /* Stuck jobs do not delay the exit. */
        if (m->stopping && job_queue_active(&m->jobs) == 0)
                (void) sd_event_exit(m->event, 0);
}

void settle_done(Settle *s) {
        (void) free_names(s->queue, s->n_queue);
        free(s->round);
        free(s->tried);
        sd_event_source_disable_unref(s->cleaning_timer);
}
