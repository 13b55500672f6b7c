/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The planner: candidates, then node sets, then the best devices for each. */

#include "core/plan.h"

#include <errno.h>

#include "core/cores.h"
#include "core/plan-internal.h"
#include "util/strings.h"

/* Node sets looked at for one request: all of up to 8 out of 16 nodes. */
#define NODE_SETS_MAX 50000U

int score_compare(const Score *a, const Score *b) {
        const unsigned left[] = { a->numa_nodes,    a->off_node,      a->remote,  a->worst_distance, a->total_distance, a->gpu_distance,
                                  a->node_distance, a->spoiled,       a->held,    a->left_over,      a->vf_load };
        const unsigned right[] = { b->numa_nodes,    b->off_node,      b->remote,  b->worst_distance, b->total_distance, b->gpu_distance,
                                   b->node_distance, b->spoiled,       b->held,    b->left_over,      b->vf_load };

        for (size_t i = 0; i < ELEMENTSOF(left); i++)
                if (left[i] != right[i])
                        return left[i] < right[i] ? -1 : 1;
        return 0;
}

static bool is_free(const PlanContext *c, const PciDevice *dev) {
        return policy_verdict(c->policy, dev) == VERDICT_NONE &&
               ledger_check_device(c->ledger, c->inventory, dev, NULL, NULL) == VERDICT_NONE;
}

/* Free devices that would be tied up with this one because they are in its group. */
static uint32_t dragged_along(const PlanContext *c, const PciDevice *dev) {
        const IommuGroup *g = inventory_find_group(c->inventory, dev->iommu_group);
        uint32_t n = 0;

        for (size_t i = 0; g && i < g->n_members; i++) {
                const PciDevice *m = &c->inventory->devices[g->members[i]];

                n += m != dev && policy_verdict(c->policy, m) == VERDICT_NONE;
        }
        return n;
}

static int add_candidate(const Planner *p, SearchPool *pool, uint32_t index) {
        const PciDevice *dev = &p->context->inventory->devices[index];

        if (ARRAY_RESERVE(pool->devices, pool->n) < 0 || ARRAY_RESERVE(pool->off, pool->n) < 0 ||
            ARRAY_RESERVE(pool->remote, pool->n) < 0 || ARRAY_RESERVE(pool->held, pool->n) < 0)
                return -ENOMEM;
        if (pool->n == 0) {
                pool->is_gpu = pci_device_is_gpu(dev);
                pool->is_nic = pci_device_is_nic(dev);
        }
        pool->devices[pool->n] = index;
        pool->held[pool->n] = dragged_along(p->context, dev);
        pool->n++;
        return 0;
}

/* One pass over the devices finds the candidates of all pools, and what a request without devices would spoil. */
static int find_candidates(Planner *p) {
        const Inventory *inv = p->context->inventory;

        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *dev = &inv->devices[i];
                int node = inventory_node_index(inv, dev->numa_node), r;
                const Pool *pool;

                if (!is_free(p->context, dev))
                        continue;
                if (node >= 0)
                        p->spoiled[node]++;
                pool = policy_pool(p->context->policy, dev);
                for (size_t j = 0; j < p->search.n_pools; j++)
                        if (p->pools[j] == pool) {
                                r = add_candidate(p, &p->search.pools[j], (uint32_t) i);
                                if (r < 0)
                                        return r;
                        }
        }
        return 0;
}

int planner_init(Planner *p, const PlanContext *c, const Request *r) {
        const Inventory *inv = c->inventory;

        *p = (Planner){ .context = c, .request = r, .threads = cores_threads(inv) };
        p->search = (Search){ .context = c, .n_pools = r->n_pools };
        for (size_t i = 0; i < r->n_pools; i++) {
                p->pools[i] = config_find_pool(c->config, r->pools[i].pool);
                p->search.pools[i].wanted = r->pools[i].count;
        }
        for (size_t i = 0; i < inv->n_nodes; i++) {
                ledger_cpus_free(c->ledger, inv, c->config, &inv->nodes[i], &p->free_cpus[i]);
                p->n_free_cpus[i] = cpuset_count(&p->free_cpus[i]);
                p->free_memory[i] = ledger_memory_free(c->ledger, inv, c->config, &inv->nodes[i], r->page_size);
        }
        return find_candidates(p);
}

void planner_done(Planner *p) {
        for (size_t i = 0; i < p->search.n_pools; i++) {
                free(p->search.pools[i].devices);
                free(p->search.pools[i].off);
                free(p->search.pools[i].remote);
                free(p->search.pools[i].held);
        }
}

static bool same_package(const Inventory *inv, const NodeChoice *choice, int node) {
        const NumaNode *n = inventory_find_node(inv, node);

        for (size_t i = 0; n && n->package >= 0 && i < choice->n_nodes; i++)
                if (inv->nodes[choice->nodes[i]].package == n->package)
                        return true;
        return false;
}

