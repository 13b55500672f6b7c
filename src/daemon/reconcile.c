/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The work that follows from the state of the node: creating VFs, resuming interrupted allocations and binding devices
 * at startup and after a hot-plug, releasing allocations with their domain, and announcing the daemon.
 */

#include <systemd/sd-daemon.h>

#include "inventory.h"
#include "operations.h"
#include "plan/device-state.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

#define CLEANING_DELAY_MAX_SEC 60U

/* The start runs ParallelDevices= jobs at a time, within these limits. One that hangs must not keep the daemon from
 * getting ready in the time that systemd gives it, and the queue refuses more than SERVER_JOBS_MAX. */
#define START_JOBS_MIN 8U
#define START_JOBS_MAX 32U

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

/* STEP_CHECK_IDLE covers only the devices whose services are stopped, not the other members of the IOMMU group. */
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
        /* The previous driver is not on disk, so the driver cannot be restored. The next startup binds the device. */
        if (result == JOB_FAILED_DIRTY && pci_address_parse(job->subject, &address) == 0)
                (void) device_status_set(&m->host.status, address, DEVICE_STUCK, job->message);
        return result;
}

/* A phase queues its subjects by name when it begins, because a scan may replace the inventory before it ends. */

static void enqueue(Manager *m, const char *subject) {
        if (ARRAY_RESERVE(m->reconcile.queue, m->reconcile.n_queue) < 0)
                return;
        m->reconcile.queue[m->reconcile.n_queue] = strdup(subject);
        m->reconcile.n_queue += m->reconcile.queue[m->reconcile.n_queue] != NULL;
}

/* After the announcement an allocation counts as interrupted only when one of its devices is new and it has no job. */
static bool may_be_interrupted(const Manager *m, const Allocation *a) {
        for (size_t i = 0; m->announced && !job_queue_has(&m->jobs, a->name) && i < a->n_devices; i++)
                if (manager_is_new(m, a->devices[i].address))
                        return true;
        return !m->announced;
}

static void find_interrupted(Manager *m) {
        /* The VFs exist by now. After startup, a card that appears at another address is treated as another card. */
        if (!m->announced)
                manager_find_moved(m);
        if (m->host.ledger->read_only)
                return;
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++)
                if (may_be_interrupted(m, m->host.ledger->allocations[i]) &&
                    manager_needs_resume(m, m->host.ledger->allocations[i]))
                        enqueue(m, m->host.ledger->allocations[i]->name);
        for (size_t i = 0; !m->announced && i < m->host.ledger->n_allocations; i++)
                m->reconcile.changes_due =
                        m->reconcile.changes_due || allocation_is_changing(m->host.ledger->allocations[i]);
        for (size_t i = 0; !m->announced && i < m->host.ledger->n_quarantined; i++)
                if (m->host.ledger->quarantined[i]->state == ALLOCATION_RELEASING)
                        enqueue(m, PCI_ADDRESS_STR(m->host.ledger->quarantined[i]->devices[0].address));
}

/*
 * A guest that started and ended while the daemon did not run has left no trace but the binding. Only one-time-use
 * devices are certain to be in no next guest before they are cleaned; Nova has no such VFs.
 */
static bool may_have_been_used(const Manager *m, const PciDevice *dev) {
        HostView view = host_state_view(&m->host);
        const Pool *pool = policy_pool(m->host.policy, dev);

        return !m->announced && pool && pool->scheduler == POOL_SCHEDULER_NOVA && pool->one_time_use &&
               dev->type != PCI_TYPE_VF && device_state(&view, dev, NULL) == DEVICE_STATE_AVAILABLE;
}

/*
 * PFs, and devices to bind that are no VFs, so that a PF that hangs delays no device but its VFs. The last in the queue
 * is the first to begin: PFs take longer.
 */
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

/* Reads the VFs that PFs have got at startup, and queues those to be bound, while other PFs still get theirs. */
static void find_new_vfs(Manager *m) {
        Reconcile *rec = &m->reconcile;

        if (rec->n_unread == 0)
                return;
        (void) manager_read_vfs(m, rec->unread, rec->n_unread);
        for (size_t i = 0; i < rec->n_unread; i++) {
                const PciDevice *pf = inventory_find(m->host.inventory, rec->unread[i]);

                for (size_t k = 0; pf && k < pf->n_vfs; k++) {
                        const PciDevice *vf = inventory_find(m->host.inventory, pf->vfs[k]);

                        if (vf && manager_wants_binding(&m->host, vf))
                                enqueue(m, PCI_ADDRESS_STR(vf->address));
                }
        }
        rec->n_unread = 0;
}

