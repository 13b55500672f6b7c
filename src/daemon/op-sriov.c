/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The number of VFs of a PF: creates VFs on a PF that has none, and changes the number when no VF is in use. When
 * another program changes the number, that is reported, not reverted. */

#include <errno.h>

#include "facts.h"
#include "host/holders.h"
#include "operations.h"
#include "plan/vfs.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

#define REMEDY_CHANGE "'passthroughctl sriov PF NUMBER' changes the number when no VF is in use."

static JobResult vfs_finished(Manager *m, Job *job, JobResult result);

static void on_attributes_failed(Manager *m, Job *job, const Step *step, const char *message);

static const JobKind set_vfs_kind = { .verb = MANAGER_VERB_VFS,
                                      .device_failed = on_attributes_failed,
                                      .finished = vfs_finished };

static const JobStuck *find_stuck_change(const Job *job) {
        for (size_t i = 0; i < job->n_stuck; i++)
                if (job->stuck[i].step && step_hang(job->stuck[i].step))
                        return &job->stuck[i];
        return NULL;
}

/* Refuses while a change of the VFs of any PF hangs. Such a change holds the kernel's lock for adding and removing VFs,
 * on which another change would block. */
static Verdict check_stuck_change(const Manager *m, const PciDevice *pf, Refusal *ret) {
        const char *orphan = orphans_find_at_vfs(&m->jobs.orphans);

        if (orphan)
                return refuse(ret, VERDICT_STUCK, &pf->address,
                              "See the journal for the call it is stuck in; a reboot clears it.",
                              "The number of VFs of %s cannot be changed while the kernel has not returned from a job "
                              "of an earlier daemon, '%s'.",
                              PCI_ADDRESS_STR(pf->address), QUOTABLE(orphan));
        for (size_t i = 0; i < m->jobs.n; i++) {
                const JobStuck *stuck = find_stuck_change(m->jobs.list[i]);
                _cleanup_free_ char *text = stuck ? job_stuck_describe(stuck) : NULL;

                if (stuck)
                        return refuse(ret, VERDICT_STUCK, &pf->address,
                                      "See the journal for the call it is stuck in; a reboot clears it.",
                                      "The number of VFs of %s cannot be changed while the kernel has not returned "
                                      "from the attempt to %s.",
                                      PCI_ADDRESS_STR(pf->address), text ?: "change it");
        }
        return VERDICT_NONE;
}

/* Refuses when a process has a VF of the PF open, or a mediated device on a VF. */
static Verdict check_open(const Manager *m, const PciDevice *pf, Refusal *ret) {
        const HolderQuery query = { .address = pf->address, .group = -1, .only_parts = true };
        Holder holder;
        int r = holders_find(m->fs, &query, 1, &holder);

        if (r < 0)
                return refuse_use_unknown(&pf->address, r, ret);
        if (r == 0)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_BUSY, holder.has_vf ? &holder.vf : &pf->address, holder.remedy,
                      "%s is in use by %s.", holder.subject, holder.text);
}

/* Refuses when a VF that would be removed is in use. */
static Verdict check_users(const Manager *m, const PciDevice *pf, Refusal *ret) {
        HostView view = host_state_view(&m->host);
        Verdict v = plan_check_vfs_idle(&view, pf, ret);

        return v != VERDICT_NONE ? v : check_open(m, pf, ret);
}

int manager_read_vfs(Manager *m, const PciAddress *pfs, size_t n_pfs) {
        int r = manager_scan_devices(m, pfs, n_pfs, false);

        return r < 0 ? manager_scan(m) : r;
}

/* Reads the VFs of the PF and the bond of its card's ports, and has settle find again which guests use the VFs. Returns
 * 0 or a negative errno. */
static int read_pf(Manager *m, PciAddress address) {
        _cleanup_free_ PciAddress *ports = NULL;
        size_t n = 0;
        int r = pci_address_append(&ports, &n, address);

        for (size_t i = 0; r >= 0 && i < m->host.inventory->n_devices; i++) {
                const PciDevice *port = &m->host.inventory->devices[i];

                if (port->type != PCI_TYPE_VF && pci_address_same_slot(port->address, address) &&
                    !pci_address_equal(port->address, address))
                        r = pci_address_append(&ports, &n, port->address);
        }
        if (r >= 0)
                r = manager_read_vfs(m, ports, n);
        m->notes.guests_due = true;
        note_turn(m);
        return r;
}

