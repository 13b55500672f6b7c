/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The work of startup, which is repeated for devices that are plugged in later: creates VFs, resumes interrupted
 * allocations and binds devices, in rounds of phases. The daemon is announced after the first round. */

#include <errno.h>

#include "facts.h"
#include "operations.h"
#include "plan/device-state.h"
#include "plan/promise.h"
#include "settle.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

/* Startup runs as many jobs at a time as ParallelDevices= says, within these limits. At least 8, so that a job that
 * hangs does not delay the daemon beyond systemd's start timeout; at most 32, because the queue refuses more than
 * SERVER_JOBS_MAX jobs. */
#define START_JOBS_MIN 8U
#define START_JOBS_MAX 32U

/* Returns true when the partition of `a` is not active and a try to activate it is due: at the last report of Fabric
 * Manager, no process had the GPUs of the partition open and the delay after the last failed try had passed; and no
 * guest is known to run with `a`. The job checks the partition and its GPUs again. */
static bool may_activate(const Allocation *a) {
        return a->status.partition_lost && a->status.partition_idle && !a->status.domain;
}

static bool needs_resume(const Manager *m, const Allocation *a) {
        return a->state == ALLOCATION_PREPARING || a->state == ALLOCATION_RELEASING ||
               (a->state == ALLOCATION_READY &&
                (!allocation_is_bound(a, m->host.inventory) || !manager_has_regions(m, a) || may_activate(a)));
}

/* Returns true when `a` lacks only its partition, and an earlier try to activate it has failed. Another try is not
 * reported again. */
static bool is_repeated(const Manager *m, const Allocation *a) {
        return a->state == ALLOCATION_READY && a->status.partition_lost && a->status.partition_delay > 0 &&
               allocation_is_bound(a, m->host.inventory) && manager_has_regions(m, a);
}

/* Returns true when an orphan still works on a device of `a`, so that `a` cannot be resumed. Then stores this as the
 * reason of `a`. */
static bool has_to_wait(Manager *m, Allocation *a) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        if (manager_check_blocked(m, a, true, &refusal) == VERDICT_NONE)
                return false;
        log_full(LOG_WARNING, 0, (&(LogFields) { .id = MESSAGE_DEVIATION, .allocation = a->name }),
                 "'%s' cannot be resumed yet: %s", a->name, refusal.message);
        (void) manager_set_state(m, a, a->state, refusal.message);
        return true;
}

/* Returns true when the cause of the refusal may pass: a device may come back or get an IOMMU group, a group may lose a
 * member, a module may be loaded, a GPU may get room for a vGPU. The allocation then stays ready, or becomes ready if
 * its preparation was interrupted. */
static bool can_pass(Verdict v) {
        return v == VERDICT_MISSING || v == VERDICT_GROUP_NOT_VIABLE || v == VERDICT_NO_IOMMU ||
               v == VERDICT_NO_VFIO_DRIVER || v == VERDICT_NO_VGPU;
}

/* Returns true when a device of `a` is in quarantine, although `a` is not being released: an attempt to release `a` or
 * to detach the device has put it there. No guest may get it, so `a` becomes failed. */
static bool has_quarantined(Manager *m, Allocation *a) {
        const AllocationDevice *d = ledger_find_quarantined_of(m->host.ledger, a);
        _cleanup_free_ char *text = NULL;

        if (!d || a->state == ALLOCATION_RELEASING ||
            string_replace(&text, "%s is in quarantine.", PCI_ADDRESS_STR(d->address)) < 0)
                return false;
        (void) manager_set_state(m, a, ALLOCATION_FAILED, text);
        return true;
}