static void find_unbound(Manager *m) {
        pci_addresses_sort(m->reconcile.tried, &m->reconcile.n_tried);
        for (size_t i = 0; i < m->host.inventory->n_devices; i++) {
                const PciDevice *dev = &m->host.inventory->devices[i];

                if (manager_is_new(m, dev->address) && manager_wants_binding(&m->host, dev) &&
                    !pci_addresses_have(m->reconcile.tried, m->reconcile.n_tried, dev->address))
                        enqueue(m, PCI_ADDRESS_STR(dev->address));
                else if (may_have_been_used(m, dev))
                        manager_note_used(m, dev->address, "A guest may have used it while the daemon did not run.");
        }
}

/* The begin functions of the phases return true when they started a job. */

static bool begin_binding(Manager *m, const char *subject, uint32_t *ret_job) {
        const PciDevice *dev = queued_device(m, subject);
        _cleanup_refusal_ Refusal refusal = { 0 };

        /* Another member of its IOMMU group was bound meanwhile, and the device with it. */
        if (!dev || !manager_wants_binding(&m->host, dev))
                return false;
        (void) pci_address_append(&m->reconcile.tried, &m->reconcile.n_tried, dev->address);
        /* One job for each device, so that a failure does not affect the other devices. */
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
        /* Existing VFs are kept, and get the attributes that they lack. */
        return pf->n_vfs > 0 && pf->n_linked == pf->n_virtfns && manager_identify_vfs(m, pf, ret_job);
}

static bool begin_resume(Manager *m, const char *subject, uint32_t *ret_job) {
        Allocation *a = ledger_find(m->host.ledger, subject);
        PciAddress device;

        if (!a)
                return pci_address_parse(subject, &device) == 0 && manager_resume_clearing(m, device, ret_job);
        /* Since it was queued, its owner may have released it, and that release may have failed. */
        return job_queue_find_subject(&m->jobs, subject) == 0 && manager_needs_resume(m, a) &&
               manager_resume(m, a, ret_job);
}

/* VFs first, because an allocation may include VFs that a boot removed. */
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

static void announce(Manager *m) {
        HostView view = host_state_view(&m->host);

        /* Later signals report differences from the state that clients see now. */
        m->publisher.shown = device_snapshot_list_new(&view);
        if (!m->publisher.shown || manager_follow_uevents(m) < 0) {
                (void) sd_event_exit(m->event, EXIT_FAILURE);
                return;
        }
        manager_show_allocations(m);
        server_announce(m->publisher.server);
        m->announced = true;
        manager_expect_guests(m);
        /* A guest may have ended during startup. */
        manager_find_guests(m);
        m->reconcile.cleaning_due = !manager_may_miss_guests(m);
        manager_report_unknown_regions(m);
        manager_follow_leases(m);
        manager_make_attributes_due(m);
        manager_check_health(m, HEALTH_DUE_RESCAN);
}

/* Clients that systemd starts after the daemon find its name on the bus. */
static void tell_ready(Manager *m) {
        (void) sd_notifyf(false, "READY=1\nSTATUS=%zu device%s, %zu allocation%s%s", m->host.inventory->n_devices,
                          PLURAL(m->host.inventory->n_devices), m->host.ledger->n_allocations,
                          PLURAL(m->host.ledger->n_allocations), m->host.ledger->read_only ? ", read-only" : "");
        log_info("Ready: %zu device%s, %zu allocation%s.", m->host.inventory->n_devices,
                 PLURAL(m->host.inventory->n_devices), m->host.ledger->n_allocations,
                 PLURAL(m->host.ledger->n_allocations));
        m->ready = true;
}

/* Starts queued work, most of which is for one device. Returns true when the phase has neither queue nor jobs left. */
static bool start_queued(Manager *m) {
        const size_t n = MIN(MAX(m->host.config->parallel_devices, START_JOBS_MIN), START_JOBS_MAX);

        while (m->reconcile.n_queue > 0 && starting_jobs(m) < n) {
                _cleanup_free_ char *subject = m->reconcile.queue[--m->reconcile.n_queue];
                uint32_t job;

                if (phases[m->reconcile.phase].begin(m, subject, &job))
                        job_queue_find(&m->jobs, job)->starting = true;
        }
        return m->reconcile.n_queue == 0 && starting_jobs(m) == 0;
}

