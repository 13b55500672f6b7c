/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Resumes allocations after a stop, a crash, a boot or a hot-plug. */

#include "inventory.h"
#include "operations.h"
#include "plan/promise.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

/* Fabric Manager has forgotten the partition, and no guest had its GPUs at the last report. The job checks again. */
static bool may_activate(const Allocation *a) {
        return a->partition_lost && a->partition_idle && !a->domain;
}

bool manager_needs_resume(const Manager *m, const Allocation *a) {
        return a->state == ALLOCATION_PREPARING || a->state == ALLOCATION_RELEASING ||
               (a->state == ALLOCATION_READY &&
                (!allocation_is_bound(a, m->host.inventory) || !manager_has_regions(m, a) || may_activate(a)));
}

/* After a boot the host may need a device that was allocated before. */
static Verdict check_host_needs(const Manager *m, const Allocation *a, Refusal *ret) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev = inventory_find(m->host.inventory, a->devices[i].address);
                const Pool *pool;

                if (streq_ptr(dev->driver, allocation_driver(a, &a->devices[i])))
                        continue;
                pool = a->devices[i].pool ? config_find_pool(m->host.config, a->devices[i].pool) : NULL;
                if (policy_host_needs(dev, pool) || m->host.inventory->critical_error ||
                    (pci_device_is_display(dev) && !a->forced))
                        return refuse(ret, VERDICT_HOST_CRITICAL, &dev->address, "Release the allocation.",
                                      "The host needs %s: %s", PCI_ADDRESS_STR(dev->address),
                                      dev->critical                          ?: policy_host_needs(dev, pool)
                                              ? "it has its memory online."
                                              : m->host.inventory->critical_error
                                              ?: dev->console ?: "it is the boot VGA.");
        }
        return VERDICT_NONE;
}

Verdict manager_check_hardware(const Manager *m, const Allocation *a, Refusal *ret) {
        HostView view = host_state_view(&m->host);
        Verdict v = promise_check_hardware(&view, a, ret);

        if (v == VERDICT_NONE)
                v = check_host_needs(m, a, ret);
        return v != VERDICT_NONE ? v : manager_check_use(m, a, USE_RESUME, ret);
}

/* Only the partition is missing, and it could not be activated before: reported once. */
static bool is_repeated(const Manager *m, const Allocation *a) {
        return a->state == ALLOCATION_READY && a->partition_lost && a->partition_delay > 0 &&
               allocation_is_bound(a, m->host.inventory) && manager_has_regions(m, a);
}

/* While an orphan works on a device of the allocation, the allocation is not resumed. */
static bool has_to_wait(Manager *m, Allocation *a) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        if (manager_check_blocked(m, a, true, &refusal) == VERDICT_NONE)
                return false;
        log_full(LOG_WARNING, 0, (&(LogFields) { .id = MESSAGE_DEVIATION, .allocation = a->name }),
                 "'%s' cannot be resumed yet: %s", a->name, refusal.message);
        (void) manager_set_state(m, a, a->state, refusal.message);
        return true;
}

/* The cause may pass, so the allocation stays ready, or becomes ready when its preparation was interrupted: a device
 * may come back, a group may lose a member, a module may be loaded, a GPU may get room for a vGPU. */
static bool can_pass(Verdict v) {
        return v == VERDICT_MISSING || v == VERDICT_GROUP_NOT_VIABLE || v == VERDICT_NO_IOMMU ||
               v == VERDICT_NO_VFIO_DRIVER || v == VERDICT_NO_VGPU;
}

/* A release that did not begin has put a stuck device in quarantine: no guest gets it. */
static bool has_quarantined(Manager *m, Allocation *a) {
        const AllocationDevice *d = ledger_find_quarantined_of(m->host.ledger, a);
        _cleanup_free_ char *text = NULL;

        if (!d || a->state == ALLOCATION_RELEASING ||
            string_replace(&text, "%s is in quarantine.", PCI_ADDRESS_STR(d->address)) < 0)
                return false;
        (void) manager_set_state(m, a, ALLOCATION_FAILED, text);
        return true;
}

