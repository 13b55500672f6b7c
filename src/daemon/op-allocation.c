/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Operations on allocations that several calls and jobs share: checks, state changes and removal. */

#include "facts.h"
#include "operations.h"
#include "plan/promise.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

Verdict manager_check_may_change(const Manager *m, Refusal *ret) {
        if (m->host.ledger->read_only)
                return refuse(ret, VERDICT_READ_ONLY, NULL, NULL, "%s", m->host.ledger->read_only);
        if (m->stopping)
                return refuse(ret, VERDICT_BUSY, NULL, "Try again when the daemon runs again.",
                              "The daemon is stopping.");
        return VERDICT_NONE;
}

Verdict refuse_storage(Refusal *ret, int error) {
        log_full(LOG_ERR, error, (&(LogFields) { .id = MESSAGE_LEDGER_WRITE }),
                 "A call is refused because the ledger could not be written: %m");
        return refuse(ret, VERDICT_READ_ONLY, NULL,
                      "Free disk space, or repair the file system of the state directory.",
                      "The ledger could not be written: %s.", strerror(-error));
}

static Verdict check_blocked(const Manager *m, PciAddress device, bool only_orphaned, Refusal *ret) {
        return only_orphaned && !orphans_have(&m->jobs.orphans, device)
                       ? VERDICT_NONE
                       : device_status_check_blocked(&m->host.status, device, ret);
}

/* A change of a VF goes through its PF, so a VF also counts as blocked when its PF is. */
Verdict manager_check_blocked(const Manager *m, const Allocation *a, bool only_orphaned, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; v == VERDICT_NONE && i < a->n_devices; i++) {
                v = check_blocked(m, a->devices[i].address, only_orphaned, ret);
                if (v == VERDICT_NONE && a->devices[i].is_vf)
                        v = check_blocked(m, a->devices[i].physfn, only_orphaned, ret);
        }
        return v;
}

Verdict manager_next_generation(Manager *m, Allocation *a, Refusal *ret) {
        int r = store_next_generation(m->store, &a->generation);

        return r < 0 ? refuse_storage(ret, r) : VERDICT_NONE;
}

int manager_set_state(Manager *m, Allocation *a, AllocationState state, const char *reason) {
        int r;

        ledger_set_state(m->host.ledger, a, state);
        if (string_copy(&a->reason, reason) < 0)
                a->reason = NULL;
        r = m->host.ledger->read_only ? 0 : store_save(m->store, a);
        if (r < 0)
                log_full(LOG_ERR, r, (&(LogFields) { .id = MESSAGE_LEDGER_WRITE, .allocation = a->name }),
                         "Failed to write the state of '%s' to the ledger: %m", a->name);
        note_allocation(m, a);
        return r;
}

/* The file of a may have a change that was refused. Only a release, which removes the file, is possible then. */
static void set_uncertain(Manager *m, Allocation *a) {
        ledger_set_state(m->host.ledger, a, ALLOCATION_FAILED);
        a->hold = 0;
        a->lease_end = 0;
        (void) string_replace(&a->reason,
                              "The disk may have a change that was refused because it could not be written. "
                              "Release it.");
        note_allocation(m, a);
}

Verdict manager_begin_state(Manager *m, Allocation *a, AllocationState state, Refusal *ret) {
        AllocationState before = a->state;
        bool written;
        int r;

        ledger_set_state(m->host.ledger, a, state);
        r = store_save(m->store, a);
        if (r >= 0)
                return VERDICT_NONE;
        written = store_may_have(m->store, a);
        ledger_set_state(m->host.ledger, a, before);
        if (written && store_save(m->store, a) < 0)
                set_uncertain(m, a);
        return refuse_storage(ret, r);
}

Verdict manager_replace_allocation(Manager *m, Allocation *a, Allocation **b, Refusal *ret) {
        Verdict v;
        int r;

        (void) ledger_remove(m->host.ledger, a->name);
        v = ledger_adopt(m->host.ledger, *b, ret);
        if (v != VERDICT_NONE) {
                (void) ledger_adopt(m->host.ledger, a, NULL);
                return v;
        }
        r = store_save(m->store, *b);
        /* Keep the larger claim: the file may be the old or the new one. */
        if (r < 0 &&
            (!store_may_have(m->store, *b) || store_save(m->store, a) >= 0 || (*b)->n_devices < a->n_devices)) {
                (void) ledger_remove(m->host.ledger, a->name);
                (void) ledger_adopt(m->host.ledger, a, NULL);
                return refuse_storage(ret, r);
        }
        if (r < 0) {
                (*b)->status.halted = true;
                if (!allocation_is_changing(*b))
                        set_uncertain(m, *b);
                note_allocation(m, *b);
        }
        *b = a;
        return r < 0 ? refuse_storage(ret, r) : VERDICT_NONE;
}

void manager_delete_allocation(Manager *m, Allocation *a) {
        int r = a->state == ALLOCATION_RELEASING || a->state == ALLOCATION_RESERVED ? store_note_released(m->store, a)
                                                                                    : 0;

        if (r < 0)
                log_full(LOG_ERR, r, (&(LogFields) { .id = MESSAGE_LEDGER_WRITE, .allocation = a->name }),
                         "Failed to note the release of '%s', ignoring: %m", a->name);
        r = store_remove(m->store, a->name);

        if (r < 0) {
                log_full(LOG_ERR, r, (&(LogFields) { .id = MESSAGE_LEDGER_WRITE, .allocation = a->name }),
                         "Failed to remove '%s' from the ledger on disk: %m", a->name);
                ledger_set_state(m->host.ledger, a, ALLOCATION_FAILED);
                (void) string_replace(&a->reason, "The devices are returned, but the file could not be removed from "
                                                  "the ledger. Release it again.");
                note_allocation(m, a);
                return;
        }
        /* If the promise to a was broken, other allocations may share the shortage, which the release may end. */
        m->notes.promises_unchecked = m->notes.promises_unchecked || a->reason;
        manager_forget_attributes(m, a);
        a = ledger_remove(m->host.ledger, a->name);
        note_removed(m, a);
        note_allocation_event(m, HISTORY_RELEASED, a, NULL);
        allocation_free(a);
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

Verdict manager_check_runnable(Manager *m, const char *name, Refusal *ret) {
        const Allocation *a;
        HostView view;

        if (manager_refresh_nodes(m) < 0)
                return refuse_no_memory(ret);
        note_turn(m);
        a = ledger_find(m->host.ledger, name);
        if (!a || a->state != ALLOCATION_READY || a->status.domain)
                return VERDICT_NONE;
        view = host_state_view(&m->host);
        return promise_check_kept(&view, a, ret);
}