/* How a device stands to the node set, and whether the policy accepts that. */
static bool judge_device(const Planner *p, const NodeChoice *choice, const PciDevice *dev, uint8_t *ret_off, uint8_t *ret_remote) {
        const Inventory *inv = p->context->inventory;
        bool local = false;

        for (size_t i = 0; i < choice->n_nodes; i++)
                local = local || inv->nodes[choice->nodes[i]].id == dev->numa_node;
        *ret_off = !local;
        *ret_remote = !local && dev->numa_node >= 0;
        switch (p->request->numa) {
        case NUMA_POLICY_REQUIRED:
                return local;
        case NUMA_POLICY_SOCKET:
                return local || same_package(inv, choice, dev->numa_node);
        case NUMA_POLICY_LEGACY:
                return local || dev->numa_node < 0;
        default:
                return true;
        }
}

/* The candidates of one pool that the policy accepts beside this node set. */
static int filter_pool(const Planner *p, const NodeChoice *choice, const SearchPool *all, SearchPool *ret) {
        *ret = (SearchPool){ .wanted = all->wanted, .is_gpu = all->is_gpu, .is_nic = all->is_nic };
        ret->devices = malloc((all->n + 1) * sizeof(*ret->devices));
        ret->off = malloc(all->n + 1);
        ret->remote = malloc(all->n + 1);
        ret->held = malloc((all->n + 1) * sizeof(*ret->held));
        if (!ret->devices || !ret->off || !ret->remote || !ret->held)
                return -ENOMEM;
        for (size_t i = 0; i < all->n; i++) {
                const PciDevice *dev = &p->context->inventory->devices[all->devices[i]];

                if (!judge_device(p, choice, dev, &ret->off[ret->n], &ret->remote[ret->n]))
                        continue;
                ret->devices[ret->n] = all->devices[i];
                ret->held[ret->n] = all->held[i];
                ret->n++;
        }
        return ret->n >= ret->wanted ? 0 : -ENOENT;
}

/* A node limit is a matter of the node set, not of the pair. */
static Distance distance_limit(Proximity proximity) {
        static const Distance limits[_PROXIMITY_MAX] = {
                [PROXIMITY_SWITCH] = DISTANCE_PXB,
                [PROXIMITY_ROOT_COMPLEX] = DISTANCE_PHB,
                [PROXIMITY_NODE] = DISTANCE_NODE,
                [PROXIMITY_ANY] = DISTANCE_SYS,
        };
        return limits[proximity];
}

static int choose_devices(const Planner *p, NodeChoice *choice) {
        Planner filtered = { .search = { .context = p->context, .limit = distance_limit(p->request->proximity) } };
        int r = 0;

        for (size_t i = 0; i < p->search.n_pools && r == 0; i++) {
                r = filter_pool(p, choice, &p->search.pools[i], &filtered.search.pools[i]);
                filtered.search.n_pools++;
        }
        if (r == 0)
                r = search_devices(&filtered.search, &choice->picks);
        planner_done(&filtered);
        return r;
}

/* Every node of the set can take its even share of CPUs and memory. */
static bool has_room(const Planner *p, const NodeChoice *choice) {
        const Request *r = p->request;
        uint64_t page = r->page_size ?: 4096, pages = r->memory / page;
        unsigned shares[REQUEST_CELLS_MAX];

        if (r->cpus == 0)
                return true;
        if (r->cpus < choice->n_nodes)
                return false;
        cores_split(r->cpus, p->threads, choice->n_nodes, shares);
        for (size_t i = 0; i < choice->n_nodes; i++) {
                size_t node = choice->nodes[i];
                uint64_t memory = (pages / choice->n_nodes + (i < pages % choice->n_nodes)) * page;

                if (shares[i] == 0 || memory == 0 || memory > p->free_memory[node] ||
                    cores_pick(p->context->inventory, &p->free_cpus[node], shares[i], NULL, NULL) < shares[i])
                        return false;
        }
        return true;
}

static void complete_score(const Planner *p, NodeChoice *choice) {
        const Inventory *inv = p->context->inventory;
        Score *score = &choice->picks.score;

        score->numa_nodes = (unsigned) choice->n_nodes;
        for (size_t i = 0; i < choice->n_nodes; i++) {
                if (p->request->n_pools == 0)
                        score->spoiled += p->spoiled[choice->nodes[i]];
                for (size_t j = 0; j < i; j++)
                        score->node_distance += inv->nodes[choice->nodes[i]].distance[choice->nodes[j]];
        }
}

static int choice_compare(const NodeChoice *a, const NodeChoice *b) {
        int c = score_compare(&a->picks.score, &b->picks.score);

        for (size_t i = 0; c == 0 && i < a->picks.n; i++)
                if (a->picks.devices[i] != b->picks.devices[i])
                        c = a->picks.devices[i] < b->picks.devices[i] ? -1 : 1;
        return c;
}