bool manager_resume(Manager *m, Allocation *a, uint32_t *ret_job) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        AllocationState state = a->state;
        Verdict v = VERDICT_NONE;
        bool repeated, taken, stands;

        if (has_to_wait(m, a) || has_quarantined(m, a))
                return false;
        /* At startup a job of the previous daemon may have run still, so the first scan read nothing that may block. */
        (void) manager_refresh_groups(m, a);
        repeated = is_repeated(m, a);
        a->resume_refused = false;
        if (state != ALLOCATION_READY && a->reason)
                (void) manager_set_state(m, a, state, NULL);
        /* A release skips missing devices, so it needs no check of the hardware. */
        if (state == ALLOCATION_RELEASING)
                v = manager_check_use(m, a, USE_RELEASE, &refusal);
        else
                v = manager_check_hardware(m, a, &refusal);
        if (v == VERDICT_NONE && state == ALLOCATION_READY)
                v = manager_check_drivers(&m->host, a, &refusal);
        if (v == VERDICT_NONE && state == ALLOCATION_READY) {
                /* No guest outlives a boot, and libvirt may not run yet to tell its end. */
                if (!allocation_is_bound(a, m->host.inventory))
                        allocation_forget_guest(a);
                log_full(repeated ? LOG_DEBUG : LOG_NOTICE, 0, (&(LogFields) { .allocation = a->name }),
                         !allocation_is_bound(a, m->host.inventory)
                                 ? "The devices of '%s' are not as they were prepared, preparing them again."
                         : a->partition_lost ? "The NVLink partition of '%s' is not active, activating it again."
                                             : "The shared memory of '%s' is missing, creating it again.",
                         a->name);
                (void) manager_set_state(m, a, ALLOCATION_PREPARING, a->partition_lost ? a->reason : NULL);
        }
        if (v == VERDICT_NONE)
                v = state == ALLOCATION_RELEASING ? manager_start_release(m, a, ret_job, &refusal)
                                                  : manager_start_prepare(m, a, true, ret_job, &refusal);
        if (v == VERDICT_NONE) {
                a->partition_idle = false;
                job_queue_find(&m->jobs, *ret_job)->resumed = true;
                if (!repeated)
                        history_record_allocation(HISTORY_RESUMED, a, NULL);
                return true;
        }
        log_full(LOG_ERR, 0, (&(LogFields) { .id = MESSAGE_DEVIATION, .allocation = a->name }),
                 "'%s' cannot be resumed: %s", a->name, refusal.message);
        /* Another program, or the host, has taken a device from a ready allocation: the device stays contested, as
         * before a restart. */
        taken = state == ALLOCATION_READY && (v == VERDICT_BUSY || v == VERDICT_HOST_CRITICAL);
        stands = state != ALLOCATION_RELEASING && can_pass(v);
        history_record_deviation(m, a, &refusal, stands);
        a->taken = taken;
        if (taken)
                (void) manager_set_state(m, a, ALLOCATION_READY, refusal.message);
        else if (stands) {
                a->resume_refused = true;
                ledger_set_state(m->host.ledger, a, ALLOCATION_READY);
                manager_check_promise(m, a);
        } else
                (void) manager_set_state(m, a, ALLOCATION_FAILED, refusal.message);
        return false;
}

/* The cause of the refusal has passed. */
static bool may_retry(const Manager *m, const HostView *view, const Allocation *a) {
        return a->n_devices > 0 && !manager_is_arriving(m, a) && !job_queue_has(&m->jobs, a->name) &&
               promise_check_hardware(view, a, NULL) == VERDICT_NONE &&
               manager_check_drivers(&m->host, a, NULL) == VERDICT_NONE;
}

void manager_retry_resumes(Manager *m) {
        HostView view = host_state_view(&m->host);

        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                Allocation *a = m->host.ledger->allocations[i];

                a->resume_refused = a->resume_refused && manager_needs_resume(m, a);
                if (a->resume_refused && may_retry(m, &view, a))
                        reconcile_queue(&m->reconcile, a->devices[0].address);
        }
}
