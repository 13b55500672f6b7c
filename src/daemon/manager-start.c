/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the configuration wants done before the node is announced: VFs, and devices bound from start. */

#include <errno.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>

#include "core/device-state.h"
#include "daemon/manager.h"
#include "util/log.h"
#include "util/strings.h"

static void vfs_finished(Manager *m, const ManagerJob *mj, JobResult result);
static void binding_finished(Manager *m, const ManagerJob *mj, JobResult result);

static const JobKind create_vfs_kind = { .verb = "create-vfs", .finished = vfs_finished };
static const JobKind bind_kind = { .verb = "bind", .finished = binding_finished };

static Verdict check_pf(const Manager *m, const PciDevice *pf, unsigned count, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        if (pf->type != PCI_TYPE_PF)
                return refuse(ret, VERDICT_NOT_SUPPORTED, &pf->address, "Enable SR-IOV in the firmware of node and card.",
                              "%s cannot have VFs.", PCI_ADDRESS_STR(pf->address));
        if (pf->n_vfs > 0 && pf->n_vfs != count)
                return refuse(ret, VERDICT_VFS_PRESENT, &pf->address, "Make sure that nobody uses them and remove them by hand first.",
                              "%s has %zu VFs, %u are wanted; changing the number would destroy those that are there.",
                              PCI_ADDRESS_STR(pf->address), pf->n_vfs, count);
        if (count > pf->total_vfs)
                return refuse(ret, VERDICT_NOT_SUPPORTED, &pf->address, "ConnectX: raise NUM_OF_VFS in the firmware configuration.",
                              "%s can have %u VFs, %u are wanted.", PCI_ADDRESS_STR(pf->address), pf->total_vfs, count);
        if (pf->n_vfs == 0 && count > 0)
                v = ledger_check_device(m->ledger, m->inventory, pf, NULL, ret);
        return v;
}

static Verdict start_vfs(Manager *m, const PciDevice *pf, unsigned count, uint32_t *ret_job, Refusal *ret) {
        _cleanup_(cleanup_step_list_free) StepList *steps = NULL;
        int r = pf->n_vfs == count ? 0 : steps_create_vfs(pf, count, &steps);

        if (r >= 0 && !steps)
                steps = step_list_new();
        if (r < 0 || !steps)
                return refuse(ret, VERDICT_LIMIT, NULL, NULL, "Out of memory.");
        return manager_start_job(m, &create_vfs_kind, PCI_ADDRESS_STR(pf->address), TAKE_PTR(steps), &pf->address, 1, ret_job, ret);
}

Verdict manager_set_virtual_functions(Manager *m, PciAddress address, unsigned count, uint32_t *ret_job, Refusal *ret) {
        const PciDevice *pf = inventory_find(m->inventory, address);
        Verdict v;

        if (m->ledger->read_only)
                return refuse(ret, VERDICT_READ_ONLY, NULL, NULL, "%s", m->ledger->read_only);
        if (m->stopping)
                return refuse(ret, VERDICT_BUSY, NULL, "Try again when it is back.", "The daemon is stopping.");
        if (!pf)
                return refuse(ret, VERDICT_NO_SUCH_DEVICE, &address, NULL, "%s is not on this node.", PCI_ADDRESS_STR(address));
        v = check_pf(m, pf, count, ret);
        if (v != VERDICT_NONE)
                return v;
        /* Only hardware that the admin put into our hands. */
        if (!policy_vf_pool(m->policy, pf))
                return refuse(ret, VERDICT_NOT_IN_POOL, &address, "Add VirtualFunctions= to a pool that matches its VFs.",
                              "No pool wants VFs on %s.", PCI_ADDRESS_STR(address));
        return start_vfs(m, pf, count, ret_job, ret);
}

void manager_start_vfs(Manager *m) {
        _cleanup_free_ PciAddress *pfs = calloc(m->inventory->n_devices + 1, sizeof(*pfs));
        size_t n = 0;

        if (!pfs || m->ledger->read_only)
                return;
        /* Addresses first: the inventory may be another one before the last job is started. */
        for (size_t i = 0; i < m->inventory->n_devices; i++)
                if (policy_vf_pool(m->policy, &m->inventory->devices[i]))
                        pfs[n++] = m->inventory->devices[i].address;
        for (size_t i = 0; i < n; i++) {
                const PciDevice *pf = inventory_find(m->inventory, pfs[i]);
                unsigned count = policy_vf_pool(m->policy, pf)->virtual_functions;
                _cleanup_refusal_ Refusal refusal = { 0 };
                uint32_t job;

                if (pf->n_vfs == count)
                        continue;
                if (check_pf(m, pf, count, &refusal) == VERDICT_NONE && start_vfs(m, pf, count, &job, &refusal) == VERDICT_NONE)
                        manager_find_job(m, job)->starting = true;
                else
                        log_warning("No VFs are created on %s, ignoring: %s", PCI_ADDRESS_STR(pfs[i]), refusal.message);
        }
}

