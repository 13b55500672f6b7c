/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes a plan in three steps: planner.c collects what is free, plan-nodes.c chooses from it, plan-build.c makes the
 * allocation of the choice. */

#include "plan/plan.h"

#include <errno.h>
#include <stdio.h>

#include "guest/confidential.h"
#include "model/cores.h"
#include "plan-internal.h"
#include "util/strings.h"

Plan *plan_free(Plan *p) {
        if (!p)
                return NULL;
        allocation_free(p->allocation);
        free(p->pairs);
        plan_limits_free(p);
        free(p);
        return NULL;
}

static void set_runner_up(const Inventory *inv, const NodeChoice *second, Plan *plan) {
        plan->runner_up = second->picks.score;
        plan->runner_up_partition = second->partition ? (int) second->partition->id : -1;
        plan->n_runner_up_nodes = second->n_nodes;
        for (size_t i = 0; i < second->n_nodes; i++)
                plan->runner_up_nodes[i] = inv->nodes[second->nodes[i]].id;
        plan->n_runner_up_devices = second->picks.n;
        for (size_t i = 0; i < second->picks.n; i++)
                plan->runner_up_devices[i] = inv->devices[second->picks.devices[i]].address;
}

static Verdict make(const Planner *p, Plan *plan, Refusal *ret) {
        bool chooses =
                p->request->n_pools > 0 || p->request->cpus > 0; /* false: the request wants only slots of services */
        NodeChoice choice = { 0 }, second;
        int r = chooses ? planner_choose(p, &choice, &second, &plan->has_runner_up) : 0;

        if (r == -ENOENT)
                return planner_refuse(p, ret);
        plan->pairs = r == 0 ? calloc(REQUEST_DEVICES_MAX, sizeof(*plan->pairs)) : NULL;
        if (!plan->pairs)
                return planner_give_up(r, ret);
        plan->score = choice.picks.score;
        plan->n_pairs = search_pairs(p->context, choice.picks.devices, choice.picks.n, plan->pairs);
        if (plan_limits_make(p, &choice, plan) < 0)
                return planner_give_up(-ENOMEM, ret);
        if (plan->has_runner_up)
                set_runner_up(p->context->inventory, &second, plan);
        return planner_build(p, &choice, &plan->allocation, ret);
}

/* Refuses CPUs on an architecture that has no domain documents. Devices alone need none. */
static Verdict check_architecture(const HostView *view, const Request *r, Refusal *ret) {
        if (r->cpus == 0 || inventory_has_domains(view->inventory))
                return VERDICT_NONE;
        return refuse(ret, VERDICT_NOT_SUPPORTED, NULL, "Ask for devices only, without CPUs and memory.",
                      "This node is %s, but domain documents exist only for " ARCHITECTURE_X86_64
                      " and " ARCHITECTURE_AARCH64 ".",
                      QUOTABLE(inventory_architecture(view->inventory)));
}

/* Who gives out the devices of a pool. If another scheduler does (name is set): with has_claims, the daemon allocates
 * the devices for a consumer that has claimed them, if the request names each of them; without has_claims, it allocates
 * none of them. */
static const struct {
        const char *name; /* NULL: the daemon itself */
        bool has_claims;
        const char *remedy;
} schedulers[_POOL_SCHEDULER_MAX] = {
        [POOL_SCHEDULER_PLACEMENT] = { "OpenStack Placement", true,
                                       "Claim the devices in Placement; 'passthrough-placement --claim CONSUMER' then "
                                       "prints the request." },
        [POOL_SCHEDULER_KUBERNETES] = { "Kubernetes", true,
                                        "Create a ResourceClaim for the devices; passthrough-dra makes the request "
                                        "when a pod uses it." },
        [POOL_SCHEDULER_NOVA] = { "Nova", false, "Ask Nova for an instance with such a device." },
};

static Verdict check_scheduler(const Pool *pool, const Request *r, unsigned count, Refusal *ret) {
        const char *name = schedulers[pool->scheduler].name, *remedy = schedulers[pool->scheduler].remedy;
        unsigned named = 0;

        if (!name)
                return VERDICT_NONE;
        if (!schedulers[pool->scheduler].has_claims)
                return refuse(ret, VERDICT_SCHEDULED, NULL, remedy, "%s gives out the devices of pool '%s'.", name,
                              pool->name);
        for (size_t i = 0; i < r->n_at; i++)
                named += streq(r->at[i].pool, pool->name);
        if (r->consumer && named == count)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_SCHEDULED, NULL, remedy,
                      "%s gives out the devices of pool '%s', and the request names %s.", name, pool->name,
                      r->consumer ? "not each of them with 'at'" : "no consumer");
}

/* Refuses a service whose Via= names an unusable pool. Call it before check_pools(): request_for_hardware() adds the
 * pool of Via= to the request, and check_pools() would refuse a pool that the caller has not named. */