/* The next set of k nodes out of n in lexicographic order; false after the last. */
static bool next_set(size_t *nodes, size_t k, size_t n) {
        for (size_t i = k; i-- > 0;)
                if (nodes[i] < n - k + i) {
                        nodes[i]++;
                        for (size_t j = i + 1; j < k; j++)
                                nodes[j] = nodes[j - 1] + 1;
                        return true;
                }
        return false;
}

/* All sets of k nodes. Earlier sets win ties: they have the lower node ids. */
static int choose_among(const Planner *p, size_t k, unsigned *budget, NodeChoice *best, NodeChoice *second, unsigned *ret_found) {
        NodeChoice choice = { .n_nodes = k };

        *ret_found = 0;
        for (size_t i = 0; i < k; i++)
                choice.nodes[i] = i;
        do {
                int r = has_room(p, &choice) ? choose_devices(p, &choice) : -ENOENT;

                if (r == -ENOENT)
                        continue;
                if (r < 0)
                        return r;
                complete_score(p, &choice);
                if (*ret_found == 0 || choice_compare(&choice, best) < 0) {
                        if (*ret_found > 0)
                                *second = *best;
                        *best = choice;
                } else if (*ret_found == 1 || choice_compare(&choice, second) < 0)
                        *second = choice;
                (*ret_found)++;
        } while (--*budget > 0 && next_set(choice.nodes, k, p->context->inventory->n_nodes));
        return 0;
}

int planner_choose(const Planner *p, NodeChoice *ret, NodeChoice *ret_second, bool *ret_has_second) {
        size_t n = p->context->inventory->n_nodes, least = 1, most = p->request->cpus > 0 ? REQUEST_CELLS_MAX : 1;
        unsigned budget = NODE_SETS_MAX, found;

        if (p->request->cells > 0)
                least = most = p->request->cells;
        for (size_t k = least; k <= MIN(most, n) && budget > 0; k++) {
                int r = choose_among(p, k, &budget, ret, ret_second, &found);

                if (r < 0)
                        return r;
                if (found > 0) {
                        *ret_has_second = found > 1;
                        return 0;
                }
        }
        return -ENOENT;
}

Plan *plan_free(Plan *p) {
        if (!p)
                return NULL;
        allocation_free(p->allocation);
        free(p->pairs);
        free(p);
        return NULL;
}

static Verdict make(const Planner *p, Plan *plan, Refusal *ret) {
        NodeChoice choice, second;
        int r = planner_choose(p, &choice, &second, &plan->has_runner_up);

        if (r == -ENOENT)
                return planner_refuse(p, ret);
        plan->pairs = calloc(REQUEST_DEVICES_MAX, sizeof(*plan->pairs));
        if (r < 0 || !plan->pairs)
                return refuse(ret, VERDICT_LIMIT, NULL, NULL, "Out of memory.");
        plan->score = choice.picks.score;
        plan->n_pairs = search_pairs(p->context, choice.picks.devices, choice.picks.n, plan->pairs);
        if (plan->has_runner_up) {
                plan->runner_up = second.picks.score;
                plan->n_runner_up_nodes = second.n_nodes;
                for (size_t i = 0; i < second.n_nodes; i++)
                        plan->runner_up_nodes[i] = p->context->inventory->nodes[second.nodes[i]].id;
        }
        return planner_build(p, &choice, &plan->allocation, ret);
}

static Verdict check_pools(const PlanContext *c, const Request *r, Refusal *ret) {
        size_t states = 1;

        for (size_t i = 0; i < r->n_pools; i++) {
                if (!config_find_pool(c->config, r->pools[i].pool))
                        return refuse(ret, VERDICT_NO_SUCH_POOL, NULL, "'passthroughctl list' shows the pools of this node.",
                                      "There is no pool '%s'.", r->pools[i].pool);
                states *= r->pools[i].count + 1;
                if (states > PLAN_STATES_MAX)
                        return refuse(ret, VERDICT_LIMIT, NULL, "Ask for fewer devices from fewer pools at once.",
                                      "The request combines too many devices of too many pools to be planned exactly.");
        }
        return VERDICT_NONE;
}

Verdict plan_make(const PlanContext *c, const Request *r, Plan **ret, Refusal *ret_refusal) {
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        Planner p;
        Verdict v;

        v = request_check(r, ret_refusal);
        if (v == VERDICT_NONE)
                v = check_pools(c, r, ret_refusal);
        if (v != VERDICT_NONE)
                return v;
        plan = calloc(1, sizeof(*plan));
        if (!plan)
                return refuse(ret_refusal, VERDICT_LIMIT, NULL, NULL, "Out of memory.");
        if (planner_init(&p, c, r) < 0)
                v = refuse(ret_refusal, VERDICT_LIMIT, NULL, NULL, "Out of memory.");
        else
                v = make(&p, plan, ret_refusal);
        planner_done(&p);
        if (v == VERDICT_NONE)
                *ret = TAKE_PTR(plan);
        return v;
}
