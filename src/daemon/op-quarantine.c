/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Quarantine. A device stays out of use until an admin clears it, if its release failed, if it was stuck when it
 * was to be released, or if an allocation has used it and its pool has OneTimeUse=yes. A device that a guest of
 * Nova has used stays in quarantine until the daemon has cleaned it. */

#include "facts.h"
#include "operations.h"

#include <errno.h>
#include <systemd/sd-id128.h>

#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

static JobResult clear_finished(Manager *m, Job *job, JobResult result);
static void clear_failed(Manager *m, Job *job, const Step *step, const char *message);

static const JobKind clear_kind = {
        .verb = "clear-quarantine",
        .device_failed = clear_failed,
        .finished = clear_finished,
};

/* Puts the device in quarantine in memory, even if the write to disk fails. Returns 0, or a negative errno when it is
 * not on disk or not in memory. */
static int quarantine(Manager *m, const Allocation *a, const AllocationDevice *d, const char *evidence) {
        _cleanup_(cleanup_allocation_free) Allocation *rest = allocation_reduce(a, d, evidence);
        PciAddress address = d->address;
        int r;

        /* When an admin clears the quarantine, fatal errors are not compared, because the admin has seen them. */
        if (rest)
                rest->devices[0].has_fatal = false;
        r = rest ? store_save_quarantined(m->store, rest) : -ENOMEM;

        if (r < 0)
                log_full(LOG_ERR, r, (&(LogFields) { .id = MESSAGE_LEDGER_WRITE, .allocation = a->name }),
                         "Failed to write the quarantine of %s to disk: %m", PCI_ADDRESS_STR(address));
        if (rest && ledger_quarantine(m->host.ledger, rest) == 0)
                TAKE_PTR(rest);
        else
                return -ENOMEM;
        note_event(m, HISTORY_QUARANTINED, address, a, "%s is in quarantine: %s", PCI_ADDRESS_STR(address), evidence);
        note_device(m, address);
        return r;
}

void manager_device_failed(Manager *m, Job *job, const Step *step, const char *message) {
        const Allocation *a = ledger_find(m->host.ledger, job->subject);
        const AllocationDevice *d = a ? allocation_find_device(a, step_failed_device(step)) : NULL;

        if (d && quarantine(m, a, d, message) < 0)
                job->unsaved = true;
}

int manager_quarantine_used(Manager *m, const Allocation *a) {
        int r = 0;

        for (size_t i = 0; i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];
                const Pool *pool = d->pool ? config_find_pool(m->host.config, d->pool) : NULL;
                const PciDevice *dev = inventory_find(m->host.inventory, d->address);
                _cleanup_free_ char *evidence = NULL;

                /* Skip another card at the address of the allocated one: no guest has used it. */
                if (d->lost || (dev && !allocation_device_is(d, dev)))
                        continue;
                if (!pool || !pool->one_time_use || d->role == DEVICE_ROLE_HELD ||
                    ledger_find_quarantined(m->host.ledger, d->address))
                        continue;
                if (string_replace(&evidence, "'%s' has used it, and pool '%s' has OneTimeUse=yes.", a->name,
                                   pool->name) < 0 ||
                    quarantine(m, a, d, evidence) < 0)
                        r = -EIO;
        }
        return r;
}

int manager_quarantine_stuck(Manager *m, const Allocation *a) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];
                const char *message = device_status_get(&m->host.status, d->address, DEVICE_STUCK);

                if (message && !ledger_find_quarantined(m->host.ledger, d->address))
                        r = quarantine(m, a, d, message);
        }
        return r;
}

/* Starts the job. Before its first step, writes to disk that the quarantine is being cleared, so that a start after a
 * crash finishes the work. */