static bool resume(Manager *m, Allocation *a, uint32_t *ret_job) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        AllocationState state = a->state;
        Verdict v = VERDICT_NONE;
        bool repeated, taken, stands;

        if (has_to_wait(m, a) || has_quarantined(m, a))
                return false;
        /* The first scan may have skipped attributes whose read blocks, because a job of the previous daemon still
         * ran. */
        (void) manager_refresh_groups(m, a);
        repeated = is_repeated(m, a);
        a->status.resume_refused = false;
        if (state != ALLOCATION_READY && a->reason)
                (void) manager_set_state(m, a, state, NULL);
        /* A release needs no check of the hardware, because it skips missing devices. */
        if (state == ALLOCATION_RELEASING)
                v = manager_check_use(m, a, USE_RELEASE, &refusal);
        else
                v = manager_check_hardware(m, a, &refusal);
        if (v == VERDICT_NONE && state == ALLOCATION_READY)
                v = manager_check_drivers(&m->host, a, &refusal);
        if (v == VERDICT_NONE && state == ALLOCATION_READY) {
                /* After a reboot the devices are not bound, and no guest runs. libvirt may not have started yet, and
                 * then cannot report the end of the guest. */
                if (!allocation_is_bound(a, m->host.inventory))
                        allocation_forget_guest(a);
                log_full(repeated ? LOG_DEBUG : LOG_NOTICE, 0, (&(LogFields) { .allocation = a->name }),
                         !allocation_is_bound(a, m->host.inventory)
                                 ? "The devices of '%s' are not as they were prepared, preparing them again."
                         : a->status.partition_lost ? "The NVLink partition of '%s' is not active, activating it again."
                                                    : "The shared memory of '%s' is missing, creating it again.",
                         a->name);
                (void) manager_set_state(m, a, ALLOCATION_PREPARING, a->status.partition_lost ? a->reason : NULL);
        }
        if (v == VERDICT_NONE)
                v = state == ALLOCATION_RELEASING ? manager_start_release(m, a, ret_job, &refusal)
                                                  : manager_start_prepare(m, a, true, ret_job, &refusal);
        if (v == VERDICT_NONE) {
                a->status.partition_idle = false;
                job_queue_find(&m->jobs, *ret_job)->resumed = true;
                if (!repeated)
                        note_allocation_event(m, HISTORY_RESUMED, a, NULL);
                return true;
        }
        log_full(LOG_ERR, 0, (&(LogFields) { .id = MESSAGE_DEVIATION, .allocation = a->name }),
                 "'%s' cannot be resumed: %s", a->name, refusal.message);
        /* Another program or the host uses a device of a ready allocation. The allocation stays ready, and the refusal
         * becomes its reason. */
        taken = state == ALLOCATION_READY && (v == VERDICT_BUSY || v == VERDICT_HOST_CRITICAL);
        stands = state != ALLOCATION_RELEASING && can_pass(v);
        note_deviation(m, a, &refusal, stands);
        a->status.taken = taken;
        if (taken)
                (void) manager_set_state(m, a, ALLOCATION_READY, refusal.message);
        else if (stands) {
                a->status.resume_refused = true;
                ledger_set_state(m->host.ledger, a, ALLOCATION_READY);
                settle_promise(m, a);
        } else
                (void) manager_set_state(m, a, ALLOCATION_FAILED, refusal.message);
        return false;
}

/* Returns true when the cause for which the resumption was refused has passed. */
static bool may_retry(const Manager *m, const HostView *view, const Allocation *a) {
        return a->n_devices > 0 && !manager_is_arriving(m, a) && !job_queue_has(&m->jobs, a->name) &&
               promise_check_hardware(view, a, NULL) == VERDICT_NONE &&
               manager_check_drivers(&m->host, a, NULL) == VERDICT_NONE;
}

void settle_retry_resumes(Manager *m) {
        HostView view = host_state_view(&m->host);

        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                Allocation *a = m->host.ledger->allocations[i];

                a->status.resume_refused = a->status.resume_refused && needs_resume(m, a);
                if (a->status.resume_refused && may_retry(m, &view, a))
                        note_arrived(m, a->devices[0].address);
        }
}

static Verdict binding_check(Manager *m, const Job *job, Refusal *ret);
static JobResult binding_finished(Manager *m, Job *job, JobResult result);

static const JobKind bind_kind = { .verb = "bind", .check = binding_check, .finished = binding_finished };

static const PciDevice *queued_device(const Manager *m, const char *subject) {
        PciAddress address;

        return pci_address_parse(subject, &address) == 0 ? inventory_find(m->host.inventory, address) : NULL;
}

static Verdict bind_device(Manager *m, const PciDevice *dev, uint32_t *ret_job, Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;
        PciAddress devices[REQUEST_DEVICES_MAX];
        HostView view = host_state_view(&m->host);
        _cleanup_(cleanup_step_list_free) StepList *steps = NULL;
        Verdict v;

        if (plan_single(&view, dev, &a) < 0)
                return refuse_no_memory(ret);
        v = manager_check_use(m, a, USE_ALLOCATE, ret);
        if (v != VERDICT_NONE)
                return v;
        if (steps_prepare(a, m->host.inventory, &steps) < 0 || steps_around_services(a, m->host.config, steps) < 0)
                return refuse_no_memory(ret);
        for (size_t i = 0; i < MIN(a->n_devices, ELEMENTSOF(devices)); i++)
                devices[i] = a->devices[i].address;
        return manager_start_job(m, &bind_kind, PCI_ADDRESS_STR(dev->address), TAKE_PTR(steps), devices,
                                 MIN(a->n_devices, ELEMENTSOF(devices)), ret_job, ret);
}