static Verdict check_services(const HostView *view, const Request *r, Refusal *ret) {
        for (size_t i = 0; i < r->n_services; i++) {
                const RemoteService *s = config_find_service(view->config, r->services[i].pool);
                const char *why = config_via_problem(view->config, s);

                if (why)
                        return refuse(
                                ret, config_find_pool(view->config, s->via) ? VERDICT_SCHEDULED : VERDICT_NO_SUCH_POOL,
                                NULL, "Correct Via= of the service in the configuration.",
                                "Service '%s' offers nothing: Via= names the pool '%s', %s.", s->name, s->via, why);
        }
        return VERDICT_NONE;
}

static Verdict check_pools(const HostView *view, const Request *r, Refusal *ret) {
        Verdict v = VERDICT_NONE;

        for (size_t i = 0; v == VERDICT_NONE && i < r->n_pools; i++) {
                const Pool *pool = config_find_pool(view->config, r->pools[i].pool);

                v = pool ? check_scheduler(pool, r, r->pools[i].count, ret)
                         : refuse(ret, VERDICT_NO_SUCH_POOL, NULL,
                                  "'passthroughctl pools' shows the pools of this node.", "There is no pool '%s'.",
                                  r->pools[i].pool);
        }
        return v;
}

/* Plans with force=true: by a policy that does not protect the boot VGA device and the card of the console. */
static Verdict make_forced(const HostView *view, const Request *r, uint64_t *work, Plan **ret, Refusal *ret_refusal) {
        _cleanup_(cleanup_policy_free) Policy *forced = NULL;
        HostView context = *view;

        if (policy_new_forced(view->config, view->inventory, &forced) < 0)
                return planner_give_up(-ENOMEM, ret_refusal);
        context.policy = forced;
        return plan_make_within(&context, r, work, ret, ret_refusal);
}

/* Checks the rules for confidential guests. Other allocations of the same type count, because the host has keys for a
 * limited number of guests. */
static Verdict check_confidential(const HostView *view, const Allocation *a, Refusal *ret) {
        ConfidentialFacts f = confidential_facts(view->inventory, view->config, a, a->confidential);

        for (size_t i = 0; i < view->ledger->n_allocations; i++)
                f.others += view->ledger->allocations[i]->confidential == a->confidential;
        return confidential_check(&f, ret);
}

/* Moves the slots of services from picked to the allocation of the plan. */
static void take_slots(Allocation *a, Allocation *picked) {
        a->services = TAKE_PTR(picked->services);
        a->n_services = picked->n_services;
}

Verdict plan_make_within(const HostView *view, const Request *asked, uint64_t *work, Plan **ret, Refusal *ret_refusal) {
        _cleanup_(cleanup_allocation_free) Allocation *slots = allocation_new(NULL);
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        Request hardware = request_for_hardware(asked, view->config), *r = &hardware;
        Planner p;
        Verdict v;
        int failed;

        /* QEMU refuses a cell whose memory is not a multiple of the host's page size, so use the largest one of
         * aarch64. */
        if (streq(inventory_architecture(view->inventory), ARCHITECTURE_AARCH64))
                hardware.base_page = REQUEST_PAGE_ARM;
        if (r->force && !view->policy->forced)
                return make_forced(view, asked, work, ret, ret_refusal);
        v = request_check(r, ret_refusal);
        if (v == VERDICT_NONE)
                v = check_architecture(view, r, ret_refusal);
        if (v == VERDICT_NONE)
                v = check_services(view, r, ret_refusal);
        if (v == VERDICT_NONE)
                v = check_pools(view, r, ret_refusal);
        if (v == VERDICT_NONE)
                v = planner_check_exact(view, r, ret_refusal);
        if (v == VERDICT_NONE)
                v = planner_check_regions(view, r, ret_refusal);
        if (v == VERDICT_NONE)
                v = slots ? planner_pick_slots(view, r, slots, ret_refusal) : refuse_no_memory(ret_refusal);
        if (v != VERDICT_NONE)
                return v;
        plan = calloc(1, sizeof(*plan));
        if (!plan)
                return refuse_no_memory(ret_refusal);
        failed = planner_init(&p, view, r, work);
        v = failed < 0 ? planner_give_up(failed, ret_refusal) : make(&p, plan, ret_refusal);
        planner_done(&p);
        if (v == VERDICT_NONE)
                v = check_confidential(view, plan->allocation, ret_refusal);
        if (v != VERDICT_NONE)
                return v;
        take_slots(plan->allocation, slots);
        *ret = TAKE_PTR(plan);
        return VERDICT_NONE;
}

Verdict plan_make(const HostView *view, const Request *r, Plan **ret, Refusal *ret_refusal) {
        uint64_t work = PLAN_WORK_MAX;

        return plan_make_within(view, r, &work, ret, ret_refusal);
}

/* How often a request fits: each plan is claimed in a copy of the ledger, and the next one is made with that copy. */

/* Returns the owner of the planned allocations: that of the request or, if it has none, that of its shared memory. 0 if
 * the request has neither. */
static uint32_t find_owner(const Ledger *l, const Request *r) {
        const SharedRegion *s = NULL;

        if (r->has_owner)
                return r->owner;
        for (size_t i = 0; i < r->n_regions && !s; i++)
                s = ledger_find_region(l, r->regions[i].name);
        return s ? s->owner : 0;
}

/* Plans and claims the request once more. The allocation is named "#3" for example, which no real allocation can be. */
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
