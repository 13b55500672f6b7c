/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Promises: made, kept and taken back. */

#include <errno.h>
#include <inttypes.h>
#include <systemd/sd-id128.h>

#include "daemon/manager.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

/* Plans made before the node is called too restless to plan on. */
#define PLAN_ATTEMPTS_MAX 4
/* Devices in use that are passed over; each costs a look at all processes. */
#define USED_MAX          8

static void prepare_begun(Manager *m, const ManagerJob *mj);
static JobResult prepare_finished(Manager *m, const ManagerJob *mj, JobResult result);
static void release_begun(Manager *m, const ManagerJob *mj);
static JobResult release_finished(Manager *m, const ManagerJob *mj, JobResult result);

static const JobKind prepare_kind = {
        .verb = "prepare",
        .begun = prepare_begun,
        .found = manager_found_attributes,
        .all_found = manager_all_attributes_found,
        .finished = prepare_finished,
};
static const JobKind release_kind = {
        .verb = "release",
        .begun = release_begun,
        .condemned = manager_condemned,
        .finished = release_finished,
};

Verdict manager_check_may_change(const Manager *m, Refusal *ret) {
        if (m->node.ledger->read_only)
                return refuse(ret, VERDICT_READ_ONLY, NULL, NULL, "%s", m->node.ledger->read_only);
        if (m->stopping)
                return refuse(ret, VERDICT_BUSY, NULL, "Try again when it is back.", "The daemon is stopping.");
        return VERDICT_NONE;
}

/* What hangs may be about a VF and yet be the PF's. */
Verdict manager_check_withheld(const Manager *m, const Allocation *a, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; v == VERDICT_NONE && i < a->n_devices; i++) {
                v = ledger_check_withheld(m->node.ledger, a->devices[i].address, ret);
                if (v == VERDICT_NONE && a->devices[i].is_vf)
                        v = ledger_check_withheld(m->node.ledger, a->devices[i].physfn, ret);
        }
        return v;
}

/* Devices of an allocation and what else is in their groups, read anew. As manager_refresh(). */
int manager_refresh_groups(Manager *m, const Allocation *a) {
        _cleanup_free_ PciAddress *devices = NULL;
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; r == 0 && i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(m->node.inventory, a->devices[i].address);
                const IommuGroup *g = dev ? inventory_find_group(m->node.inventory, dev->iommu_group) : NULL;

                if (dev && !g)
                        r = pci_address_append(&devices, &n, dev->address);
                for (size_t j = 0; g && r == 0 && j < g->n_members; j++)
                        r = pci_address_append(&devices, &n, m->node.inventory->devices[g->members[j]].address);
        }
        return r < 0 ? r : manager_refresh(m, devices, n, false);
}

/* A plan on facts that were true a moment ago: what it takes is read again, and if that differs it is made again. */
static Verdict plan_on_fresh_facts(Manager *m, const Request *request, Plan **ret, Refusal *ret_refusal) {
        if ((request->cpus > 0 && manager_refresh_nodes(m) < 0) || manager_refresh_host(m) < 0)
                return refuse(ret_refusal, VERDICT_LIMIT, NULL, NULL, "Out of memory.");
        for (int i = 0; i < PLAN_ATTEMPTS_MAX; i++) {
                _cleanup_(cleanup_plan_free) Plan *plan = NULL;
                PlanContext c = node_context(&m->node);
                Verdict v = plan_make(&c, request, &plan, ret_refusal);
                int r;

                if (v != VERDICT_NONE)
                        return v;
                r = manager_refresh_groups(m, plan->allocation);
                if (r < 0)
                        return refuse(ret_refusal, VERDICT_LIMIT, NULL, NULL, "Out of memory.");
                if (r > 0)
                        manager_publish_allocation(m, plan->allocation);
                if (r == 0) {
                        *ret = TAKE_PTR(plan);
                        return VERDICT_NONE;
                }
        }
        return refuse(ret_refusal, VERDICT_BUSY, NULL, "Find out what binds devices on this node.",
                      "Drivers change faster than a plan can be made.");
}

