/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The planner: what is free, then the best choice (plan-nodes.c), then the allocation (plan-build.c). */

#include "plan/plan.h"

#include <errno.h>

#include "model/cores.h"
#include "plan-internal.h"
#include "util/strings.h"

static bool is_free(const PlanContext *c, const PciDevice *dev) {
        return policy_verdict(c->policy, dev) == VERDICT_NONE &&
               ledger_check_device(c->ledger, c->inventory, dev, NULL, NULL) == VERDICT_NONE;
}

static void add_candidate(Planner *p, size_t index, const PciDevice *dev, size_t node) {
        SearchPool *pool = &p->pools[index];

        if (!pool->has_vfs && !pool->has_devices) {
                pool->is_gpu = pci_device_is_gpu(dev);
                pool->is_nic = pci_device_is_nic(dev);
        }
        if (dev->type == PCI_TYPE_VF)
                pool->has_vfs = true;
        else
                pool->has_devices = true;
        p->candidates[index][node]++;
}

/* The pairing decides where the NIC of a GPU is to be. */
static void find_gpu_nics(Planner *p) {
        bool has_gpus = false;

        for (size_t i = 0; i < p->request->n_pools; i++)
                has_gpus = has_gpus || p->pools[i].is_gpu;
        for (size_t i = 0; i < p->request->n_pools; i++)
                p->pools[i].is_gpu_nic = has_gpus && p->pools[i].is_nic;
}

/* One pass over the devices finds the candidates of all pools, and what a request without devices would spoil. */
static void find_candidates(Planner *p) {
        const Inventory *inv = p->context->inventory;

        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *dev = &inv->devices[i];
                size_t node = search_node(inv, dev);
                const Pool *pool;

                p->is_free[i] = is_free(p->context, dev);
                if (!p->is_free[i])
                        continue;
                if (node < inv->n_nodes)
                        p->spoiled[node]++;
                pool = policy_pool(p->context->policy, dev);
                for (size_t j = 0; j < p->request->n_pools; j++)
                        if (p->pools[j].pool == pool)
                                add_candidate(p, j, dev, node);
        }
}

static void find_memory(Planner *p, uint64_t page_size) {
        const PlanContext *c = p->context;

        for (size_t i = 0; i < c->inventory->n_nodes; i++)
                p->free_memory[i] =
                        ledger_memory_free(c->ledger, c->inventory, c->config, &c->inventory->nodes[i], page_size);
        p->page_size = page_size;
}

int planner_init(Planner *p, const PlanContext *c, const Request *r, uint64_t *work) {
        const Inventory *inv = c->inventory;

        *p = (Planner){ .context = c, .request = r, .work = work, .threads = cores_threads(inv) };
        p->is_free = calloc(inv->n_devices + 1, sizeof(*p->is_free));
        if (!p->is_free)
                return -ENOMEM;
        for (size_t i = 0; i < r->n_pools; i++)
                p->pools[i] = (SearchPool){ .pool = config_find_pool(c->config, r->pools[i].pool),
                                            .wanted = r->pools[i].count };
        for (size_t i = 0; i < r->n_limits; i++)
                for (unsigned side = 0; side < 2; side++)
                        (void) request_find_pool(r, r->limits[i].pools[side], &p->limits[i][side]);
        for (size_t i = 0; i < inv->n_nodes; i++) {
                ledger_cpus_free(c->ledger, inv, c->config, &inv->nodes[i], &p->free_cpus[i]);
                p->n_free_cpus[i] = cores_count(inv, &p->free_cpus[i]);
        }
        find_memory(p, r->page_size);
        find_candidates(p);
        find_gpu_nics(p);
        return search_new(c, p->pools, r->n_pools, p->is_free, &p->search);
}

void planner_ask(Planner *p, const Request *r) {
        p->request = r;
        for (size_t i = 0; i < r->n_pools; i++)
                p->pools[i].wanted = r->pools[i].count;
        if (r->page_size != p->page_size)
                find_memory(p, r->page_size);
        search_want(p->search, p->pools, r->n_pools);
}

void planner_done(Planner *p) {
        free(p->is_free);
        p->search = search_free(p->search);
}

unsigned planner_count(const Planner *p, size_t pool) {
        unsigned n = 0;

        for (size_t i = 0; i < SEARCH_NODES_MAX; i++)
                n += p->candidates[pool][i];
        return n;
}

