/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Dynamic programming over the tree of candidates. */

#include "core/search.h"

#include <errno.h>

#include "core/search-tree.h"

struct Search {
        Space space;
        Leaf *leaves;
        size_t n_leaves;
        Table *spare;
        /* of the run at hand */
        const SearchTask *task;
        Distance worst; /* pairs farther apart are not allowed */
        Cost most;      /* nor more devices off the nodes, as cost_off_node() has it */
        uint64_t *work;
};

size_t search_node(const Inventory *inv, const PciDevice *dev) {
        int node = dev->numa_node >= 0 ? inventory_node_index(inv, dev->numa_node) : -1;

        return node >= 0 ? (size_t) node : dev->numa_node >= 0 ? SEARCH_NODE_ELSEWHERE : SEARCH_NODE_UNKNOWN;
}

int search_new(const PlanContext *c, const SearchPool *pools, size_t n_pools, const bool *is_free, Search **ret) {
        Search *s = calloc(1, sizeof(*s));
        int r = s ? space_init(&s->space, pools, n_pools) : -ENOMEM;

        if (r == 0)
                r = leaves_make(c, &s->space, pools, n_pools, is_free, &s->leaves, &s->n_leaves);
        if (r < 0) {
                search_free(s);
                return r;
        }
        *ret = s;
        return 0;
}

Search *search_free(Search *s) {
        if (!s)
                return NULL;
        while (s->spare) {
                Table *t = s->spare;

                s->spare = t->next;
                search_table_free(t);
        }
        space_done(&s->space);
        free(s->leaves);
        free(s);
        return NULL;
}

/* Tables are large; few are in use at a time. */
static Table *take_table(Search *s) {
        Table *t = s->spare;

        if (!t)
                return search_table_new(&s->space);
        s->spare = t->next;
        search_table_reset(t);
        return t;
}

static void give_back(Search *s, Table *t) {
        t->next = s->spare;
        s->spare = t;
}

static Standing leaf_standing(const Search *s, const Leaf *leaf) {
        return (Standing) s->task->standing[leaf->pool][leaf->node];
}

static bool is_candidate(const Search *s, const Leaf *leaf) {
        return leaf->step > 0 && leaf_standing(s, leaf) != STANDING_REFUSED;
}

/* One device. What it shares with others is the matter of the places above. */
static void solve_leaf(const Search *s, const Leaf *leaf, Table *t) {
        Standing standing = leaf_standing(s, leaf);
        Cost cost = cost_of(COST_OFF, standing != STANDING_LOCAL) | cost_of(COST_REMOTE, standing == STANDING_REMOTE);

        if (!is_candidate(s, leaf) || cost_off_node(cost) > s->most)
                return;
        if (leaf->group_level == LEVEL_ALL && leaf->group_free > 1)
                cost |= cost_of(COST_HELD, leaf->group_free - 1);
        search_table_put(t, leaf->step, cost, leaf->device);
}

/* What VFs of one PF cost together. */
static Cost family_cost(const State *state, const Leaf *leaf) {
        uint64_t spread = state->spread_vfs, packed = state->packed_vfs;
        Cost cost = cost_of(COST_VF_LOAD, spread * leaf->load + spread * (spread - 1) / 2 + spread * packed);

        return packed > 0 ? cost | cost_of(COST_VF_LEFT, leaf->spare - state->taken) : cost;
}

/* What taking devices of one group, or of one PF, costs together. */
static void close_kin(const Search *s, Level level, const Leaf *leaf, Table *t) {
        for (size_t i = 0; i < t->n_used; i++) {
                const State *state = &s->space.states[t->used[i]];
                Entry *e = &t->entries[t->used[i]];

                if (state->taken > 0 && level == leaf->group_level)
                        e->cost += cost_of(COST_HELD, leaf->group_free - state->taken);
                if (state->taken > 0 && level == LEVEL_FAMILY && leaf->is_vf)
                        e->cost += family_cost(state, leaf);
        }
}