/* What somebody uses is left out, as long as there is another one; else who that is says more than a lack of devices.
 */
static Verdict plan_unused(Manager *m, const Request *request, Plan **ret, Refusal *ret_refusal) {
        PciAddress used[USED_MAX];
        bool again = true;
        size_t n = 0;
        Verdict v = VERDICT_NONE;

        while (again) {
                _cleanup_refusal_ Refusal why = { 0 };
                _cleanup_(cleanup_plan_free) Plan *plan = NULL;

                again = false;
                v = plan_on_fresh_facts(m, request, &plan, &why);
                if (v == VERDICT_NONE) {
                        v = manager_check_use(m, plan->allocation, USE_ALLOCATE, &why);
                        again = v == VERDICT_BUSY && why.has_device && n < ELEMENTSOF(used) &&
                                ledger_withhold(m->node.ledger, why.device, v, "Somebody uses it.") == 0;
                }
                if (again)
                        used[n++] = why.device;
                if (v == VERDICT_NONE) {
                        *ret = TAKE_PTR(plan);
                        refusal_done(ret_refusal);
                } else if (ret_refusal->verdict == VERDICT_NONE) {
                        *ret_refusal = why;
                        why = (Refusal){ 0 };
                }
        }
        while (n > 0)
                ledger_unwithhold(m->node.ledger, used[--n]);
        return v == VERDICT_NONE ? v : ret_refusal->verdict;
}

static Verdict refuse_storage(Refusal *ret, int error) {
        return refuse(ret, VERDICT_READ_ONLY, NULL, "Make room, or mend the file system of the state directory.",
                      "The ledger could not be written: %s.", strerror(-error));
}

/* Who will ask why the screen is dark finds it in the journal. */
static void log_forced(const Manager *m, const Allocation *a) {
        for (size_t i = 0; i < a->n_devices && a->forced; i++) {
                const PciDevice *dev = inventory_find(m->node.inventory, a->devices[i].address);
                const char *address = PCI_ADDRESS_STR(a->devices[i].address);

                if (dev && pci_device_is_display(dev))
                        log_full(LOG_WARNING, 0, (&(LogFields){ .device = address, .allocation = a->name }),
                                 "%s goes to '%s' by force of uid %u, though %s.", address, a->name, a->owner,
                                 dev->boot_vga ? "it is the boot VGA" : "the host's console is on it");
        }
}

/* Name, identity and generation; then into the ledger and onto disk. On VERDICT_NONE the ledger owns *a, which is NULL
 * then. */
static Verdict reserve(Manager *m, const char *name, uint32_t owner, Allocation **a, Refusal *ret) {
        Allocation *claimed = *a;
        sd_id128_t id;
        Verdict v;
        int r = string_copy(&claimed->name, name);

        if (r >= 0)
                r = sd_id128_randomize(&id);
        if (r >= 0)
                r = store_next_generation(m->store, &claimed->generation);
        if (r < 0)
                return refuse_storage(ret, r);
        (void) sd_id128_to_uuid_string(id, claimed->id);
        claimed->owner = owner;
        claimed->state = ALLOCATION_PREPARING;
        manager_note_serials(m, claimed);
        v = node_assign_identities(&m->node, claimed, ret);
        if (v == VERDICT_NONE)
                v = ledger_claim(m->node.ledger, m->node.inventory, m->node.config, claimed, ret);
        if (v != VERDICT_NONE)
                return v;
        r = store_save(m->store, claimed);
        if (r < 0) {
                /* A file whose directory could not be synced may be there all the same. */
                (void) store_remove(m->store, name);
                (void) ledger_remove(m->node.ledger, name);
                return refuse_storage(ret, r);
        }
        *a = NULL;
        return VERDICT_NONE;
}