/* Checks again whether a process uses the device or another member of its IOMMU group. The steps STEP_CHECK_IDLE do not
 * suffice: they only check devices that are unbound and whose pool has StopServices=. */
static Verdict binding_check(Manager *m, const Job *job, Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;
        const PciDevice *dev;
        HostView view;

        if (manager_refresh(m, job->devices, job->n_devices, false) < 0)
                return refuse_no_memory(ret);
        dev = queued_device(m, job->subject);
        if (!dev)
                return refuse(ret, VERDICT_NO_SUCH_DEVICE, NULL, NULL, "%s is not on this node.", job->subject);
        view = host_state_view(&m->host);
        if (plan_single(&view, dev, &a) < 0)
                return refuse_no_memory(ret);
        return manager_check_use(m, a, USE_ALLOCATE, ret);
}

static JobResult binding_finished(Manager *m, Job *job, JobResult result) {
        PciAddress address;

        if (result != JOB_TIMEOUT)
                (void) manager_refresh(m, job->devices, job->n_devices, false);
        /* The driver from before the job is not on disk, so nothing can restore it. The next start binds the device. */
        if (result == JOB_FAILED_DIRTY && pci_address_parse(job->subject, &address) == 0)
                (void) device_status_set(&m->host.status, address, DEVICE_STUCK, job->message);
        return result;
}

/* The queue of a phase has names and addresses instead of pointers, because a scan may replace the inventory before the
 * phase ends. */

static void enqueue(Manager *m, const char *subject) {
        if (ARRAY_RESERVE(m->settle.queue, m->settle.n_queue) < 0)
                return;
        m->settle.queue[m->settle.n_queue] = strdup(subject);
        m->settle.n_queue += m->settle.queue[m->settle.n_queue] != NULL;
}

/* Returns true when the work on the allocation may have been interrupted. After the announcement, that is only possible
 * if a device of the allocation is new and the allocation has no job. */
static bool may_be_interrupted(const Manager *m, const Allocation *a) {
        for (size_t i = 0; m->announced && !job_queue_has(&m->jobs, a->name) && i < a->n_devices; i++)
                if (manager_is_new(m, a->devices[i].address))
                        return true;
        return !m->announced;
}

static void find_interrupted(Manager *m) {
        /* Only now do the VFs exist that may have moved. After startup, a card at another address counts as another
         * card. */
        if (!m->announced)
                manager_find_moved(m);
        if (m->host.ledger->read_only)
                return;
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++)
                if (may_be_interrupted(m, m->host.ledger->allocations[i]) &&
                    needs_resume(m, m->host.ledger->allocations[i]))
                        enqueue(m, m->host.ledger->allocations[i]->name);
        for (size_t i = 0; !m->announced && i < m->host.ledger->n_allocations; i++)
                m->notes.changes_due = m->notes.changes_due || allocation_is_changing(m->host.ledger->allocations[i]);
        for (size_t i = 0; !m->announced && i < m->host.ledger->n_quarantined; i++)
                if (m->host.ledger->quarantined[i]->state == ALLOCATION_RELEASING)
                        enqueue(m, PCI_ADDRESS_STR(m->host.ledger->quarantined[i]->devices[0].address));
}

/* Returns true during startup for a free device of a Nova pool with OneTimeUse=yes, except VFs, because
 * Nova has no one-time use of VFs. If such a device is bound to a VFIO driver, a guest may have used it while the
 * daemon did not run, and the driver is the only trace of that guest. find_unbound() checks the driver. Without
 * OneTimeUse=, the device may go to another guest before it is cleaned, so there is nothing to find out. */
static bool may_have_been_used(const Manager *m, const PciDevice *dev) {
        HostView view = host_state_view(&m->host);
        const Pool *pool = policy_pool(m->host.policy, dev);

        return !m->announced && pool && pool->scheduler == POOL_SCHEDULER_NOVA && pool->one_time_use &&
               dev->type != PCI_TYPE_VF && device_state(&view, dev, NULL) == DEVICE_STATE_AVAILABLE;
}

/* Queues the PFs that need VFs, and the devices to bind that are no VFs. All these are in one phase, so that a PF that
 * hangs delays only its own VFs. Work begins with the last element of the queue; the PFs are last because they take
 * longer. Leaves the devices of may_have_been_used() to find_unbound(), which would count them as used if they were
 * bound here. */
