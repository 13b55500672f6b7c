/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attach gives an allocation further devices. Before the job begins they become part of the allocation, in the phase
 * attaching. They are removed from it when the job fails and its changes are undone, and detached after a crash. Detach
 * takes a device from an allocation. Before the job begins, the phase of the device becomes detaching, on disk too, so
 * that a start after a crash repeats the detach.
 */

#include <errno.h>

#include "facts.h"
#include "guest/coherent.h"
#include "guest/domxml.h"
#include "guest/guestpci.h"
#include "guest/iommufd.h"
#include "operations.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/strings.h"

static void attach_begun(Manager *m, Job *job);
static Verdict attach_check(Manager *m, const Job *job, Refusal *ret);
static void attach_placed(Manager *m, const Job *job, const Step *step, const char *place);
static JobResult attach_finished(Manager *m, Job *job, JobResult result);

static const JobKind attach_kind = {
        .verb = "attach",
        .begun = attach_begun,
        .check = attach_check,
        .found = manager_found_attributes,
        .all_found = manager_all_attributes_found,
        .placed = attach_placed,
        .finished = attach_finished,
};

/* The assigned devices and companions of an allocation that are being attached or detached, each with the text of its
 * <hostdev>. */
typedef struct Hostdevs {
        PciAddress *devices;
        char **texts;
        size_t n;
} Hostdevs;

static void hostdevs_done(Hostdevs *h) {
        (void) free_names(h->texts, h->n);
        free(h->devices);
}

/* Makes the Hostdevs of `a`. They are empty while libvirt does not report which guests run. */
static Verdict make_hostdevs(const Manager *m, const Allocation *a, Hostdevs *ret, Refusal *ret_refusal) {
        _cleanup_(cleanup_allocation_free) Allocation *whole = allocation_with_all(a),
                                                      *part = allocation_changing_part(a);
        Verdict v = VERDICT_NONE;

        if (!whole || !part)
                return refuse_no_memory(ret_refusal);
        ret->devices = calloc(part->n_devices + 1, sizeof(*ret->devices));
        ret->texts = calloc(part->n_devices + 1, sizeof(*ret->texts));
        if (!ret->devices || !ret->texts)
                return refuse_no_memory(ret_refusal);
        for (size_t i = 0; v == VERDICT_NONE && manager_knows_guests(m) && i < whole->n_devices; i++) {
                PciAddress address = whole->devices[i].address;

                if (!guest_pci_shows(&whole->devices[i]) || !allocation_find_device(part, address))
                        continue;
                v = domxml_hostdev_anywhere(m->host.inventory, m->host.config, whole, i, &ret->texts[ret->n],
                                            ret_refusal);
                if (v == VERDICT_NONE)
                        ret->devices[ret->n++] = address;
        }
        return v;
}

/* Removes from `a`, in the ledger and on disk, the devices that are being attached or detached. Returns the new
 * allocation, which replaces `a`; `a` is freed. NULL on a failure, which leaves `a` as it is. */
static Allocation *drop_changing(Manager *m, Allocation *a) {
        _cleanup_(cleanup_allocation_free) Allocation *b = allocation_settled_part(a),
                                                      *part = allocation_changing_part(a);
        Allocation *rest = b;

        if (!b || !part)
                return NULL;
        b->status.halted = false;
        if (manager_replace_allocation(m, a, &b, NULL) != VERDICT_NONE)
                return NULL;
        manager_forget_attributes(m, part);
        note_devices_of(m, part);
        note_allocation(m, rest);
        /* A removed device may have broken a promise, also to another allocation. */
        note_facts(m);
        return rest;
}

/* Refuses when the devices of `a`, or the devices of its guest, cannot be changed now. */
static Verdict check_guest_changeable(const Manager *m, const Allocation *a, Refusal *ret) {
        if (a->state != ALLOCATION_READY)
                return refuse(ret, VERDICT_WRONG_STATE, NULL, "Release it.", "'%s' is %s.", a->name,
                              allocation_state_to_string(a->state));
        if (a->status.domain && m->host.config->hypervisor == HYPERVISOR_XEN)
                return refuse(
                        ret, VERDICT_NOT_SUPPORTED, NULL, "Shut the guest down first, then try again.",
                        "The domain '%s' runs with '%s', and the daemon does not change the devices of a guest of "
                        "Xen while it runs.",
                        a->status.domain, a->name);
        if (manager_may_miss_guests(m))
                return refuse(ret, VERDICT_BUSY, NULL, "Check libvirt, or set Libvirt= to nothing if it has no guests.",
                              "Whether a guest runs with '%s' is unknown: %s", a->name,
                              m->host.libvirt.reason ?: "libvirt was not asked.");
        return VERDICT_NONE;
}