/* Takes an allocation out of ledger and disk. When the disk refuses, it stays where it is: failed, to be released
 * again. */
static void forget(Manager *m, Allocation *a) {
        int r = store_remove(m->store, a->name);

        if (r < 0) {
                log_full(LOG_ERR, r, (&(LogFields){ .id = MESSAGE_LEDGER_WRITE, .allocation = a->name }),
                         "Failed to remove '%s' from the ledger on disk: %m", a->name);
                a->state = ALLOCATION_FAILED;
                (void) string_replace(
                        &a->reason,
                        "Its devices are back, but its file could not be removed from the ledger. Release it again.");
                server_allocation_changed(m->server, a->name);
                return;
        }
        a = ledger_remove(m->node.ledger, a->name);
        server_allocation_removed(m->server, a->name);
        manager_publish_allocation(m, a);
        manager_record_allocation(m, HISTORY_RELEASED, a, NULL);
        allocation_free(a);
}

void manager_set_state(Manager *m, Allocation *a, AllocationState state, const char *reason) {
        int r;

        a->state = state;
        if (string_copy(&a->reason, reason) < 0)
                a->reason = NULL;
        /* Not fatal: the file then says what was true before, and a restart does the missing part again. */
        r = m->node.ledger->read_only ? 0 : store_save(m->store, a);
        if (r < 0)
                log_full(LOG_ERR, r, (&(LogFields){ .id = MESSAGE_LEDGER_WRITE, .allocation = a->name }),
                         "Failed to write the state of '%s' to the ledger: %m", a->name);
        server_allocation_changed(m->server, a->name);
}

bool manager_is_bound(const Manager *m, const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(m->node.inventory, a->devices[i].address);

                if (!dev || !allocation_device_is(&a->devices[i], dev) ||
                    !streq_ptr(dev->driver, allocation_driver(a, &a->devices[i])))
                        return false;
        }
        return true;
}

Verdict manager_start_prepare(Manager *m, const Allocation *a, uint32_t *ret_job, Refusal *ret) {
        _cleanup_(cleanup_step_list_free) StepList *steps = NULL;

        if (steps_prepare(a, m->node.inventory, &steps) < 0 || steps_around_services(a, m->node.config, &steps) < 0 ||
            steps_make_regions(a, m->node.config, &steps) < 0)
                return refuse(ret, VERDICT_LIMIT, NULL, NULL, "Out of memory.");
        return manager_start_job(m, &prepare_kind, a->name, TAKE_PTR(steps), NULL, 0, ret_job, ret);
}

Verdict manager_allocate(Manager *m, const char *name, const Request *request, uint32_t owner, uint32_t *ret_job,
                         Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        Allocation *reserved;
        Verdict v = allocation_name_check(name, ret);

        if (v == VERDICT_NONE)
                v = manager_check_may_change(m, ret);
        if (v == VERDICT_NONE && ledger_find(m->node.ledger, name))
                v = refuse(ret, VERDICT_NAME_TAKEN, NULL, "Release it first, or take another name.",
                           "There is already an allocation '%s'.", name);
        if (v == VERDICT_NONE && m->n_jobs + manager_orphans(m) >= MANAGER_JOBS_MAX)
                v = refuse(ret, VERDICT_LIMIT, NULL, "Try again when some have ended.",
                           "%u jobs are at work, the most there can be.", MANAGER_JOBS_MAX);
        if (v == VERDICT_NONE)
                v = manager_check_regions(m, request, ret);
        if (v == VERDICT_NONE)
                v = plan_unused(m, request, &plan, ret);
        if (v != VERDICT_NONE)
                return v;
        a = TAKE_PTR(plan->allocation);
        reserved = a;
        v = reserve(m, name, owner, &a, ret);
        if (v != VERDICT_NONE)
                return v;
        log_forced(m, reserved);
        v = manager_start_prepare(m, reserved, ret_job, ret);
        if (v != VERDICT_NONE) {
                server_allocation_new(m->server, name);
                manager_record_allocation(m, HISTORY_RESERVED, reserved, NULL);
                forget(m, reserved);
                return v;
        }
        return VERDICT_NONE;
}