static void continue_startup(Manager *m) {
        /* While the minor of a GPU is unknown, any process with an NVIDIA device node open counts as its user. */
        if (m->stopping || (!m->announced && probe_is_asking(m->watches.gpu_probe)))
                return;
        /* Another daemon may own the name and the hardware. */
        if (!m->announced && server_waits_for_bus(m->publisher.server))
                return;
        if (m->reconcile.phase == START_DONE && !manager_begin_round(m))
                return;
        find_new_vfs(m);
        while (m->reconcile.phase == START_CONNECTED || start_queued(m)) {
                m->reconcile.phase++;
                if (m->reconcile.phase == START_DONE) {
                        /* Resumed jobs may stop the same services again, so this comes after them. */
                        if (!m->announced) {
                                announce(m);
                                manager_start_services(m);
                        }
                        if (!manager_begin_round(m))
                                return;
                        continue;
                }
                /* An unreadable ledger may contain an allocation of any device, so no device is changed. */
                if (!m->host.ledger->read_only)
                        phases[m->reconcile.phase].find(m);
        }
}

/* Releases an allocation whose caller asked for a release at the end of its domain. False: a job has to end first. */
static bool release_with_domain(Manager *m, Allocation *a) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        uint32_t job;

        if (!a->release_with_domain || !a->had_domain || a->domain || a->state != ALLOCATION_READY)
                return true;
        /* Otherwise a later start of the daemon releases it. */
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
        m->reconcile.guests_read = false;
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++)
                if (!release_with_domain(m, m->host.ledger->allocations[i]))
                        m->reconcile.guests_read = true;
}

static int on_cleaning(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        m->reconcile.cleaning_due = true;
        reconcile_want(&m->reconcile);
        return 0;
}

/* The process of a guest that has ended may have its devices open for a while. */
static void clean_used(Manager *m) {
        Reconcile *rec = &m->reconcile;
        bool done = true;
        int r;

        rec->cleaning_due = false;
        rec->cleaning_timer = sd_event_source_disable_unref(rec->cleaning_timer);
        for (size_t i = 0; i < m->host.ledger->n_quarantined; i++)
                done = manager_clean_used(m, m->host.ledger->quarantined[i]->devices[0].address) && done;
        if (done)
                return;
        rec->cleaning_delay = rec->cleaning_delay == 0 ? 1 : MIN(2 * rec->cleaning_delay, CLEANING_DELAY_MAX_SEC);
        r = sd_event_add_time_relative(m->event, &rec->cleaning_timer, CLOCK_MONOTONIC,
                                       rec->cleaning_delay * UINT64_C(1000000), 0, on_cleaning, m);
        if (r < 0)
                log_warning_errno(r, "Devices that are in use are cleaned when a guest starts or ends, ignoring: %m");
}

/* Handles what was put off while a job or an orphan worked on the devices. */
static void handle_released(Manager *m) {
        if (!m->reconcile.released)
                return;
        m->reconcile.released = false;
        manager_handle_kept_uevents(m);
        manager_attributes_job_gone(m);
        manager_probe_gpus(m);
}

void manager_reconcile(Manager *m) {
        handle_released(m);
        if (m->reconcile.services_due)
                manager_start_services(m);
        m->reconcile.services_due = false;
        if (m->announced && m->reconcile.guests_read)
                release_abandoned(m);
        if (m->announced && m->reconcile.cleaning_due)
                clean_used(m);
        if (m->announced && m->reconcile.changes_due)
                manager_continue_changes(m);
        if (m->announced && m->reconcile.promises_unchecked)
                manager_retry_resumes(m);
        continue_startup(m);
        if (m->announced && !m->ready && !server_waits_for_bus(m->publisher.server))
                tell_ready(m);
        manager_check_promises(m);
        m->reconcile.unmeasured = true;
        server_settle(m->publisher.server);
        store_prepare(m->store);
        /* Stuck jobs are not waited for. */
        if (m->stopping && job_queue_active(&m->jobs) == 0)
                (void) sd_event_exit(m->event, 0);
}
