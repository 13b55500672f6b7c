/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Dynamic programming over the locality tree. */

#include "core/search.h"

#include <errno.h>

#include "util/strings.h"

/* Cost components in the order in which they are compared. Distances count how much closer than DISTANCE_SYS, hence negative. */
enum {
        COST_OFF,
        COST_REMOTE,
        COST_PAIRS,
        COST_GPUS,
        COST_HELD,
        COST_LEFT_OVER,
        COST_VF_LOAD,
        _COST_MAX,
};

/* The best choice known for one vector of counts. */
typedef struct Entry {
        bool used;
        int64_t cost[_COST_MAX];
        size_t n;
        uint32_t picks[REQUEST_DEVICES_MAX];
} Entry;

typedef struct Table {
        Entry *entries; /* by state: counts per pool in mixed radix */
} Table;

/* One candidate of the whole search: which pool, which of its devices. */
typedef struct Leaf {
        const Place *place;
        uint8_t pool;
        uint32_t candidate;
} Leaf;

typedef struct Solver {
        const Search *search;
        Distance worst; /* pairs farther apart are not allowed in this run */
        size_t n_states;
        unsigned radix[REQUEST_POOLS_MAX];  /* wanted + 1 */
        unsigned stride[REQUEST_POOLS_MAX];
        unsigned gpus, nics;
        Leaf *leaves;
        size_t n_leaves;
} Solver;

static unsigned state_count(const Solver *s, size_t state, size_t pool) {
        return (unsigned) (state / s->stride[pool]) % s->radix[pool];
}

static void state_sides(const Solver *s, size_t state, unsigned *ret_gpus, unsigned *ret_nics) {
        *ret_gpus = *ret_nics = 0;
        for (size_t p = 0; p < s->search->n_pools; p++) {
                if (s->search->pools[p].is_gpu)
                        *ret_gpus += state_count(s, state, p);
                else if (s->search->pools[p].is_nic)
                        *ret_nics += state_count(s, state, p);
        }
}

/* How many pairs can be made among so many of both sides, and how many the larger side needs. */
static unsigned pairs_within(const Solver *s, size_t state, unsigned *ret_needed) {
        unsigned gpus, nics, larger, smaller, share;

        *ret_needed = 0;
        if (s->gpus == 0 || s->nics == 0)
                return 0;
        state_sides(s, state, &gpus, &nics);
        larger = s->gpus >= s->nics ? gpus : nics;
        smaller = s->gpus >= s->nics ? nics : gpus;
        share = (MAX(s->gpus, s->nics) + MIN(s->gpus, s->nics) - 1) / MIN(s->gpus, s->nics);
        *ret_needed = larger;
        return MIN(larger, share * smaller);
}

static int entry_compare(const Entry *a, const Entry *b) {
        for (size_t i = 0; i < _COST_MAX; i++)
                if (a->cost[i] != b->cost[i])
                        return a->cost[i] < b->cost[i] ? -1 : 1;
        /* Both hold as many, ascending: the set with the lowest address that the other lacks wins. */
        for (size_t i = 0; i < a->n; i++)
                if (a->picks[i] != b->picks[i])
                        return a->picks[i] < b->picks[i] ? -1 : 1;
        return 0;
}

static void table_offer(Table *t, size_t state, const Entry *e) {
        Entry *have = &t->entries[state];

        if (!have->used || entry_compare(e, have) < 0)
                *have = *e;
}

static int table_init(Table *t, size_t n_states) {
        t->entries = calloc(n_states, sizeof(*t->entries));
        return t->entries ? 0 : -ENOMEM;
}

static void table_done(Table *t) {
        free(t->entries);
        t->entries = NULL;
}

static void entry_merge(const Entry *a, const Entry *b, Entry *ret) {
        size_t i = 0, j = 0, n = 0;

        for (size_t k = 0; k < _COST_MAX; k++)
                ret->cost[k] = a->cost[k] + b->cost[k];
        while (i < a->n || j < b->n)
                ret->picks[n++] = j == b->n || (i < a->n && a->picks[i] < b->picks[j]) ? a->picks[i++] : b->picks[j++];
        ret->n = n;
        ret->used = true;
}