Plan *plan_free(Plan *p) {
        if (!p)
                return NULL;
        allocation_free(p->allocation);
        free(p->pairs);
        plan_limits_free(p);
        free(p);
        return NULL;
}

Verdict planner_give_up(int r, Refusal *ret) {
        if (r == -E2BIG)
                return refuse(ret, VERDICT_LIMIT, NULL, "Ask for fewer devices from fewer pools at once.",
                              "The request combines too many devices of too many pools to be planned exactly.");
        return refuse_no_memory(ret);
}

static void set_runner_up(const Inventory *inv, const NodeChoice *second, Plan *plan) {
        plan->runner_up = second->picks.score;
        plan->n_runner_up_nodes = second->n_nodes;
        for (size_t i = 0; i < second->n_nodes; i++)
                plan->runner_up_nodes[i] = inv->nodes[second->nodes[i]].id;
        plan->n_runner_up_devices = second->picks.n;
        for (size_t i = 0; i < second->picks.n; i++)
                plan->runner_up_devices[i] = inv->devices[second->picks.devices[i]].address;
}

static Verdict make(const Planner *p, Plan *plan, Refusal *ret) {
        NodeChoice choice, second;
        int r = planner_choose(p, &choice, &second, &plan->has_runner_up);

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

/* CPUs are for a domain. Devices alone can be had on any node. */
static Verdict check_architecture(const PlanContext *c, const Request *r, Refusal *ret) {
        if (r->cpus == 0 || inventory_has_domains(c->inventory))
                return VERDICT_NONE;
        return refuse(ret, VERDICT_NOT_SUPPORTED, NULL, "Ask for devices only, without CPUs and memory.",
                      "This node is %s, and there are domain documents for " ARCHITECTURE_X86_64
                      " and " ARCHITECTURE_AARCH64 " only.",
                      QUOTABLE(inventory_architecture(c->inventory)));
}

static Verdict check_pools(const PlanContext *c, const Request *r, Refusal *ret) {
        for (size_t i = 0; i < r->n_pools; i++)
                if (!config_find_pool(c->config, r->pools[i].pool))
                        return refuse(ret, VERDICT_NO_SUCH_POOL, NULL,
                                      "'passthroughctl list' shows the pools of this node.", "There is no pool '%s'.",
                                      r->pools[i].pool);
        return VERDICT_NONE;
}

/* As though nobody looked at any display. */
static Verdict make_forced(const PlanContext *c, const Request *r, uint64_t *work, Plan **ret, Refusal *ret_refusal) {
        _cleanup_(cleanup_policy_free) Policy *forced = NULL;
        PlanContext context = *c;

        if (policy_new_forced(c->config, c->inventory, &forced) < 0)
                return planner_give_up(-ENOMEM, ret_refusal);
        context.policy = forced;
        return plan_make_within(&context, r, work, ret, ret_refusal);
}

Verdict plan_make_within(const PlanContext *c, const Request *r, uint64_t *work, Plan **ret, Refusal *ret_refusal) {
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        Planner p;
        Verdict v;
        int failed;

        if (r->force && !c->policy->forced)
                return make_forced(c, r, work, ret, ret_refusal);
        v = request_check(r, ret_refusal);
        if (v == VERDICT_NONE)
                v = check_architecture(c, r, ret_refusal);
        if (v == VERDICT_NONE)
                v = check_pools(c, r, ret_refusal);
        if (v == VERDICT_NONE)
                v = planner_check_regions(c, r, ret_refusal);
        if (v != VERDICT_NONE)
                return v;
        plan = calloc(1, sizeof(*plan));
        if (!plan)
                return refuse_no_memory(ret_refusal);
        failed = planner_init(&p, c, r, work);
        v = failed < 0 ? planner_give_up(failed, ret_refusal) : make(&p, plan, ret_refusal);
        planner_done(&p);
        if (v == VERDICT_NONE)
                *ret = TAKE_PTR(plan);
        return v;
}

Verdict plan_make(const PlanContext *c, const Request *r, Plan **ret, Refusal *ret_refusal) {
        uint64_t work = PLAN_WORK_MAX;

        return plan_make_within(c, r, &work, ret, ret_refusal);
}