static void prepare_begun(Manager *m, const ManagerJob *mj) {
        const Allocation *a = ledger_find(m->node.ledger, job_subject(mj->job));

        if (mj->resumed)
                return;
        server_allocation_new(m->server, a->name);
        manager_publish_allocation(m, a);
        manager_record_allocation(m, HISTORY_RESERVED, a, NULL);
        log_full(LOG_INFO, 0, (&(LogFields){ .allocation = a->name }),
                 "Reserved '%s' for uid %u: %zu devices, %zu CPUs, %s of memory.", a->name, a->owner, a->n_devices,
                 a->n_pins, FORMAT_SIZE(allocation_memory(a)));
}

static JobResult prepare_finished(Manager *m, const ManagerJob *mj, JobResult result) {
        Allocation *a = ledger_find(m->node.ledger, job_subject(mj->job));

        /* Past its deadline the child may still hold the lock that reading would wait for. */
        if (result != JOB_TIMEOUT)
                (void) manager_refresh_groups(m, a);
        switch (result) {
        case JOB_DONE:
                if (!manager_is_bound(m, a)) {
                        job_set_message(mj->job, "All was done, but a device is not on the VFIO driver after all.");
                        manager_set_state(m, a, ALLOCATION_FAILED, job_message(mj->job));
                        return JOB_FAILED_DIRTY;
                }
                manager_set_state(m, a, ALLOCATION_READY, NULL);
                manager_record_allocation(m, HISTORY_READY, a, NULL);
                log_full(LOG_INFO, 0, (&(LogFields){ .allocation = a->name }), "'%s' is ready.", a->name);
                break;
        case JOB_FAILED:
                /* What an earlier run did is still done: only a release leads back to the beginning. */
                if (!mj->resumed) {
                        forget(m, a);
                        break;
                }
                /* fall through */
        default:
                manager_set_state(m, a, ALLOCATION_FAILED, job_message(mj->job));
                break;
        }
        return result;
}

/* One that was condemned before a restart stays where it is, as it does within one run. */
static void leave_out_quarantined(const Ledger *l, StepList *steps) {
        for (size_t i = steps->n; i-- > 0;)
                if (step_has_device(&steps->steps[i]) && ledger_find_quarantined(l, steps->steps[i].device))
                        step_list_remove(steps, i);
}

Verdict manager_start_release(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret) {
        AllocationState before = a->state;
        _cleanup_(cleanup_step_list_free) StepList *steps = NULL;
        Verdict v;
        int r;

        if (steps_release(a, m->node.inventory, manager_after_release(m, a), true, &steps) < 0 ||
            steps_clean(a, m->node.config, &steps) < 0 || steps_remove_regions(a, steps) < 0)
                return refuse(ret, VERDICT_LIMIT, NULL, NULL, "Out of memory.");
        leave_out_quarantined(m->node.ledger, steps);
        /* Intent first: from the first write on a crash must lead to the release being finished. */
        a->state = ALLOCATION_RELEASING;
        r = store_save(m->store, a);
        if (r < 0) {
                a->state = before;
                return refuse_storage(ret, r);
        }
        v = manager_start_job(m, &release_kind, a->name, TAKE_PTR(steps), NULL, 0, ret_job, ret);
        if (v != VERDICT_NONE) {
                manager_set_state(m, a, before, a->reason);
                return v;
        }
        manager_find_job(m, *ret_job)->before = before;
        server_allocation_changed(m->server, a->name);
        return VERDICT_NONE;
}