static bool states_fit(const Solver *s, size_t a, size_t b) {
        for (size_t p = 0; p < s->search->n_pools; p++)
                if (state_count(s, a, p) + state_count(s, b, p) >= s->radix[p])
                        return false;
        return true;
}

/* into := every way to take some from into and some from other. */
static int table_merge(const Solver *s, Table *into, const Table *other) {
        uint16_t used[PLAN_STATES_MAX];
        size_t n_used = 0;
        Table sum;
        Entry e;

        if (table_init(&sum, s->n_states) < 0)
                return -ENOMEM;
        for (size_t b = 0; b < s->n_states; b++)
                if (other->entries[b].used)
                        used[n_used++] = (uint16_t) b;
        for (size_t a = 0; a < s->n_states; a++)
                for (size_t i = 0; into->entries[a].used && i < n_used; i++) {
                        if (!states_fit(s, a, used[i]))
                                continue;
                        entry_merge(&into->entries[a], &other->entries[used[i]], &e);
                        /* Mixed radix digits do not carry: states_fit(). */
                        table_offer(&sum, a + used[i], &e);
                }
        table_done(into);
        *into = sum;
        return 0;
}

static const PciDevice *candidate_device(const Solver *s, size_t pool, uint32_t candidate) {
        return &s->search->context->inventory->devices[s->search->pools[pool].devices[candidate]];
}

/* VFs in use on the candidate's PF, counting those of the same pool already picked here. */
static unsigned vf_load(const Solver *s, size_t pool, uint32_t candidate, const uint32_t *picked, size_t n_picked) {
        const PciDevice *dev = candidate_device(s, pool, candidate);
        unsigned load;

        if (dev->type != PCI_TYPE_VF)
                return 0;
        load = ledger_pf_use(s->search->context->ledger, dev->physfn);
        for (size_t i = 0; i < n_picked; i++)
                load += pci_address_equal(candidate_device(s, pool, picked[i])->physfn, dev->physfn);
        return load;
}

static void candidate_cost(const Solver *s, size_t pool, uint32_t candidate, const uint32_t *picked, size_t n_picked, Entry *ret) {
        const SearchPool *p = &s->search->pools[pool];

        *ret = (Entry){ .used = true, .n = 1, .picks = { p->devices[candidate] } };
        ret->cost[COST_OFF] = p->off[candidate];
        ret->cost[COST_REMOTE] = p->remote[candidate];
        ret->cost[COST_HELD] = p->held[candidate];
        ret->cost[COST_VF_LOAD] = vf_load(s, pool, candidate, picked, n_picked);
}

/*
 * The best 0, 1, 2, ... devices of one pool at one switch: costs are separable and the VF load convex, so taking the cheapest next is
 * optimal. Returns how many could be taken; best[i] is the choice of i.
 */
static size_t pick_ordered(const Solver *s, size_t pool, const Leaf *leaves, size_t n, Entry *best) {
        uint32_t picked[REQUEST_DEVICES_MAX];
        size_t taken = 0;

        best[0] = (Entry){ .used = true };
        while (taken < s->search->pools[pool].wanted) {
                Entry cheapest = { 0 }, e;
                uint32_t which = 0;

                for (size_t i = 0; i < n; i++) {
                        bool again = leaves[i].pool != pool;

                        for (size_t j = 0; j < taken && !again; j++)
                                again = picked[j] == leaves[i].candidate;
                        if (again)
                                continue;
                        candidate_cost(s, pool, leaves[i].candidate, picked, taken, &e);
                        if (!cheapest.used || entry_compare(&e, &cheapest) < 0) {
                                cheapest = e;
                                which = leaves[i].candidate;
                        }
                }
                if (!cheapest.used)
                        break;
                entry_merge(&best[taken], &cheapest, &best[taken + 1]);
                picked[taken++] = which;
        }
        return taken;
}