static unsigned count_physical(const Leaf *leaves, size_t n) {
        unsigned count = 0;

        for (size_t i = 0; i < n; i++)
                count += !leaves[i].is_vf;
        return count;
}

/*
 * What is taken in a place is no farther apart than that place, and farther from all else: which is all there is to
 * know of a limit of that distance.
 */
static bool is_allowed(const Search *s, Distance level, const State *state) {
        if (level == s->worst && state->unpaired > 0)
                return false;
        for (size_t i = 0; i < s->task->n_limits; i++)
                if (level == s->task->limits[i].limit && !space_satisfies(&s->space, state, s->task->limits[i].pools))
                        return false;
        return true;
}

/*
 * What a switch, root port, host bridge or node costs for what was taken in it: a step of distance for each pair that
 * is not made within. Where a distance would become more than allowed, choices with such pairs go.
 */
static void close_place(const Search *s, Distance level, const Leaf *leaves, size_t n, Table *t) {
        bool counts_left_over = level == DISTANCE_PIX || level == DISTANCE_NODE;
        unsigned physical = counts_left_over && t->n_used > 1 ? count_physical(leaves, n) : 0;
        size_t kept = 0;

        for (size_t i = 0; i < t->n_used; i++) {
                const State *state = &s->space.states[t->used[i]];
                Entry *e = &t->entries[t->used[i]];

                if (!is_allowed(s, level, state)) {
                        t->present[t->used[i]] = false;
                        continue;
                }
                e->cost += cost_of(COST_PAIRS, state->unpaired) + cost_of(COST_GPUS, state->gpus_elsewhere);
                if (counts_left_over && state->physical > 0)
                        e->cost += cost_of(COST_LEFT_OVER, physical - state->physical);
                t->used[kept++] = t->used[i];
        }
        t->n_used = kept;
}

/* Alike but for the address, with nothing in common but places: of these the first that are wanted will do. */
static bool is_like(const Search *s, const Leaf *a, const Leaf *b) {
        return a->step == b->step && a->load == b->load && a->spare == b->spare && a->group_level == b->group_level &&
               a->group_free == b->group_free && leaf_standing(s, a) == leaf_standing(s, b);
}

static int solve_place(Search *s, Level level, const Leaf *leaves, size_t n, Table **t);

/* *t := every way to take some from *t and some from part. */
static int absorb(Search *s, Table **t, Table *part) {
        Table *other = part;
        int r = 0;

        if (part->n_used > 1 && (*t)->n_used > 1) {
                other = take_table(s);
                if (!other) {
                        give_back(s, part);
                        return -ENOMEM;
                }
                r = search_table_merge(&s->space, *t, part, s->most, s->work, other);
                give_back(s, part);
        }
        if (other != part || part->n_used > 1) {
                give_back(s, *t);
                *t = other;
        } else
                give_back(s, part);
        return r;
}

/* Alike devices that are parts of their own one after the other: how many before this one. */
static size_t count_alike(const Search *s, const Leaf *leaf, size_t before, bool after_single) {
        return after_single && is_like(s, leaf, leaf - 1) ? before + 1 : 0;
}

/* The parts of a place one level below, each with the ones before. */
static int solve_parts(Search *s, Level level, const Leaf *leaves, size_t n, Table **t) {
        size_t alike = 0;
        bool single = false;
        int r = 0;

        for (size_t first = 0, end; first < n && r == 0; first = end) {
                Table *part;

                for (end = first + 1;
                     level > LEVEL_GROUP && end < n && leaves[end].at[level - 1] == leaves[first].at[level - 1]; end++)
                        ;
                if (end == first + 1) {
                        alike = count_alike(s, &leaves[first], alike, single);
                        single = true;
                        /* Below a switch only: farther apart, places differ. */
                        if (!is_candidate(s, &leaves[first]) ||
                            (level <= LEVEL_SWITCH && alike >= leaves[first].wanted))
                                continue;
                } else
                        single = false;
                part = take_table(s);
                if (!part)
                        return -ENOMEM;
                if (level == LEVEL_GROUP)
                        solve_leaf(s, &leaves[first], part);
                else
                        r = solve_place(s, level - 1, &leaves[first], end - first, &part);
                if (r < 0)
                        give_back(s, part);
                else
                        r = absorb(s, t, part);
        }
        return r;
}