static Verdict start_clearing(Manager *m, Allocation *rest, uint32_t *ret_job, Refusal *ret) {
        PciAddress device = rest->devices[0].address;
        AfterRelease after = rest->had_domain ? AFTER_RELEASE_KEEP : manager_after_release(&m->host, rest);
        _cleanup_(cleanup_step_list_free) StepList *steps = NULL;
        Verdict v;
        int r;

        if (steps_release(rest, m->host.inventory, after, rest->had_domain, &steps) < 0 ||
            steps_reset(rest, m->host.inventory, m->host.config, steps) < 0 ||
            (rest->had_domain && steps_clean(rest, m->host.config, steps) < 0) ||
            /* check is false: an admin who clears the quarantine of a GPU has seen what the driver tells about its
               health. */
            steps_return_gpus(rest, m->host.inventory, false, steps) < 0)
                return refuse_no_memory(ret);
        rest->state = ALLOCATION_RELEASING;
        r = store_save_quarantined(m->store, rest);
        v = r < 0 ? refuse_storage(ret, r)
                  : manager_start_job(m, &clear_kind, PCI_ADDRESS_STR(device), TAKE_PTR(steps), &device, 1, ret_job,
                                      ret);
        if (v != VERDICT_NONE)
                rest->state = ALLOCATION_FAILED;
        return v;
}

Verdict manager_clear_quarantine(Manager *m, PciAddress device, uint32_t *ret_job, Refusal *ret) {
        Allocation *rest = ledger_find_quarantined(m->host.ledger, device);
        const Allocation *holder = ledger_holder(m->host.ledger, device);
        Verdict v = manager_check_may_change(m, ret);

        if (v != VERDICT_NONE)
                return v;
        if (!rest)
                return refuse(ret, VERDICT_WRONG_STATE, &device,
                              "'passthroughctl quarantine' lists the devices in quarantine.",
                              "%s is not in quarantine.", PCI_ADDRESS_STR(device));
        if (holder)
                return refuse(ret, VERDICT_ALLOCATED, &device, "Release the allocation first.", "%s is held by '%s'.",
                              PCI_ADDRESS_STR(device), holder->name);
        v = manager_check_blocked(m, rest, false, ret);
        if (v != VERDICT_NONE)
                return v;
        if (manager_refresh(m, &device, 1, false) < 0)
                return refuse_no_memory(ret);
        v = manager_check_use(m, rest, USE_RELEASE, ret);
        if (v != VERDICT_NONE)
                return v;
        v = start_clearing(m, rest, ret_job, ret);
        /* The disk may say that the quarantine is being cleared, and then the next start would do it. Write the old
         * entry. If this write fails too, the device stays in quarantine until the next start. */
        if (v != VERDICT_NONE)
                (void) store_save_quarantined(m->store, rest);
        return v;
}

bool manager_resume_clearing(Manager *m, PciAddress device, uint32_t *ret_job) {
        Allocation *rest = ledger_find_quarantined(m->host.ledger, device);
        _cleanup_refusal_ Refusal refusal = { 0 };
        Verdict v;

        if (!rest || rest->state != ALLOCATION_RELEASING)
                return false;
        v = manager_check_use(m, rest, USE_RELEASE, &refusal);
        if (v == VERDICT_NONE)
                v = start_clearing(m, rest, ret_job, &refusal);
        if (v != VERDICT_NONE)
                log_full(LOG_WARNING, 0, (&(LogFields) { .device = PCI_ADDRESS_STR(device) }),
                         "%s stays in quarantine, ignoring: %s", PCI_ADDRESS_STR(device), refusal.message);
        return v == VERDICT_NONE;
}

/* Makes the quarantine entry of a device that a guest of Nova has used. The entry has the name of the pool, because no
 * allocation has had the device. */
static Allocation *make_used(const Manager *m, const PciDevice *dev, const char *message) {
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;
        HostView view = host_state_view(&m->host);
        Allocation *rest;
        sd_id128_t id;

        if (plan_single(&view, dev, &a) < 0 || string_copy(&a->name, policy_pool(m->host.policy, dev)->name) < 0 ||
            sd_id128_randomize(&id) < 0 || store_next_generation(m->store, &a->generation) < 0)
                return NULL;
        (void) sd_id128_to_uuid_string(id, a->id);
        rest = allocation_reduce(a, allocation_find_device(a, dev->address), message);
        if (rest)
                rest->had_domain = true;
        return rest;
}