static Verdict start_job(Manager *m, const PciDevice *pf, unsigned count, const VfAttributes *attributes,
                         uint32_t *ret_job, Refusal *ret) {
        StepList *steps;

        if (steps_set_vfs(m->host.inventory, pf, count, attributes, &steps) < 0)
                return refuse_no_memory(ret);
        return manager_start_job(m, &set_vfs_kind, PCI_ADDRESS_STR(pf->address), steps, &pf->address, 1, ret_job, ret);
}

static Verdict start_vfs(Manager *m, const PciDevice *pf, unsigned count, uint32_t *ret_job, Refusal *ret) {
        _cleanup_free_ VfAttributes *attributes = NULL;
        HostView view = host_state_view(&m->host);

        if (plan_vf_attributes(&view, m->host.identity, pf, count, &attributes) < 0)
                return refuse_no_memory(ret);
        return start_job(m, pf, count, attributes, ret_job, ret);
}

bool manager_identify_vfs(Manager *m, const PciDevice *pf, uint32_t *ret_job) {
        _cleanup_refusal_ Refusal ignored = { 0 };
        _cleanup_free_ VfAttributes *attributes = NULL;
        HostView view = host_state_view(&m->host);
        bool any = false;

        if (m->host.ledger->read_only ||
            plan_vf_attributes(&view, m->host.identity, pf, (unsigned) pf->n_virtfns, &attributes) < 0)
                return false;
        for (size_t i = 0; i < pf->n_virtfns; i++)
                any |= attributes[i].set != 0;
        return any && device_status_check_blocked(&m->host.status, pf->address, &ignored) == VERDICT_NONE &&
               check_stuck_change(m, pf, &ignored) == VERDICT_NONE &&
               start_job(m, pf, (unsigned) pf->n_virtfns, attributes, ret_job, &ignored) == VERDICT_NONE;
}

Verdict manager_create_vfs(Manager *m, const PciDevice *pf, unsigned count, uint32_t *ret_job, Refusal *ret) {
        HostView view = host_state_view(&m->host);
        Verdict v = device_status_check_blocked(&m->host.status, pf->address, ret);
        /* The job removes every VF for which the PF has a virtfn link, even if the last scan did not see the VF. */
        size_t n = MAX(pf->n_virtfns, pf->n_vfs);

        if (v != VERDICT_NONE)
                return v;
        if (n > 0 && !pci_device_is_mlx4_pf(pf))
                return refuse(ret, VERDICT_VFS_PRESENT, &pf->address, REMEDY_CHANGE,
                              "%s has %zu VF%s, %u %s wanted; a change of the number would remove the existing VFs.",
                              PCI_ADDRESS_STR(pf->address), n, PLURAL(n), count, ARE(count));
        v = plan_check_pf(&view, pf, count, ret);
        if (v == VERDICT_NONE)
                v = plan_check_pf_free(&view, pf, ret);
        if (v == VERDICT_NONE)
                v = check_stuck_change(m, pf, ret);
        return v != VERDICT_NONE ? v : start_vfs(m, pf, count, ret_job, ret);
}

/* Reads the PF again, checks whether its VFs can be changed, and starts the job. */
static Verdict change_vfs(Manager *m, PciAddress address, unsigned count, uint32_t *ret_job, Refusal *ret) {
        const PciDevice *pf;
        HostView view;
        Verdict v;

        if (read_pf(m, address) < 0)
                return refuse_no_memory(ret);
        pf = inventory_find(m->host.inventory, address);
        if (!pf)
                return refuse(ret, VERDICT_NO_SUCH_DEVICE, &address, NULL, "%s is not on this node.",
                              PCI_ADDRESS_STR(address));
        view = host_state_view(&m->host);
        v = plan_check_pf(&view, pf, count, ret);
        if (v == VERDICT_NONE)
                v = plan_check_pf_pool(&view, pf, ret);
        if (v == VERDICT_NONE && pf->n_virtfns != count)
                v = check_users(m, pf, ret);
        if (v == VERDICT_NONE && pf->n_virtfns != count)
                v = plan_check_pf_free(&view, pf, ret);
        if (v == VERDICT_NONE && pf->n_virtfns != count)
                v = check_stuck_change(m, pf, ret);
        return v != VERDICT_NONE ? v : start_vfs(m, pf, count, ret_job, ret);
}