/* Returns a copy of `a` to which the devices of `part` are moved, in the phase attaching. NULL when out of memory. */
static Allocation *extend(const Allocation *a, Allocation *part) {
        _cleanup_(cleanup_allocation_free) Allocation *b = allocation_copy(a);

        for (size_t i = 0; i < part->n_devices; i++)
                part->devices[i].phase = DEVICE_PHASE_ATTACHING;
        return b && allocation_take_devices(b, part) >= 0 ? TAKE_PTR(b) : NULL;
}

/* Refuses when not all devices of `b` have a place in the guest at its next start. */
static Verdict check_layout(const Manager *m, const Allocation *b, Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *whole = allocation_with_all(b);

        if (!whole)
                return refuse_no_memory(ret);
        return guest_topology_choose(m->host.inventory, b->topology, whole, ret);
}

static Verdict start_attach(Manager *m, const Allocation *a, uint32_t *ret_job, Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *part = allocation_changing_part(a);
        _cleanup_(cleanup_step_list_free) StepList *steps = NULL;
        _cleanup_(hostdevs_done) Hostdevs hostdevs = { 0 };
        Verdict v;

        if (!part)
                return refuse_no_memory(ret);
        v = make_hostdevs(m, a, &hostdevs, ret);
        if (v != VERDICT_NONE)
                return v;
        if (steps_prepare(part, m->host.inventory, &steps) < 0 ||
            steps_around_services(part, m->host.config, steps) < 0 || steps_check_health(part, steps) < 0 ||
            (m->host.config->hypervisor != HYPERVISOR_XEN &&
             steps_plug(a, manager_find_uuid(m, a), hostdevs.devices, hostdevs.texts, hostdevs.n, steps) < 0))
                return refuse_no_memory(ret);
        return manager_start_job(m, &attach_kind, a->name, TAKE_PTR(steps), NULL, 0, ret_job, ret);
}

/* Adds the devices of `part` to `a`, and starts the job that attaches them. */
static Verdict attach(Manager *m, Allocation *a, Allocation *part, uint32_t *ret_job, Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *b = extend(a, part);
        Allocation *extended = b;
        Verdict v = b ? manager_next_generation(m, b, ret) : refuse_no_memory(ret);

        if (v == VERDICT_NONE)
                v = check_layout(m, b, ret);
        if (v == VERDICT_NONE)
                v = manager_replace_allocation(m, a, &b, ret);
        if (v != VERDICT_NONE)
                return v;
        v = start_attach(m, extended, ret_job, ret);
        if (v != VERDICT_NONE && drop_changing(m, extended))
                return v;
        extended->status.halted = v != VERDICT_NONE;
        note_allocation(m, extended);
        return v;
}

Verdict manager_attach(Manager *m, const char *name, uint64_t generation, const Request *request, uint32_t *ret_job,
                       Refusal *ret) {
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        Allocation *a = ledger_find(m->host.ledger, name);
        Verdict v = manager_check_state(m, a, name, generation, ret);

        if (v == VERDICT_NONE)
                v = manager_check_blocked(m, a, false, ret);
        if (v == VERDICT_NONE)
                v = check_guest_changeable(m, a, ret);
        if (v == VERDICT_NONE && allocation_is_changing(a))
                v = refuse(ret, VERDICT_WRONG_STATE, NULL, "Detach these devices first.",
                           "'%s' has devices that are neither attached nor detached.", name);
        if (v == VERDICT_NONE && a->reason)
                v = refuse(ret, VERDICT_WRONG_STATE, NULL, NULL, "%s", a->reason);
        if (v == VERDICT_NONE)
                v = job_queue_check_room(&m->jobs, ret);
        if (v == VERDICT_NONE)
                v = manager_plan_idle(m, request, a, &plan, ret);
        if (v == VERDICT_NONE)
                v = manager_check_drivers(&m->host, plan->allocation, ret);
        if (v != VERDICT_NONE)
                return v;
        manager_note_serials(m, plan->allocation);
        v = host_state_assign_identities(&m->host, plan->allocation, ret);
        return v != VERDICT_NONE ? v : attach(m, a, plan->allocation, ret_job, ret);
}

