/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts how often a request fits: each plan is entered in a scratch ledger before the next is made. */

#include <errno.h>
#include <stdio.h>

#include "plan-internal.h"
#include "util/strings.h"

/* A ledger with the content of l, borrowed. l must not change meanwhile. */
static Ledger *scratch_new(const Ledger *l) {
        Ledger *scratch = ledger_new();

        for (size_t i = 0; scratch && i < l->n_allocations; i++)
                if (ledger_adopt(scratch, l->allocations[i], NULL) != VERDICT_NONE) {
                        scratch->n_allocations = 0;
                        return ledger_free(scratch);
                }
        if (!scratch)
                return NULL;
        scratch->quarantined = l->quarantined;
        scratch->n_quarantined = l->n_quarantined;
        return scratch;
}

static void scratch_free(Ledger *scratch) {
        if (!scratch)
                return;
        scratch->quarantined = NULL;
        scratch->n_allocations = scratch->n_quarantined = 0;
        ledger_free(scratch);
}

/* The owner of the planned allocations: that of the request, or, if unknown, that of the shared memory. */
static uint32_t find_owner(const Ledger *scratch, const Request *r) {
        const SharedRegion *s = NULL;

        if (r->has_owner)
                return r->owner;
        for (size_t i = 0; i < r->n_regions && !s; i++)
                s = ledger_find_region(scratch, r->regions[i].name);
        return s ? s->owner : 0;
}

/* Plans the request once more. Refusals name the plan "#3", which is no valid allocation name. */
static Verdict fit_once(const HostView *view, Ledger *scratch, const Request *r, uint64_t *work, Repeat *repeat,
                        Refusal *ret) {
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        uint64_t look = (view->inventory->n_devices + view->inventory->n_cpus) * PLAN_DEVICE_WORK;
        Allocation *a;
        Verdict v;

        if (repeat->n == REPEAT_MAX || *work < look)
                return refuse(ret, VERDICT_LIMIT, NULL, NULL,
                              "The limit of planned requests is reached; more may fit.");
        *work -= look;
        v = plan_make_within(view, r, work, &plan, ret);
        if (v != VERDICT_NONE)
                return v;
        a = plan->allocation;
        a->owner = find_owner(scratch, r);
        if (string_replace(&a->name, "#%zu", repeat->n + 1) < 0 || ARRAY_RESERVE(repeat->fits, repeat->n) < 0)
                return refuse_no_memory(ret);
        v = ledger_claim(scratch, view->inventory, view->config, a, ret);
        if (v != VERDICT_NONE)
                return v;
        repeat->fits[repeat->n++] =
                (RepeatFit){ .allocation = a, .score = plan->score, .has_pairs = plan->n_pairs > 0 };
        plan->allocation = NULL;
        return VERDICT_NONE;
}

static bool is_about_room(Verdict v) {
        return v == VERDICT_INSUFFICIENT_DEVICES || v == VERDICT_INSUFFICIENT_CPUS ||
               v == VERDICT_INSUFFICIENT_MEMORY || v == VERDICT_NUMA || v == VERDICT_PROXIMITY;
}

Verdict plan_repeat(const HostView *view, const Request *r, Repeat *ret, Refusal *ret_refusal) {
        Ledger *scratch = scratch_new(view->ledger);
        uint64_t work = PLAN_WORK_MAX;
        HostView context = *view;
        Verdict v = VERDICT_NONE;

        *ret = (Repeat){ 0 };
        context.ledger = scratch;
        while (scratch && v == VERDICT_NONE)
                v = fit_once(&context, scratch, r, &work, ret, &ret->refusal);
        scratch_free(scratch);
        ledger_reclaim(view->ledger);
        if (!scratch)
                return refuse_no_memory(ret_refusal);
        for (size_t i = 0; i < ret->n; i++)
                memset(ret->fits[i].allocation->shared, 0, sizeof(ret->fits[i].allocation->shared));
        if (ret->n > 0 || is_about_room(v))
                return VERDICT_NONE;
        *ret_refusal = ret->refusal;
        ret->refusal = (Refusal){ 0 };
        return v;
}

void repeat_done(Repeat *r) {
        for (size_t i = 0; i < r->n; i++)
                allocation_free(r->fits[i].allocation);
        free(r->fits);
        refusal_done(&r->refusal);
        *r = (Repeat){ 0 };
}