void manager_note_used(Manager *m, PciAddress device, const char *message) {
        const PciDevice *dev = inventory_find(m->host.inventory, device);
        _cleanup_(cleanup_allocation_free) Allocation *rest = NULL;
        int r;

        if (!dev || ledger_find_quarantined(m->host.ledger, device) ||
            manager_check_may_change(m, NULL) != VERDICT_NONE)
                return;
        rest = make_used(m, dev, message);
        r = rest ? store_save_quarantined(m->store, rest) : -ENOMEM;
        if (rest && ledger_quarantine(m->host.ledger, rest) == 0)
                TAKE_PTR(rest);
        if (r < 0)
                log_full(LOG_ERR, r, (&(LogFields) { .id = MESSAGE_LEDGER_WRITE, .device = PCI_ADDRESS_STR(device) }),
                         "Failed to note that %s has to be cleaned: %m", PCI_ADDRESS_STR(device));
}

bool manager_clean_used(Manager *m, PciAddress device) {
        Allocation *rest = ledger_find_quarantined(m->host.ledger, device);
        _cleanup_refusal_ Refusal refusal = { 0 };
        uint32_t job;

        if (!rest || !rest->had_domain || rest->state != ALLOCATION_FAILED ||
            device_status_get(&m->host.status, device, DEVICE_ASSIGNED) ||
            manager_check_may_change(m, NULL) != VERDICT_NONE)
                return true;
        if (manager_clear_quarantine(m, device, &job, &refusal) == VERDICT_NONE)
                return true;
        /* Store the refusal as the reason, from which an admin sees why the device is not free. */
        if (!streq_ptr(rest->reason, refusal.message) && string_copy(&rest->reason, refusal.message) >= 0)
                note_device(m, device);
        return false;
}

/* Handles a device that failed while its quarantine was being cleared: it stays in quarantine until an admin clears it
 * again. */
static void clear_failed(Manager *m, Job *job, const Step *step _unused_, const char *message) {
        Allocation *rest = ledger_find_quarantined(m->host.ledger, job->devices[0]);

        rest->state = ALLOCATION_FAILED;
        rest->had_domain = false;
        (void) string_copy(&rest->reason, message);
        job_set_message(job, message);
        if (store_save_quarantined(m->store, rest) < 0)
                job->unsaved = true;
        note_event(m, HISTORY_QUARANTINED, job->devices[0], rest, "%s is in quarantine: %s",
                   PCI_ADDRESS_STR(job->devices[0]), message);
}

static JobResult clear_finished(Manager *m, Job *job, JobResult result) {
        PciAddress device = job->devices[0];
        _cleanup_(cleanup_allocation_free) Allocation *rest = NULL;
        int r;

        if (result != JOB_TIMEOUT)
                (void) manager_refresh(m, &device, 1, false);
        if (result == JOB_DONE && ledger_find_quarantined(m->host.ledger, device)->state == ALLOCATION_FAILED)
                result = JOB_FAILED;
        if (result != JOB_DONE) {
                Allocation *still = ledger_find_quarantined(m->host.ledger, device);

                /* JOB_FAILED: the job has undone its changes, for example because the device is in use. Keep
                 * had_domain, so that a later attempt cleans the device. If the device itself failed, clear_failed()
                 * has reset had_domain. */
                still->had_domain = still->had_domain && result == JOB_FAILED;
                still->state = ALLOCATION_FAILED;
                /* After another result, the disk keeps the entry of start_clearing(), and the next start of the daemon
                 * tries again. */
                r = result == JOB_FAILED ? store_save_quarantined(m->store, still) : 0;
                if (r < 0)
                        log_full(LOG_ERR, r,
                                 (&(LogFields) { .id = MESSAGE_LEDGER_WRITE, .device = PCI_ADDRESS_STR(device) }),
                                 "Failed to write that %s could not be cleared: %m", PCI_ADDRESS_STR(device));
                return result;
        }
        r = store_remove_quarantined(m->store, device);
        if (r < 0) {
                log_full(LOG_ERR, r, (&(LogFields) { .id = MESSAGE_LEDGER_WRITE, .device = PCI_ADDRESS_STR(device) }),
                         "Failed to remove %s from the quarantine on disk: %m", PCI_ADDRESS_STR(device));
                job_set_message(job, "The device could not be removed from the quarantine on disk.");
                return JOB_FAILED;
        }
        rest = ledger_unquarantine(m->host.ledger, device);
        note_event(m, HISTORY_CLEARED, device, NULL, "%s is out of quarantine.", PCI_ADDRESS_STR(device));
        note_unchecked(m, device);
        return result;
}