static void attach_begun(Manager *m, Job *job) {
        _cleanup_(cleanup_allocation_free) Allocation *part = allocation_changing_part(manager_find_subject(m, job));

        if (part)
                note_allocation_event(m, HISTORY_RESERVED, part, NULL);
}

static Verdict attach_check(Manager *m, const Job *job, Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *part = allocation_changing_part(manager_find_subject(m, job));

        return part ? manager_check_use_again(m, part, USE_ALLOCATE, ret) : refuse_no_memory(ret);
}

/* Stores the place that the device got in the running guest; settle() writes it to disk. Without a running guest, the
 * place is that in the domain's definition, and is not stored. */
static void attach_placed(Manager *m, const Job *job, const Step *step, const char *place) {
        const Allocation *a = ledger_find(m->host.ledger, job->subject);

        for (size_t i = 0; a && a->status.domain && i < a->n_devices; i++)
                if (pci_address_equal(a->devices[i].address, step->device))
                        (void) guest_place_parse(place, &a->devices[i].guest);
}

static bool has_coherent(const Allocation *a, const Allocation *part) {
        for (size_t i = 0; i < part->n_devices; i++)
                if (memory_cells_first(a, 1, allocation_find_device(a, part->devices[i].address)) >= 0)
                        return true;
        return false;
}

/* Sets the message of the job to what the guest lacks for the new devices. A running guest uses iommufd for all its
 * devices or for none, and an attached device cannot change that. A guest learns from its firmware at its start which
 * NUMA nodes are for the memory of GPUs, so the memory of an attached GPU has no NUMA node. */
static void tell_lacks(const Manager *m, Job *job, const Allocation *a, const Allocation *part) {
        IommufdFacts facts = iommufd_facts(m->host.inventory, m->host.config, a);
        _cleanup_free_ char *text = NULL;

        if (job->iommufd && facts.n_devices > 1 && !iommufd_has_peers(&facts))
                text = iommufd_explain_lost_peers(&facts);
        if (has_coherent(a, part))
                (void) string_append(&text, " ",
                                     "The domain has no NUMA nodes for the memory of an attached GPU: define it again "
                                     "from 'passthroughctl xml' while it is shut down.");
        if (text)
                job_set_message(job, text);
}

static void set_phase(Allocation *a, const Allocation *part, DevicePhase phase) {
        for (size_t i = 0; i < a->n_devices; i++)
                if (allocation_find_device(part, a->devices[i].address))
                        a->devices[i].phase = phase;
}

static JobResult settle(Manager *m, Job *job, Allocation *a, const Allocation *part) {
        if (!allocation_is_bound(part, m->host.inventory)) {
                job_set_message(job, "All steps succeeded, but a device is not bound to its driver for guests.");
                a->status.halted = true;
                return JOB_FAILED_DIRTY;
        }
        set_phase(a, part, DEVICE_PHASE_SETTLED);
        /* The disk still says attaching, so the next start detaches the devices. Say so in memory too. */
        if (manager_set_state(m, a, a->state, a->reason) < 0) {
                set_phase(a, part, DEVICE_PHASE_ATTACHING);
                a->status.halted = true;
                job_set_message(job, "The devices are attached, but the ledger could not be written. Detach them, and "
                                     "attach them again.");
                return JOB_FAILED_DIRTY;
        }
        tell_lacks(m, job, a, part);
        note_allocation_event(m, HISTORY_READY, part, NULL);
        manager_forget_attributes(m, part);
        note_facts(m);
        return JOB_DONE;
}

/* Returns a copy of the devices that are being changed, after reading their state. NULL when out of memory. */
static Allocation *read_changing_part(Manager *m, const Allocation *a, JobResult result) {
        Allocation *part = allocation_changing_part(a);

        /* After a timeout the child may still hold the device locks, on which a read would block. */
        if (part && result != JOB_TIMEOUT)
                (void) manager_refresh_groups(m, part);
        return part;
}

static JobResult attach_finished(Manager *m, Job *job, JobResult result) {
        Allocation *a = manager_find_subject(m, job);
        _cleanup_(cleanup_allocation_free) Allocation *part = read_changing_part(m, a, result);

        if (part && result == JOB_DONE)
                return settle(m, job, a, part);
        if (part && result == JOB_FAILED && drop_changing(m, a))
                return result;
        a->status.halted = true;
        note_allocation(m, a);
        return result == JOB_DONE ? JOB_FAILED_DIRTY : result;
}

