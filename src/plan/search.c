/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the best choice by walks over the tree of candidates with different limits. */

#include "search.h"

#include <errno.h>

#include "search-walk.h"

size_t search_node(const Inventory *inv, const PciDevice *dev) {
        int node = dev->numa_node >= 0 ? inventory_node_index(inv, dev->numa_node) : -1;

        return node >= 0 ? (size_t) node : dev->numa_node >= 0 ? SEARCH_NODE_ELSEWHERE : SEARCH_NODE_UNKNOWN;
}

int search_new(const HostView *view, const SearchPool *pools, size_t n_pools, const bool *is_free, Search **ret) {
        Search *s = calloc(1, sizeof(*s));
        int r = s ? 0 : -ENOMEM;

        if (r == 0)
                r = leaves_make(view, pools, n_pools, is_free, &s->leaves, &s->n_leaves);
        if (r < 0) {
                search_free(s);
                return r;
        }
        space_init(&s->space, pools, n_pools);
        *ret = s;
        return 0;
}

void search_want(Search *s, const SearchPool *pools, size_t n_pools) {
        for (size_t i = 0; i < s->n_leaves; i++)
                if (s->leaves[i].is_wanted)
                        s->leaves[i].wanted = pools[s->leaves[i].pool].wanted;
        space_init(&s->space, pools, n_pools);
}

Search *search_free(Search *s) {
        if (!s)
                return NULL;
        while (s->spare) {
                Table *t = s->spare;

                s->spare = t->next;
                search_table_free(t);
        }
        search_scratch_done(&s->scratch);
        free(s->leaves);
        free(s);
        return NULL;
}

/* The lower bound of devices off the nodes, as cost_off_node(). */
static Cost least_off_node(const SearchTask *task) {
        return cost_off_node(cost_of(COST_OFF, task->off) | cost_of(COST_REMOTE, task->remote));
}

/*
 * Sets the candidates. at_least: only choices at the lower bound count, so devices farther off than a pool needs are no
 * candidates. The NIC of a GPU may be on any node.
 */
static void set_candidates(Search *s, bool at_least) {
        for (size_t p = 0; p < s->space.n_pools; p++) {
                const unsigned *have = s->task->have[p];
                NodeAffinity affinity = NODE_AFFINITY_LOCAL;
                unsigned n = have[affinity];

                while (affinity < NODE_AFFINITY_REMOTE &&
                       (!at_least || s->space.pools[p].is_gpu_nic || n < s->space.pools[p].wanted))
                        n += have[++affinity];
                s->farthest[p] = affinity;
                s->have[p] = s->others[p] = n;
        }
}

/* The best complete choice with no pair farther apart than worst and at most most devices off the nodes. */
static int solve(Search *s, Distance worst, Cost most, Entry *ret) {
        const Entry *best;
        Table *t;
        int r;

        set_candidates(s, most == least_off_node(s->task));
        t = search_take_table(s);
        if (!t)
                return -ENOMEM;
        s->worst = worst;
        s->most = most;
        r = search_walk(s, &t);
        best = r == 0 ? search_table_best(&s->space, t) : NULL;
        if (best)
                *ret = *best;
        search_give_back(s, t);
        return r < 0 ? r : best ? 0 : -ENOENT;
}

static void entry_score(const Search *s, const Entry *e, Distance worst, Picks *ret) {
        *ret = (Picks){ .n = e->n };
        memcpy(ret->devices, e->picks, e->n * sizeof(e->picks[0]));
        ret->score.off_node = cost_get(e->cost, COST_OFF);
        ret->score.remote = cost_get(e->cost, COST_REMOTE);
        ret->score.worst_distance = s->space.pairs > 0 ? (unsigned) worst : 0;
        ret->score.total_distance = cost_get(e->cost, COST_PAIRS);
        ret->score.nic_off_node = cost_get(e->cost, COST_NIC_OFF);
        ret->score.gpu_distance = cost_get(e->cost, COST_GPUS) / 2;
        ret->score.held = cost_get(e->cost, COST_HELD);
        ret->score.left_over = cost_get(e->cost, COST_LEFT_OVER);
        ret->score.vf_load = cost_get(e->cost, COST_VF_LOAD);
        ret->score.vf_left = cost_get(e->cost, COST_VF_LEFT);
}

/*
 * Finds the smallest limit for pairs with a choice. Usually that is the first limit, or no limit has one, so the widest
 * limit is tried second.
 */
static int solve_tightest(Search *s, Cost most, Distance *ret_worst, Entry *ret) {
        Distance tightest = s->space.pairs > 0 ? DISTANCE_PIX : s->task->limit;
        Entry widest;
        int r = solve(s, tightest, most, ret);

        *ret_worst = tightest;
        if (r != -ENOENT || tightest == s->task->limit)
                return r;
        r = solve(s, s->task->limit, most, &widest);
        if (r < 0)
                return r;
        for (Distance d = tightest + 1; d < s->task->limit; d++) {
                *ret_worst = d;
                r = solve(s, d, most, ret);
                if (r != -ENOENT)
                        return r;
        }
        *ret_worst = s->task->limit;
        *ret = widest;
        return 0;
}

/*
 * The worst distance is a maximum and does not add up over subtrees, so it is a limit instead of a cost. The number of
 * devices off the nodes has precedence and is fixed first. It starts at the lower bound from the counts. If that has no
 * choice, a walk with the widest limit finds the minimum.
 */
int search_devices(Search *s, const SearchTask *task, uint64_t *work, Picks *ret) {
        Distance worst = task->limit;
        Entry best;
        int r;

        s->task = task;
        s->work = work;
        r = solve_tightest(s, least_off_node(task), &worst, &best);
        if (r == -ENOENT) {
                r = solve(s, task->limit, ~(Cost) 0, &best);
                if (r == 0)
                        r = solve_tightest(s, cost_off_node(best.cost), &worst, &best);
        }
        if (r == 0)
                entry_score(s, &best, worst, ret);
        return r;
}

int search_is_feasible(Search *s, const SearchTask *task, uint64_t *work) {
        Entry any;

        s->task = task;
        s->work = work;
        return solve(s, task->limit, ~(Cost) 0, &any);
}