static unsigned physical_leaves(const Solver *s, const Leaf *leaves, size_t n) {
        unsigned count = 0;

        for (size_t i = 0; i < n; i++)
                count += candidate_device(s, leaves[i].pool, leaves[i].candidate)->type != PCI_TYPE_VF;
        return count;
}

static unsigned physical_picks(const Solver *s, const Entry *e) {
        unsigned count = 0;

        for (size_t i = 0; i < e->n; i++)
                count += s->search->context->inventory->devices[e->picks[i]].type != PCI_TYPE_VF;
        return count;
}

/* What a place costs for what was taken in it as a whole; forbids choices that leave a pair to be made farther away than allowed. */
static void close_place(const Solver *s, Distance level, const Leaf *leaves, size_t n, Table *t) {
        bool counts_left_over = level == DISTANCE_PIX || level == DISTANCE_NODE;
        unsigned physical = counts_left_over ? physical_leaves(s, leaves, n) : 0;

        for (size_t state = 0; state < s->n_states; state++) {
                Entry *e = &t->entries[state];
                unsigned needed, pairs, gpus, nics, taken;

                if (!e->used)
                        continue;
                pairs = pairs_within(s, state, &needed);
                if (level == s->worst && pairs < needed) {
                        e->used = false;
                        continue;
                }
                state_sides(s, state, &gpus, &nics);
                e->cost[COST_PAIRS] -= pairs;
                e->cost[COST_GPUS] -= gpus > 0 ? (int64_t) gpus * (gpus - 1) / 2 : 0;
                taken = counts_left_over ? physical_picks(s, e) : 0;
                if (taken > 0)
                        e->cost[COST_LEFT_OVER] += physical - taken;
        }
}

/* All choices among the devices at one switch. */
static int solve_switch(const Solver *s, const Leaf *leaves, size_t n, Table *t) {
        _cleanup_free_ Entry *best = calloc(REQUEST_DEVICES_MAX + 1, sizeof(*best));
        Table pool_table;
        int r = 0;

        if (!best)
                return -ENOMEM;
        t->entries[0].used = true;
        for (size_t p = 0; p < s->search->n_pools && r == 0; p++) {
                size_t taken = pick_ordered(s, p, leaves, n, best);

                if (taken == 0)
                        continue;
                r = table_init(&pool_table, s->n_states);
                if (r < 0)
                        return r;
                for (size_t i = 0; i <= taken; i++)
                        pool_table.entries[i * s->stride[p]] = best[i];
                r = table_merge(s, t, &pool_table);
                table_done(&pool_table);
        }
        return r;
}

/* leaves[0..n) share one place at level; *t is empty and the caller's to free in every case. */
static int solve_place(const Solver *s, Distance level, const Leaf *leaves, size_t n, Table *t) {
        int r;

        if (level == DISTANCE_PIX)
                r = solve_switch(s, leaves, n, t);
        else {
                t->entries[0].used = true;
                r = 0;
                for (size_t first = 0, last; first < n && r == 0; first = last) {
                        uint32_t place = leaves[first].place->level[level - 1];
                        Table child;

                        for (last = first + 1; last < n && leaves[last].place->level[level - 1] == place; last++)
                                ;
                        r = table_init(&child, s->n_states);
                        if (r == 0)
                                r = solve_place(s, level - 1, &leaves[first], last - first, &child);
                        if (r == 0)
                                r = table_merge(s, t, &child);
                        table_done(&child);
                }
        }
        if (r == 0 && level < DISTANCE_SYS)
                close_place(s, level, leaves, n, t);
        return r;
}

static int leaf_compare(const void *a, const void *b) {
        const Leaf *x = a, *y = b;

        for (int level = DISTANCE_NODE; level >= 0; level--)
                if (x->place->level[level] != y->place->level[level])
                        return x->place->level[level] < y->place->level[level] ? -1 : 1;
        if (x->pool != y->pool)
                return x->pool < y->pool ? -1 : 1;
        return x->candidate < y->candidate ? -1 : x->candidate > y->candidate;
}