static Verdict detach_check(Manager *m, const Job *job, Refusal *ret);
static JobResult detach_finished(Manager *m, Job *job, JobResult result);

static const JobKind detach_kind = {
        .verb = "detach",
        .check = detach_check,
        .device_failed = manager_device_failed,
        .finished = detach_finished,
};

/* Refuses when a process that is stuck at a device may be plugging it in or out, because the guest may have that
 * device. Refuses also as manager_check_releasable() does. Other stuck devices do not matter: the detach puts them in
 * quarantine. */
static Verdict check_stuck(const Manager *m, const Allocation *a, Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *part = allocation_changing_part(a);

        if (!part)
                return refuse_no_memory(ret);
        for (size_t i = 0; i < part->n_devices; i++)
                if (job_queue_may_plug(&m->jobs, part->devices[i].address))
                        return manager_check_blocked(m, part, false, ret);
        return manager_check_releasable(m, part, ret);
}

static Verdict start_detach(Manager *m, const Allocation *a, const Hostdevs *hostdevs, uint32_t *ret_job,
                            Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *part = allocation_changing_part(a);
        _cleanup_(cleanup_step_list_free) StepList *steps = NULL;
        int r;

        if (!part)
                return refuse_no_memory(ret);
        if (steps_release(part, m->host.inventory, manager_after_release(&m->host, part), true, &steps) < 0 ||
            steps_reset(part, m->host.inventory, m->host.config, steps) < 0 ||
            steps_clean(part, m->host.config, steps) < 0 ||
            steps_return_gpus(part, m->host.inventory, true, steps) < 0 ||
            (m->host.config->hypervisor != HYPERVISOR_XEN &&
             steps_unplug(part, manager_find_uuid(m, a), hostdevs->devices, hostdevs->texts, hostdevs->n, steps) < 0))
                return refuse_no_memory(ret);
        r = manager_quarantine_stuck(m, part);
        if (r < 0)
                return refuse_storage(ret, r);
        manager_leave_out_quarantined(m->host.ledger, steps);
        return manager_start_job(m, &detach_kind, a->name, TAKE_PTR(steps), NULL, 0, ret_job, ret);
}

/* Refuses when a process uses a device that is being detached. A running guest has it open, but the job makes the guest
 * release it. A guest of Xen cannot be made to. */
static Verdict check_use(Manager *m, const Allocation *b, Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *part = allocation_changing_part(b);

        if (!part || manager_refresh_groups(m, part) < 0)
                return refuse_no_memory(ret);
        return b->status.domain && m->host.config->hypervisor != HYPERVISOR_XEN
                       ? VERDICT_NONE
                       : manager_check_use(m, part, USE_RELEASE, ret);
}

static Verdict detach(Manager *m, Allocation *a, const char *slot, uint32_t *ret_job, Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *b = allocation_copy(a);
        _cleanup_(hostdevs_done) Hostdevs hostdevs = { 0 };
        HostView view = host_state_view(&m->host);
        Allocation *marked = b;
        Verdict v = b ? manager_next_generation(m, b, ret) : refuse_no_memory(ret);

        if (v == VERDICT_NONE)
                v = plan_detach(&view, b, slot, ret);
        if (v == VERDICT_NONE)
                v = check_stuck(m, b, ret);
        if (v == VERDICT_NONE)
                v = check_use(m, b, ret);
        if (v == VERDICT_NONE)
                v = make_hostdevs(m, b, &hostdevs, ret);
        if (v != VERDICT_NONE)
                return v;
        b->status.halted = false;
        v = manager_replace_allocation(m, a, &b, ret);
        if (v == VERDICT_NONE)
                v = start_detach(m, marked, &hostdevs, ret_job, ret);
        if (ledger_find(m->host.ledger, marked->name) == marked) {
                marked->status.halted = v != VERDICT_NONE;
                note_allocation(m, marked);
        }
        return v;
}

Verdict manager_detach(Manager *m, const char *name, uint64_t generation, const char *slot, uint32_t *ret_job,
                       Refusal *ret) {
        Allocation *a = ledger_find(m->host.ledger, name);
        Verdict v = manager_check_state(m, a, name, generation, ret);

        if (v == VERDICT_NONE)
                v = check_guest_changeable(m, a, ret);
        if (v == VERDICT_NONE)
                v = job_queue_check_room(&m->jobs, ret);
        return v != VERDICT_NONE ? v : detach(m, a, slot, ret_job, ret);
}