static void find_pfs(Manager *m) {
        const Inventory *inv = m->host.inventory;

        for (size_t i = 0; i < inv->n_devices; i++)
                if (inv->devices[i].type != PCI_TYPE_VF && manager_is_new(m, inv->devices[i].address) &&
                    manager_wants_binding(&m->host, &inv->devices[i]) && !may_have_been_used(m, &inv->devices[i]))
                        enqueue(m, PCI_ADDRESS_STR(inv->devices[i].address));
        for (size_t i = 0; i < inv->n_devices; i++)
                if (manager_is_new(m, inv->devices[i].address) && policy_vf_pool(m->host.policy, &inv->devices[i]))
                        enqueue(m, PCI_ADDRESS_STR(inv->devices[i].address));
}

/* Reads the VFs that were created at startup so far, and queues those that have to be bound, while other PFs still get
 * theirs. */
static void find_new_vfs(Manager *m) {
        if (m->notes.n_unread == 0)
                return;
        (void) manager_read_vfs(m, m->notes.unread, m->notes.n_unread);
        for (size_t i = 0; i < m->notes.n_unread; i++) {
                const PciDevice *pf = inventory_find(m->host.inventory, m->notes.unread[i]);

                for (size_t k = 0; pf && k < pf->n_vfs; k++) {
                        const PciDevice *vf = inventory_find(m->host.inventory, pf->vfs[k]);

                        if (vf && manager_wants_binding(&m->host, vf))
                                enqueue(m, PCI_ADDRESS_STR(vf->address));
                }
        }
        m->notes.n_unread = 0;
}

static void find_unbound(Manager *m) {
        pci_addresses_sort(m->settle.tried, &m->settle.n_tried);
        for (size_t i = 0; i < m->host.inventory->n_devices; i++) {
                const PciDevice *dev = &m->host.inventory->devices[i];

                if (manager_is_new(m, dev->address) && manager_wants_binding(&m->host, dev) &&
                    !pci_addresses_have(m->settle.tried, m->settle.n_tried, dev->address))
                        enqueue(m, PCI_ADDRESS_STR(dev->address));
                else if (may_have_been_used(m, dev))
                        manager_note_used(m, dev->address, "A guest may have used it while the daemon did not run.");
        }
}

/* Functions that begin the work on one subject of a phase. They return true when they have started a job. */

static bool begin_binding(Manager *m, const char *subject, uint32_t *ret_job) {
        const PciDevice *dev = queued_device(m, subject);
        _cleanup_refusal_ Refusal refusal = { 0 };

        /* The device was removed meanwhile, or was bound by the job of another member of its IOMMU group. */
        if (!dev || !manager_wants_binding(&m->host, dev))
                return false;
        (void) pci_address_append(&m->settle.tried, &m->settle.n_tried, dev->address);
        /* Each device has its own job, so that a failure does not affect other devices. */
        if (bind_device(m, dev, ret_job, &refusal) == VERDICT_NONE)
                return true;
        log_full(LOG_WARNING, 0, (&(LogFields) { .id = MESSAGE_NOT_PREPARED, .device = subject }),
                 "%s keeps its driver, ignoring: %s%s%s", subject, refusal.message, refusal.remedy ? " " : "",
                 refusal.remedy ?: "");
        return false;
}

static bool begin_vfs(Manager *m, const char *subject, uint32_t *ret_job) {
        const PciDevice *pf = queued_device(m, subject);
        const Pool *pool = pf ? policy_vf_pool(m->host.policy, pf) : NULL;
        _cleanup_refusal_ Refusal refusal = { 0 };

        if (!pool)
                return begin_binding(m, subject, ret_job);
        if (pf->n_vfs != pool->virtual_functions) {
                if (manager_create_vfs(m, pf, pool->virtual_functions, ret_job, &refusal) == VERDICT_NONE) {
                        if (policy_pf_has_roce_lag(m->host.policy, pf))
                                log_full(LOG_NOTICE, 0, (&(LogFields) { .device = subject }),
                                         "Creating %u VF%s on %s, a port of %s: RoCE LAG ends, and the host loses the "
                                         "RDMA device of the bond.",
                                         pool->virtual_functions, PLURAL(pool->virtual_functions), subject,
                                         QUOTABLE(pf->bond));
                        if (pf->critical)
                                log_full(LOG_NOTICE, 0, (&(LogFields) { .device = subject }),
                                         "Creating %u VF%s on %s, which the host needs: %s. Some drivers reset its "
                                         "interface for a moment.",
                                         pool->virtual_functions, PLURAL(pool->virtual_functions), subject,
                                         pf->critical);
                        return true;
                }
                log_full(LOG_WARNING, 0, (&(LogFields) { .id = MESSAGE_NOT_PREPARED, .device = subject }),
                         "No VFs are created on %s, ignoring: %s%s%s", subject, refusal.message,
                         refusal.remedy ? " " : "", refusal.remedy ?: "");
        }
        /* Existing VFs are kept. If they lack attributes, these are set. */
        return pf->n_vfs > 0 && pf->n_linked == pf->n_virtfns && manager_identify_vfs(m, pf, ret_job);
}