/* leaves[0..n) share one place at level; *t holds nothing yet, and may be exchanged for another. */
static int solve_place(Search *s, Level level, const Leaf *leaves, size_t n, Table **t) {
        int r = solve_parts(s, level, leaves, n, t);

        if (r == 0 && level < LEVEL_SWITCH)
                close_kin(s, level, leaves, *t);
        else if (r == 0 && level < LEVEL_ALL)
                close_place(s, (Distance) (level - LEVEL_SWITCH), leaves, n, *t);
        return r;
}

/* The best full choice with no pair farther apart than worst, and no more devices off the nodes than most. */
static int solve(Search *s, Distance worst, Cost most, Entry *ret) {
        Table *t = take_table(s);
        const Entry *best;
        int r;

        if (!t)
                return -ENOMEM;
        s->worst = worst;
        s->most = most;
        r = solve_place(s, LEVEL_ALL, s->leaves, s->n_leaves, &t);
        best = r == 0 ? search_table_best(&s->space, t) : NULL;
        if (best)
                *ret = *best;
        give_back(s, t);
        return r < 0 ? r : best ? 0 : -ENOENT;
}

static void entry_score(const Search *s, const Entry *e, Distance worst, Picks *ret) {
        *ret = (Picks){ .n = e->n };
        memcpy(ret->devices, e->picks, e->n * sizeof(e->picks[0]));
        ret->score.off_node = cost_get(e->cost, COST_OFF);
        ret->score.remote = cost_get(e->cost, COST_REMOTE);
        ret->score.worst_distance = s->space.pairs > 0 ? (unsigned) worst : 0;
        ret->score.total_distance = cost_get(e->cost, COST_PAIRS);
        ret->score.gpu_distance = cost_get(e->cost, COST_GPUS) / 2;
        ret->score.held = cost_get(e->cost, COST_HELD);
        ret->score.left_over = cost_get(e->cost, COST_LEFT_OVER);
        ret->score.vf_load = cost_get(e->cost, COST_VF_LOAD);
        ret->score.vf_left = cost_get(e->cost, COST_VF_LEFT);
}

/* The tightest limit under which there is a choice with no more than most off the nodes. */
static int solve_tightest(Search *s, Cost most, Distance *ret_worst, Entry *ret) {
        int r = -ENOENT;

        for (Distance d = s->space.pairs > 0 ? DISTANCE_PIX : s->task->limit; r == -ENOENT && d <= s->task->limit;
             d++) {
                r = solve(s, d, most, ret);
                *ret_worst = d;
        }
        return r;
}

/*
 * The worst distance is a maximum, which does not add up over subtrees. So it is not a cost but a limit, and the number
 * of devices off the nodes, which goes before it, is fixed first: there is nothing below what the counts alone demand,
 * and where that cannot be had, the widest limit tells how few there can be.
 */
int search_devices(Search *s, const SearchTask *task, uint64_t *work, Picks *ret) {
        Cost least = cost_off_node(cost_of(COST_OFF, task->off) | cost_of(COST_REMOTE, task->remote));
        Distance worst;
        Entry best;
        int r;

        s->task = task;
        s->work = work;
        r = solve_tightest(s, least, &worst, &best);
        if (r == -ENOENT && !task->at_least) {
                r = solve(s, task->limit, ~(Cost) 0, &best);
                if (r == 0)
                        r = solve_tightest(s, cost_off_node(best.cost), &worst, &best);
        }
        if (r == 0)
                entry_score(s, &best, worst, ret);
        return r;
}
