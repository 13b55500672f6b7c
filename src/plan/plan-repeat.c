/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts how often a request fits: each plan is claimed in a copy of the ledger before the next is made. */

#include <errno.h>
#include <stdio.h>

#include "plan-internal.h"
#include "util/strings.h"

/* The owner of the planned allocations: that of the request, or, if unknown, that of the shared memory. */
static uint32_t find_owner(const Ledger *l, const Request *r) {
        const SharedRegion *s = NULL;

        if (r->has_owner)
                return r->owner;
        for (size_t i = 0; i < r->n_regions && !s; i++)
                s = ledger_find_region(l, r->regions[i].name);
        return s ? s->owner : 0;
}

/* Plans the request once more. Refusals name the plan "#3", which is no valid allocation name. */
static Verdict fit_once(const HostView *view, const Request *r, uint64_t *work, Repeat *repeat, Refusal *ret) {
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
        a->owner = find_owner(repeat->ledger, r);
        if (string_replace(&a->name, "#%zu", repeat->n + 1) < 0 || ARRAY_RESERVE(repeat->fits, repeat->n) < 0)
                return refuse_no_memory(ret);
        v = ledger_claim(repeat->ledger, view->inventory, view->config, a, ret);
        if (v != VERDICT_NONE)
                return v;
        repeat->fits[repeat->n++] =
                (RepeatFit) { .allocation = a, .score = plan->score, .has_pairs = plan->n_pairs > 0 };
        plan->allocation = NULL;
        return VERDICT_NONE;
}

static bool is_about_room(Verdict v) {
        return v == VERDICT_INSUFFICIENT_DEVICES || v == VERDICT_INSUFFICIENT_CPUS ||
               v == VERDICT_INSUFFICIENT_MEMORY || v == VERDICT_INSUFFICIENT_SLOTS || v == VERDICT_NUMA ||
               v == VERDICT_PROXIMITY;
}

Verdict plan_repeat(const HostView *view, const Request *r, Repeat *ret, Refusal *ret_refusal) {
        uint64_t work = PLAN_WORK_MAX;
        HostView context = *view;
        Verdict v = VERDICT_NONE;

        *ret = (Repeat) { .ledger = ledger_copy(view->ledger) };
        if (!ret->ledger)
                return refuse_no_memory(ret_refusal);
        context.ledger = ret->ledger;
        while (v == VERDICT_NONE)
                v = fit_once(&context, r, &work, ret, &ret->refusal);
        if (ret->n > 0 || is_about_room(v))
                return VERDICT_NONE;
        *ret_refusal = ret->refusal;
        ret->refusal = (Refusal) { 0 };
        repeat_done(ret);
        return v;
}

void repeat_done(Repeat *r) {
        free(r->fits);
        ledger_free(r->ledger);
        refusal_done(&r->refusal);
        *r = (Repeat) { 0 };
}