Verdict manager_check_tenancy(const Manager *m, const Allocation *a, const char *name, uint64_t generation,
                              Refusal *ret) {
        Verdict v = manager_check_may_change(m, ret);

        if (v != VERDICT_NONE)
                return v;
        if (!a)
                return refuse(ret, VERDICT_NO_SUCH_ALLOCATION, NULL, "'passthroughctl allocations' lists them.",
                              "There is no allocation '%s'.", QUOTABLE(name));
        if (a->generation != generation)
                return refuse(ret, VERDICT_STALE_GENERATION, NULL, "If you mean the present one, use its generation.",
                              "'%s' has generation %" PRIu64 " now, not %" PRIu64
                              ": it is not what that generation was given.",
                              name, a->generation, generation);
        /* One that was interrupted has no job while a process of an earlier daemon is at it. */
        v = manager_check_orphans(m, a, ret);
        if (v != VERDICT_NONE)
                return v;
        if (a->state != ALLOCATION_READY && a->state != ALLOCATION_FAILED)
                return refuse(ret, VERDICT_WRONG_STATE, NULL, "Wait for its job to end.", "'%s' is %s.", name,
                              allocation_state_to_string(a->state));
        /* When that is not known any more, who has a device open is. */
        if (a->domain && !m->guests_unread)
                return refuse(ret, VERDICT_BUSY, NULL, "Shut it down first.", "The domain '%s' runs with '%s'.",
                              QUOTABLE(a->domain), name);
        return manager_check_withheld(m, a, ret);
}

Verdict manager_release_now(Manager *m, Allocation *a, uint32_t *ret_job, Refusal *ret) {
        Verdict v = manager_check_withheld(m, a, ret);

        if (v != VERDICT_NONE)
                return v;
        if (manager_refresh_groups(m, a) < 0)
                return refuse(ret, VERDICT_LIMIT, NULL, NULL, "Out of memory.");
        manager_publish_allocation(m, a);
        v = manager_check_use(m, a, USE_RELEASE, ret);
        return v != VERDICT_NONE ? v : manager_start_release(m, a, ret_job, ret);
}

Verdict manager_release(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret) {
        Allocation *a;
        Verdict v;

        manager_look_for_guests(m);
        a = ledger_find(m->node.ledger, name);
        v = manager_check_tenancy(m, a, name, generation, ret);
        return v != VERDICT_NONE ? v : manager_release_now(m, a, ret_job, ret);
}

/* Only now: jobs with the same memory run one after the other, and who has it may have changed while this one waited.
 */
static void release_begun(Manager *m, const ManagerJob *mj) {
        manager_keep_shared(m, mj->job);
}

static JobResult release_finished(Manager *m, const ManagerJob *mj, JobResult result) {
        Allocation *a = ledger_find(m->node.ledger, job_subject(mj->job));

        /* Past its deadline the child may still hold the lock that reading would wait for. */
        if (result != JOB_TIMEOUT)
                (void) manager_refresh_groups(m, a);
        switch (result) {
        case JOB_DONE:
                if (manager_quarantine_used(m, a) < 0 || mj->unsaved) {
                        job_set_message(mj->job, "A device is in quarantine, but that could not be written to disk. "
                                                 "Release it again.");
                        manager_set_state(m, a, ALLOCATION_FAILED, job_message(mj->job));
                        return JOB_FAILED_DIRTY;
                }
                log_full(LOG_INFO, 0, (&(LogFields){ .allocation = a->name }), "Released '%s'.", a->name);
                forget(m, a);
                break;
        case JOB_FAILED:
                /* Nobody has to wait for a job that a restart took up again, so the reason must stay. */
                if (mj->resumed)
                        manager_set_state(m, a, ALLOCATION_FAILED, job_message(mj->job));
                else
                        manager_set_state(m, a, mj->before, a->reason);
                break;
        default:
                manager_set_state(m, a, ALLOCATION_FAILED, job_message(mj->job));
                break;
        }
        return result;
}