Verdict manager_set_virtual_functions(Manager *m, PciAddress address, unsigned count, uint32_t *ret_job, Refusal *ret) {
        const PciDevice *pf = inventory_find(m->host.inventory, address);
        HostView view = host_state_view(&m->host);
        Verdict v = manager_check_may_change(m, ret);

        if (v != VERDICT_NONE)
                return v;
        if (!pf)
                return refuse(ret, VERDICT_NO_SUCH_DEVICE, &address, NULL, "%s is not on this node.",
                              PCI_ADDRESS_STR(address));
        /* A device that is no PF has 0 VFs already, so the job has no steps. */
        if (count == 0 && pf->type != PCI_TYPE_PF)
                return start_vfs(m, pf, count, ret_job, ret);
        v = plan_check_pf(&view, pf, count, ret);
        if (v == VERDICT_NONE && pf->n_virtfns == 0)
                v = plan_check_pf_free(&view, pf, ret);
        if (v == VERDICT_NONE)
                v = plan_check_pf_pool(&view, pf, ret);
        return v != VERDICT_NONE ? v : change_vfs(m, address, count, ret_job, ret);
}

static void record_done(Manager *m, const Job *job, PciAddress pf) {
        const StepList *steps = job->steps;
        const char *address = job->subject;
        unsigned from = 0, to = 0;

        for (size_t i = 0; i < steps->n; i++) {
                if (steps->steps[i].kind == STEP_REMOVE_VFS)
                        from = steps->steps[i].count;
                if (steps->steps[i].kind == STEP_NUMVFS)
                        to = steps->steps[i].count;
        }
        if (from > 0 && to > 0)
                note_event(m, HISTORY_VFS_CHANGED, pf, NULL, "Changed the number of VFs of %s from %u to %u.", address,
                           from, to);
        else if (from > 0)
                note_event(m, HISTORY_VFS_REMOVED, pf, NULL, "Removed the VFs of %s.", address);
        else if (to > 0)
                note_event(m, HISTORY_VFS_CREATED, pf, NULL, "Created VFs on %s.", address);
}

/* Notes the VFs as new, also those that a uevent has shown while the job ran: until now their PF was blocked, so they
 * could not be bound. */
static void queue_vfs(Manager *m, PciAddress address) {
        const PciDevice *pf = inventory_find(m->host.inventory, address);

        for (size_t i = 0; m->announced && pf && i < pf->n_vfs; i++)
                note_arrived(m, pf->vfs[i]);
}

/* Handles attributes that could not be set on a VF without an allocation. The VF is kept. An allocation of the VF sets
 * its attributes again, and fails if that is impossible. */
static void on_attributes_failed(Manager *m, Job *job, const Step *step, const char *message) {
        const LogFields fields = { .id = MESSAGE_NOT_PREPARED, .device = PCI_ADDRESS_STR(step->device) };

        log_full(LOG_WARNING, 0, &fields, "VF %u of %s keeps the attributes it was created with: %s", step->vf.index,
                 fields.device, message);
}

static bool changes_number(const Job *job) {
        const StepList *steps = job->steps;

        for (size_t i = 0; i < steps->n; i++)
                if (steps->steps[i].kind == STEP_NUMVFS || steps->steps[i].kind == STEP_REMOVE_VFS)
                        return true;
        return false;
}

/* Sets a message of the job: the host has lost the RDMA device of the bond. An admin allowed that by naming the PF in
 * the pool. */
static void tell_lost_lag(const Manager *m, Job *job) {
        const PciDevice *pf = inventory_find(m->host.inventory, job->devices[0]);
        _cleanup_free_ char *text = NULL;

        if (!pf || pf->n_virtfns == 0 || !policy_pf_has_roce_lag(m->host.policy, pf))
                return;
        text = string_format("%s has no RoCE LAG while %s has VFs: the host has an RDMA device for each port, and none "
                             "for the bond.",
                             QUOTABLE(pf->bond), job->subject);
        if (text)
                job_set_message(job, text);
}

static JobResult vfs_finished(Manager *m, Job *job, JobResult result) {
        PciAddress address = job->devices[0];

        if (result == JOB_DONE)
                record_done(m, job, address);
        if (result == JOB_DONE && device_status_get(&m->host.status, address, DEVICE_CONTESTED))
                note_event(m, HISTORY_UNCONTESTED, address, NULL,
                           "The number of VFs of %s was set by passthroughd again.", PCI_ADDRESS_STR(address));
        if (result == JOB_DONE)
                (void) device_status_set(&m->host.status, address, DEVICE_CONTESTED, NULL);
        if (!changes_number(job))
                return result;
        if (!m->announced)
                (void) pci_address_append(&m->notes.unread, &m->notes.n_unread, address);
        else
                (void) manager_scan(m);
        if (result == JOB_DONE)
                tell_lost_lag(m, job);
        if (job->steps->n > 0)
                queue_vfs(m, address);
        return result;
}