static Verdict detach_check(Manager *m, const Job *job, Refusal *ret) {
        return check_use(m, manager_find_subject(m, job), ret);
}

/* Returns true when the job has left the device in the state from before the job. */
static bool is_unchanged(const Job *job) {
        bool unplugs = job->steps->n > 0 && job->steps->steps[0].kind == STEP_UNPLUG;

        return !job->resumed && (!unplugs || (job->current == 0 && job->error != -ETIMEDOUT));
}

static JobResult fail(Manager *m, const Job *job, Allocation *a, JobResult result) {
        const Step *step = job_current(job);
        bool kept = step && step->kind == STEP_UNPLUG && job->current == 0 && job->error == -EBUSY;
        DevicePhase phase = kept ? DEVICE_PHASE_KEPT : DEVICE_PHASE_SETTLED;

        /* A device that was stuck is in quarantine. It must not become a device of the guest again. */
        a->status.halted = ledger_find_quarantined_of(m->host.ledger, a) ||
                           (!kept && !(result == JOB_FAILED && is_unchanged(job)));
        for (size_t i = 0; !a->status.halted && i < a->n_devices; i++)
                if (a->devices[i].phase == DEVICE_PHASE_DETACHING)
                        a->devices[i].phase = phase;
        (void) manager_set_state(m, a, a->state, a->reason);
        note_facts(m);
        return result;
}

static JobResult detach_finished(Manager *m, Job *job, JobResult result) {
        Allocation *a = manager_find_subject(m, job);
        _cleanup_(cleanup_allocation_free) Allocation *part = read_changing_part(m, a, result);

        if (result != JOB_DONE || !part)
                return fail(m, job, a, result == JOB_DONE ? JOB_FAILED_DIRTY : result);
        if (manager_quarantine_used(m, part) < 0 || job->unsaved || !drop_changing(m, a)) {
                job_set_message(job, "The device is returned, but the ledger could not be written. Detach it again.");
                return fail(m, job, a, JOB_FAILED_DIRTY);
        }
        note_allocation_event(m, HISTORY_RELEASED, part, NULL);
        return JOB_DONE;
}

/* Repeats an interrupted detach. An interrupted attach is undone by a detach. */
static void continue_change(Manager *m, Allocation *a) {
        _cleanup_(hostdevs_done) Hostdevs hostdevs = { 0 };
        _cleanup_refusal_ Refusal refusal = { 0 };
        uint32_t job;
        Verdict v;

        for (size_t i = 0; i < a->n_devices; i++)
                if (!allocation_device_is_settled(&a->devices[i]))
                        a->devices[i].phase = DEVICE_PHASE_DETACHING;
        v = check_use(m, a, &refusal);
        if (v == VERDICT_NONE)
                v = make_hostdevs(m, a, &hostdevs, &refusal);
        if (v == VERDICT_NONE)
                v = manager_begin_state(m, a, a->state, &refusal);
        if (v == VERDICT_NONE)
                v = start_detach(m, a, &hostdevs, &job, &refusal);
        if (v == VERDICT_NONE) {
                job_queue_find(&m->jobs, job)->resumed = true;
                return;
        }
        a->status.halted = true;
        note_allocation(m, a);
        log_full(LOG_ERR, 0, (&(LogFields) { .allocation = a->name }), "Devices of '%s' are not detached: %s", a->name,
                 refusal.message);
}

void manager_continue_changes(Manager *m) {
        bool later = manager_may_miss_guests(m) || manager_check_may_change(m, NULL) != VERDICT_NONE;

        m->notes.changes_due = false;
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                Allocation *a = m->host.ledger->allocations[i];

                if (!allocation_is_changing(a) || a->status.halted)
                        continue;
                /* Leave an allocation for later while a job, an orphan or a round of settle.h may still work on its
                 * devices. */
                if (later || a->state == ALLOCATION_PREPARING || manager_is_arriving(m, a) ||
                    manager_check_blocked(m, a, true, NULL) != VERDICT_NONE || job_queue_has(&m->jobs, a->name) ||
                    job_queue_check_room(&m->jobs, NULL) != VERDICT_NONE)
                        m->notes.changes_due = true;
                else if (a->state == ALLOCATION_READY)
                        continue_change(m, a);
        }
}