static void vfs_finished(Manager *m, const ManagerJob *mj, JobResult result) {
        if (result == JOB_DONE && job_steps_total(mj->job) > 0)
                log_full(LOG_NOTICE, 0, (&(LogFields){ .device = job_subject(mj->job) }), "Created VFs on %s.", job_subject(mj->job));
        (void) manager_scan(m);
}

/* Devices for pools with Bind=start that are free and not on the VFIO driver. */
static void find_devices_to_bind(Manager *m) {
        PlanContext c = manager_context(m);

        for (size_t i = 0; i < m->inventory->n_devices; i++) {
                const PciDevice *dev = &m->inventory->devices[i];
                const Pool *pool = policy_pool(m->policy, dev);

                if (!pool || pool->bind != POOL_BIND_START || streq_ptr(dev->driver, m->config->vfio_driver) ||
                    device_state(&c, dev, NULL) != DEVICE_STATE_AVAILABLE || ARRAY_RESERVE(m->to_bind, m->n_to_bind) < 0)
                        continue;
                m->to_bind[m->n_to_bind++] = dev->address;
        }
}

static Verdict bind_device(Manager *m, const PciDevice *dev, uint32_t *ret_job, Refusal *ret) {
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;
        PciAddress devices[REQUEST_DEVICES_MAX];
        PlanContext c = manager_context(m);
        StepList *steps;

        if (plan_single(&c, dev, &a) < 0 || steps_prepare(a, m->config->vfio_driver, &steps) < 0)
                return refuse(ret, VERDICT_LIMIT, NULL, NULL, "Out of memory.");
        for (size_t i = 0; i < MIN(a->n_devices, ELEMENTSOF(devices)); i++)
                devices[i] = a->devices[i].address;
        return manager_start_job(m, &bind_kind, PCI_ADDRESS_STR(dev->address), steps, devices, MIN(a->n_devices, ELEMENTSOF(devices)), ret_job,
                                 ret);
}

/* Each device is a job of its own, so that one that fails does not hold up the rest. */
void manager_start_binding(Manager *m) {
        PlanContext c = manager_context(m);

        while (m->n_to_bind > 0 && m->n_jobs < MANAGER_START_JOBS_MAX) {
                PciAddress address = m->to_bind[--m->n_to_bind];
                const PciDevice *dev = inventory_find(m->inventory, address);
                _cleanup_refusal_ Refusal refusal = { 0 };
                uint32_t job;

                /* Bound meanwhile with another member of its group. */
                if (!dev || streq_ptr(dev->driver, m->config->vfio_driver) || device_state(&c, dev, NULL) != DEVICE_STATE_AVAILABLE)
                        continue;
                if (bind_device(m, dev, &job, &refusal) == VERDICT_NONE)
                        manager_find_job(m, job)->starting = true;
                else
                        log_warning("%s stays with its driver, ignoring: %s", PCI_ADDRESS_STR(address), refusal.message);
        }
}

static void binding_finished(Manager *m, const ManagerJob *mj, JobResult result) {
        if (result != JOB_TIMEOUT)
                (void) manager_refresh(m, mj->devices, mj->n_devices);
}

static size_t starting_jobs(const Manager *m) {
        size_t n = 0;

        for (size_t i = 0; i < m->n_jobs; i++)
                n += m->jobs[i].starting;
        return n;
}

static void announce(Manager *m) {
        m->announced = true;
        if (server_announce(m->server) < 0) {
                (void) sd_event_exit(m->event, EXIT_FAILURE);
                return;
        }
        (void) sd_notifyf(false, "READY=1\nSTATUS=%zu devices, %zu allocations%s", m->inventory->n_devices, m->ledger->n_allocations,
                          m->ledger->read_only ? ", read-only" : "");
        log_info("Ready: %zu devices, %zu allocations.", m->inventory->n_devices, m->ledger->n_allocations);
}

void manager_check_started(Manager *m) {
        if (m->announced)
                return;
        manager_start_binding(m);
        if (starting_jobs(m) > 0)
                return;
        if (!m->binding && !m->ledger->read_only) {
                /* All VFs are there. */
                m->binding = true;
                find_devices_to_bind(m);
                manager_start_binding(m);
        }
        if (starting_jobs(m) == 0)
                announce(m);
}