static int solver_init(Solver *s, const Search *search) {
        unsigned stride = 1;
        size_t n = 0;

        *s = (Solver){ .search = search };
        for (size_t p = 0; p < search->n_pools; p++) {
                const SearchPool *pool = &search->pools[p];

                s->radix[p] = pool->wanted + 1;
                s->stride[p] = stride;
                stride *= s->radix[p];
                s->gpus += pool->is_gpu ? pool->wanted : 0;
                s->nics += pool->is_nic ? pool->wanted : 0;
                n += pool->n;
        }
        s->n_states = stride;
        s->leaves = calloc(n + 1, sizeof(*s->leaves));
        if (!s->leaves)
                return -ENOMEM;
        for (size_t p = 0; p < search->n_pools; p++)
                for (size_t i = 0; i < search->pools[p].n; i++)
                        s->leaves[s->n_leaves++] =
                                (Leaf){ .place = &search->context->locality->places[search->pools[p].devices[i]],
                                        .pool = (uint8_t) p,
                                        .candidate = (uint32_t) i };
        qsort(s->leaves, s->n_leaves, sizeof(*s->leaves), leaf_compare);
        return 0;
}

/* The best full choice with no pair farther apart than worst. */
static int solve(Solver *s, Distance worst, Entry *ret) {
        Table t;
        int r;

        s->worst = worst;
        r = table_init(&t, s->n_states);
        if (r == 0)
                r = solve_place(s, DISTANCE_SYS, s->leaves, s->n_leaves, &t);
        if (r == 0 && !t.entries[s->n_states - 1].used)
                r = -ENOENT;
        if (r == 0)
                *ret = t.entries[s->n_states - 1];
        table_done(&t);
        return r;
}

static void entry_score(const Solver *s, const Entry *e, Distance worst, Picks *ret) {
        unsigned pairs = s->gpus > 0 && s->nics > 0 ? MAX(s->gpus, s->nics) : 0;
        int64_t gpu_pairs = s->gpus > 0 ? (int64_t) s->gpus * (s->gpus - 1) / 2 : 0;

        *ret = (Picks){ .n = e->n };
        memcpy(ret->devices, e->picks, sizeof(ret->devices));
        ret->score.off_node = (unsigned) e->cost[COST_OFF];
        ret->score.remote = (unsigned) e->cost[COST_REMOTE];
        ret->score.worst_distance = pairs > 0 ? (unsigned) worst : 0;
        ret->score.total_distance = (unsigned) ((int64_t) pairs * DISTANCE_SYS + e->cost[COST_PAIRS]);
        ret->score.gpu_distance = (unsigned) (gpu_pairs * DISTANCE_SYS + e->cost[COST_GPUS]);
        ret->score.held = (unsigned) e->cost[COST_HELD];
        ret->score.left_over = (unsigned) e->cost[COST_LEFT_OVER];
        ret->score.vf_load = (unsigned) e->cost[COST_VF_LOAD];
}

/*
 * The worst distance is a maximum, which does not add up over subtrees. So it is not a cost but a limit: first the best that the request's
 * limit allows tells how few devices can be off the nodes, then the tightest limit that keeps that number is the best worst distance.
 */
int search_devices(const Search *search, Picks *ret) {
        _cleanup_free_ Leaf *leaves = NULL;
        Entry loosest, tighter;
        Distance worst;
        Solver s;
        int r;

        r = solver_init(&s, search);
        leaves = s.leaves;
        if (r == 0)
                r = solve(&s, search->limit, &loosest);
        if (r < 0)
                return r;
        worst = search->limit;
        for (Distance d = DISTANCE_PIX; s.gpus > 0 && s.nics > 0 && d < search->limit; d++) {
                r = solve(&s, d, &tighter);
                if (r < 0 && r != -ENOENT)
                        return r;
                if (r == 0 && memcmp(tighter.cost, loosest.cost, (COST_REMOTE + 1) * sizeof(tighter.cost[0])) == 0) {
                        loosest = tighter;
                        worst = d;
                        break;
                }
        }
        entry_score(&s, &loosest, worst, ret);
        return 0;
}
