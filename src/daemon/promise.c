/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares ready allocations with the facts of the node, and reports once when a promise breaks or holds again. */

#include "plan/promise.h"
#include "inventory.h"
#include "operations.h"
#include "util/strings.h"

void manager_check_promise(Manager *m, Allocation *a) {
        _cleanup_refusal_ Refusal why = { 0 };
        _cleanup_free_ char *reason = NULL;
        HostView view = host_state_view(&m->host);

        if (a->state != ALLOCATION_READY)
                return;
        manager_look_at_regions(m, a);
        if (promise_check_kept(&view, a, &why) != VERDICT_NONE) {
                /* The driver was unloaded. When it is loaded again, the daemon binds the devices to it, or creates the
                 * vGPUs. */
                a->resume_refused =
                        a->resume_refused || why.verdict == VERDICT_NO_VFIO_DRIVER || why.verdict == VERDICT_NO_VGPU;
                /* The vGPU is lost, and its VF is there: no further event would follow. */
                if (why.verdict == VERDICT_NO_VGPU && promise_check_hardware(&view, a, NULL) == VERDICT_NONE) {
                        reconcile_queue(&m->reconcile, why.device);
                        reconcile_want(&m->reconcile);
                }
                /* The reason says more already: who uses the device. */
                if (a->taken && why.verdict == VERDICT_CONTESTED)
                        return;
                reason = refusal_text(&why);
                if (!reason)
                        return;
        }
        a->taken = false;
        if (streq_ptr(reason, a->reason))
                return;
        history_record_promise(a, reason ? &why : NULL);
        (void) manager_set_state(m, a, ALLOCATION_READY, reason);
}

void manager_check_promises(Manager *m) {
        if (!m->announced || !m->reconcile.promises_unchecked)
                return;
        m->reconcile.promises_unchecked = false;
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                Allocation *a = m->host.ledger->allocations[i];

                if (manager_is_arriving(m, a))
                        m->reconcile.promises_unchecked = true;
                else
                        manager_check_promise(m, a);
        }
}

Verdict manager_check_runnable(Manager *m, const char *name, Refusal *ret) {
        const Allocation *a;
        HostView view;

        if (manager_refresh_nodes(m) < 0)
                return refuse_no_memory(ret);
        reconcile_want(&m->reconcile);
        a = ledger_find(m->host.ledger, name);
        if (!a || a->state != ALLOCATION_READY || a->domain)
                return VERDICT_NONE;
        view = host_state_view(&m->host);
        return promise_check_kept(&view, a, ret);
}