static bool begin_resume(Manager *m, const char *subject, uint32_t *ret_job) {
        Allocation *a = ledger_find(m->host.ledger, subject);
        PciAddress device;

        if (!a)
                return pci_address_parse(subject, &device) == 0 && manager_resume_clearing(m, device, ret_job);
        /* After the allocation was queued, its owner may have released it, and the release may have failed. */
        return job_queue_find_subject(&m->jobs, subject) == 0 && needs_resume(m, a) && resume(m, a, ret_job);
}

/* The phases in order. The VFs come first, because a boot removes VFs, and allocations may have them. */
static const struct {
        void (*find)(Manager *m);
        bool (*begin)(Manager *m, const char *subject, uint32_t *ret_job);
} phases[] = {
        [START_VFS] = { find_pfs, begin_vfs },
        [START_RESUME] = { find_interrupted, begin_resume },
        [START_BIND] = { find_unbound, begin_binding },
};

static size_t starting_jobs(const Manager *m) {
        size_t n = 0;

        for (size_t i = 0; i < m->jobs.n; i++)
                n += m->jobs.list[i]->starting;
        return n;
}

void settle_announce(Manager *m) {
        /* From now on, each signal tells a difference from the state that clients see now. */
        if (settle_show(m) < 0 || manager_follow_uevents(m) < 0) {
                (void) sd_event_exit(m->event, EXIT_FAILURE);
                return;
        }
        server_announce(m->told.server);
        m->announced = true;
        manager_expect_guests(m);
        /* A guest may have ended during startup. */
        manager_find_guests(m);
        m->notes.cleaning_due = !manager_may_miss_guests(m);
        manager_report_unknown_regions(m);
        manager_follow_leases(m);
        manager_make_attributes_due(m);
        manager_check_health(m, HEALTH_DUE_RESCAN);
        /* Start services only after the allocations were resumed, because the jobs that resume them may stop the same
         * services again. */
        manager_start_services(m);
        note_turn(m);
}

/* Starts a round for the devices that were noted as new. Returns false when there are none. */
static bool begin_round(Manager *m) {
        if (!m->announced || m->notes.n_arrived == 0)
                return false;
        free(m->settle.round);
        m->settle.round = TAKE_PTR(m->notes.arrived);
        m->settle.n_round = m->notes.n_arrived;
        m->notes.n_arrived = 0;
        m->settle.n_tried = 0;
        pci_addresses_sort(m->settle.round, &m->settle.n_round);
        m->settle.phase = START_CONNECTED;
        return true;
}

/* Starts jobs for subjects in the queue of the phase. ParallelDevices= limits the number of jobs, because most jobs
 * work on one device. Returns true when the queue is empty and all jobs of the phase have ended. */
static bool start_queued(Manager *m) {
        const size_t n = MIN(MAX(m->host.config->parallel_devices, START_JOBS_MIN), START_JOBS_MAX);

        while (m->settle.n_queue > 0 && starting_jobs(m) < n) {
                _cleanup_free_ char *subject = m->settle.queue[--m->settle.n_queue];
                uint32_t job;

                if (phases[m->settle.phase].begin(m, subject, &job))
                        job_queue_find(&m->jobs, job)->starting = true;
        }
        return m->settle.n_queue == 0 && starting_jobs(m) == 0;
}

void settle_continue_start(Manager *m) {
        /* Wait for the minors of the GPUs: while a minor is unknown, any process with an NVIDIA device node open counts
         * as a user of that GPU. */
        if (m->stopping || (!m->announced && probe_is_asking(m->watches.gpu_probe)))
                return;
        /* Wait for the bus to tell who owns the name: if another daemon does, it works on the hardware. */
        if (!m->announced && server_waits_for_bus(m->told.server))
                return;
        if (m->settle.phase == START_DONE && !begin_round(m))
                return;
        find_new_vfs(m);
        while (m->settle.phase == START_CONNECTED || start_queued(m)) {
                m->settle.phase++;
                /* Begin only one round in a turn, so that the loop can serve other events in between. */
                if (m->settle.phase == START_DONE) {
                        if (m->announced && m->notes.n_arrived > 0)
                                note_turn(m);
                        return;
                }
                /* While the ledger is read-only, do not change devices: any of them may have an allocation that could
                 * not be read. */
                if (!m->host.ledger->read_only)
                        phases[m->settle.phase].find(m);
        }
}
