/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the best devices by dynamic programming over the tree of candidates. The limits are fixed during a walk over
 * the tree. */

#include "search.h"

#include <assert.h>
#include <errno.h>

#include "search-table.h"
#include "search-tree.h"

struct Search {
        Space space;
        SearchScratch scratch;
        Leaf *leaves;
        size_t n_leaves;
        Table *spare;
        /* Of the current walk: */
        const SearchTask *task;
        Distance worst; /* the largest allowed distance of a GPU-NIC pair */
        Cost most;      /* the most devices allowed off the nodes, in the form of cost_off_node() */
        NodeAffinity farthest[REQUEST_POOLS_MAX]; /* by pool: the largest affinity that a candidate may have */
        unsigned have[REQUEST_POOLS_MAX];         /* by pool: number of candidates */
        unsigned others[REQUEST_POOLS_MAX];       /* by pool: number of candidates that the walk has not reached yet */
        uint64_t *work;
};

size_t search_node(const Inventory *inv, const PciDevice *dev) {
        int node = inventory_node_index(inv, inventory_cpu_node(inv, dev->numa_node));

        return node >= 0 ? (size_t) node : SEARCH_NODE_UNKNOWN;
}

int search_new(const HostView *view, const SearchPool *pools, size_t n_pools, const bool *is_free,
               const bool *is_required, Search **ret) {
        Search *s = calloc(1, sizeof(*s));
        int r = s ? 0 : -ENOMEM;

        if (r == 0)
                r = leaves_make(view, pools, n_pools, is_free, is_required, &s->leaves, &s->n_leaves);
        if (r < 0) {
                search_free(s);
                return r;
        }
        space_init(&s->space, pools, n_pools);
        *ret = s;
        return 0;
}

void search_want(Search *s, const SearchPool *pools, size_t n_pools) {
        assert(n_pools == s->space.n_pools);
        space_init(&s->space, pools, n_pools);
}

void search_narrow(Search *s, const uint32_t *devices, size_t n) {
        for (size_t i = 0; i < s->n_leaves; i++) {
                Leaf *leaf = &s->leaves[i];

                if (!leaf->is_fabric)
                        continue;
                leaf->is_wanted = false;
                for (size_t j = 0; j < n; j++)
                        leaf->is_wanted = leaf->is_wanted || leaf->device == devices[j];
        }
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

/* Returns a table with the empty choice, recycled if possible: tables are large, and few are in use at a time. NULL:
 * out of memory. */
static Table *take_table(Search *s) {
        Table *t = s->spare;

        if (!t)
                return search_table_new();
        s->spare = t->next;
        search_table_reset(t);
        return t;
}

static void give_back(Search *s, Table *t) {
        t->next = s->spare;
        s->spare = t;
}

static NodeAffinity leaf_affinity(const Search *s, const Leaf *leaf) {
        return (NodeAffinity) s->task->affinity[leaf->pool][leaf->node];
}

static bool is_candidate(const Search *s, const Leaf *leaf) {
        NodeAffinity affinity = leaf_affinity(s, leaf);

        return leaf->is_wanted && affinity != NODE_AFFINITY_REFUSED && affinity <= s->farthest[leaf->pool];
}

/* Adds the choice of the last entry of t plus the leaf's device, with the costs that do not depend on other devices. 0
 * or -ENOMEM. A device that is no candidate, or would be one too many off the nodes, is not added: -ENOENT if it is
 * required, else 0. After a required device is added, the empty choice is removed. */
static int solve_leaf(const Search *s, const Leaf *leaf, Table *t) {
        int absent = leaf->is_required ? -ENOENT : 0, r;
        NodeAffinity affinity = leaf_affinity(s, leaf);
        Cost cost = s->space.pools[leaf->pool].is_gpu_nic
                            ? cost_of(COST_NIC_OFF, affinity != NODE_AFFINITY_LOCAL)
                            : cost_of(COST_OFF, affinity != NODE_AFFINITY_LOCAL) |
                                      cost_of(COST_REMOTE, affinity == NODE_AFFINITY_REMOTE);

        if (!is_candidate(s, leaf) || cost_off_node(t->entries[t->n - 1].cost + cost) > s->most)
                return absent;
        if (leaf->group_level == LEVEL_ALL && leaf->group_free > 1)
                cost |= cost_of(COST_HELD, leaf->group_free - 1);
        r = search_table_put(t, cost, &s->space.one[leaf->pool][leaf->is_vf], leaf->device);
        if (r >= 0 && leaf->is_required)
                search_table_drop_first(t);
        return r;
}

/* Returns the cost that the VFs of one PF have together. */
static Cost family_cost(const Entry *e, const Leaf *leaf) {
        uint64_t spread = state_get(&e->state, TALLY_SPREAD_VFS), packed = state_get(&e->state, TALLY_PACKED_VFS);
        Cost cost = cost_of(COST_VF_LOAD, spread * leaf->load + spread * (spread - 1) / 2 + spread * packed);

        return packed > 0 ? cost | cost_of(COST_VF_LEFT, leaf->spare - e->n) : cost;
}

/* Adds the costs that devices of one group, or of one PF, have together. Drops choices with vGPUs of several pools on
 * one PF: a GPU may not be able to have two types at once. */
static void close_kin(const Search *s, Level level, const Leaf *leaf, Table *t) {
        size_t kept = 0;

        for (size_t i = 0; i < t->n; i++) {
                Entry *e = &t->entries[i];

                if (level == LEVEL_FAMILY && space_mixes_vgpus(&s->space, &e->state))
                        continue;
                if (e->n > 0 && level == leaf->group_level)
                        e->cost += cost_of(COST_HELD, leaf->group_free - e->n);
                if (e->n > 0 && level == LEVEL_FAMILY && leaf->is_vf)
                        e->cost += family_cost(e, leaf);
                if (kept < i)
                        t->entries[kept] = *e;
                kept++;
        }
        t->n = kept;
}

static unsigned count_physical(const Leaf *leaves, size_t n) {
        unsigned count = 0;

        for (size_t i = 0; i < n; i++)
                count += !leaves[i].is_vf;
        return count;
}

/* Returns whether the choice satisfies the limits that equal the level of this place: partners from elsewhere would be
 * farther away. */
static bool is_allowed(const Search *s, Distance level, const Entry *e) {
        if (level == s->worst && space_unpaired(&s->space, &e->state) > 0)
                return false;
        for (size_t i = 0; i < s->task->n_limits; i++)
                if (level == s->task->limits[i].limit &&
                    !space_satisfies(&s->space, &e->state, s->task->limits[i].pools))
                        return false;
        return true;
}

/*
 * Adds the cost of a switch, root port, host bridge or node. Each pair of a GPU with a NIC, or with another GPU, costs
 * one step of distance if only one of the two is in this place. A switch and a node also cost Score.left_over. Drops
 * choices whose pairs exceed a limit.
 */
static void close_place(const Search *s, Distance level, const Leaf *leaves, size_t n, Table *t) {
        bool counts_left_over = level == DISTANCE_PIX || level == DISTANCE_NODE;
        unsigned physical = counts_left_over && !search_table_is_empty(t) ? count_physical(leaves, n) : 0;
        size_t kept = 0;

        for (size_t i = 0; i < t->n; i++) {
                Entry *e = &t->entries[i];
                unsigned taken = state_get(&e->state, TALLY_PHYSICAL);

                if (!is_allowed(s, level, e))
                        continue;
                e->cost += cost_of(COST_PAIRS, space_unpaired(&s->space, &e->state)) +
                           cost_of(COST_GPUS, space_gpus_elsewhere(&s->space, &e->state));
                if (counts_left_over && taken > 0)
                        e->cost += cost_of(COST_LEFT_OVER, physical - taken);
                if (kept < i)
                        t->entries[kept] = *e;
                kept++;
        }
        t->n = kept;
}

/* Returns whether two leaves, neither of them required, differ only in their addresses. Such leaves are taken in the
 * order of their addresses. */
static bool is_like(const Search *s, const Leaf *a, const Leaf *b) {
        return a->is_wanted == b->is_wanted && !a->is_required && !b->is_required && a->pool == b->pool &&
               a->is_vf == b->is_vf && a->load == b->load && a->spare == b->spare && a->group_level == b->group_level &&
               a->group_free == b->group_free && leaf_affinity(s, a) == leaf_affinity(s, b);
}

static int solve_place(Search *s, Level level, const Leaf *leaves, size_t n, Table **t);

/* Merges part into *t: each choice of one with each choice of the other. Drops a sum if the candidates elsewhere cannot
 * complete it. -ENOENT: no sum is left. Takes part from the caller, also on errors. `before`: as in solve_parts(). */
static int absorb(Search *s, const unsigned *before, Table **t, Table *part) {
        unsigned elsewhere[REQUEST_POOLS_MAX];
        Table *sum;
        int r;

        if (search_table_is_empty(part) || search_table_is_empty(*t)) {
                give_back(s, search_table_is_empty(part) ? part : *t);
                if (!search_table_is_empty(part))
                        *t = part;
                return 0;
        }
        sum = take_table(s);
        if (!sum) {
                give_back(s, part);
                return -ENOMEM;
        }
        for (size_t p = 0; p < s->space.n_pools; p++)
                elsewhere[p] = before[p] + s->others[p];
        r = search_table_merge(&s->space, &s->scratch, *t, part, space_least(&s->space, elsewhere), s->most, s->work,
                               sum);
        give_back(s, part);
        give_back(s, *t);
        *t = sum;
        return r == 0 && sum->n == 0 ? -ENOENT : r;
}

/* Subtracts the leaf, and the VFs that it stands for, from the candidates that are left. */
static void pass_leaf(Search *s, const Leaf *leaf) {
        s->others[leaf->pool] -= 1 + leaf->more;
}

/* Returns how many leaves right before this one differ from it only in their addresses. `before`: the result for the
 * previous leaf. after_single: the previous leaf was a part by itself. */
static size_t count_alike(const Search *s, const Leaf *leaf, size_t before, bool after_single) {
        return after_single && is_like(s, leaf, leaf - 1) ? before + 1 : 0;
}

/* Solves the parts of a place, which are the places one level below or, at LEVEL_GROUP, the leaves; and merges them
 * into *t. */
static int solve_parts(Search *s, Level level, const Leaf *leaves, size_t n, Table **t) {
        unsigned before[REQUEST_POOLS_MAX]; /* by pool: candidates that the walk reached before this place */
        size_t alike = 0;
        bool single = false;
        int r = 0;

        for (size_t p = 0; p < s->space.n_pools; p++)
                before[p] = s->have[p] - s->others[p];
        for (size_t first = 0, end; first < n && r == 0; first = end) {
                const Leaf *leaf = &leaves[first];
                Table *part;

                for (end = first + 1;
                     level > LEVEL_GROUP && end < n && leaves[end].at[level - 1] == leaf->at[level - 1]; end++)
                        ;
                if (end == first + 1) {
                        alike = count_alike(s, leaf, alike, single);
                        single = true;
                        if (!is_candidate(s, leaf) && leaf->is_required)
                                return -ENOENT;
                        if (!is_candidate(s, leaf))
                                continue;
                        /* Skip this leaf: the solved leaves like it are as many as the request wants of the pool. Parts
                         * above LEVEL_SWITCH are not skipped: their leaves are on different switches. */
                        if (level <= LEVEL_SWITCH && alike >= s->space.pools[leaf->pool].wanted) {
                                pass_leaf(s, leaf);
                                continue;
                        }
                } else
                        single = false;
                part = take_table(s);
                if (!part)
                        return -ENOMEM;
                if (level == LEVEL_GROUP) {
                        r = solve_leaf(s, leaf, part);
                        pass_leaf(s, leaf);
                } else
                        r = solve_place(s, level - 1, leaf, end - first, &part);
                if (r < 0)
                        give_back(s, part);
                else
                        r = absorb(s, before, t, part);
        }
        return r;
}

/* Solves a place of VFs that differ only in their addresses: takes the first ones, as many as wanted. */
static int solve_alike(Search *s, const Leaf *leaves, size_t n, Table *t) {
        int r = 0;

        for (size_t i = 0; i < n && r == 0 && is_candidate(s, leaves); i++) {
                pass_leaf(s, &leaves[i]);
                if (i < s->space.pools[leaves->pool].wanted)
                        r = solve_leaf(s, &leaves[i], t);
        }
        return r;
}

/* Fills *t with the best choices among the leaves of one place, and adds the costs of the place. At the call *t holds
 * the empty choice; another table may replace it. -ENOENT: there is no choice. */
static int solve_place(Search *s, Level level, const Leaf *leaves, size_t n, Table **t) {
        bool alike = level == LEVEL_GROUP && n > 1 && leaves->group_free <= 1;
        int r = alike ? solve_alike(s, leaves, n, *t) : solve_parts(s, level, leaves, n, t);

        if (r == 0 && level < LEVEL_SWITCH)
                close_kin(s, level, leaves, *t);
        else if (r == 0 && level < LEVEL_ALL)
                close_place(s, (Distance) (level - LEVEL_SWITCH), leaves, n, *t);
        return r == 0 && (*t)->n == 0 ? -ENOENT : r;
}

/* Returns the lower bound of devices off the nodes, in the form of cost_off_node(). */
static Cost least_off_node(const SearchTask *task) {
        return cost_off_node(cost_of(COST_OFF, task->off) | cost_of(COST_REMOTE, task->remote));
}

/* Sets which devices are candidates. at_least: the choice must be at the lower bound of devices off the nodes, so a
 * pool gets candidates off the nodes only if it has too few on them. NICs of GPUs may be on any node. */
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

/* Finds the best choice that has all devices of the request, has its GPU-NIC pairs within `worst`, and has at most
 * `most` devices off the nodes. -ENOENT: there is none. */
static int solve(Search *s, Distance worst, Cost most, Entry *ret) {
        const Entry *best;
        Table *t;
        int r;

        set_candidates(s, most == least_off_node(s->task));
        t = take_table(s);
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
        *ret = (Picks) { .n = e->n };
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

/* Finds the best choice with the smallest possible distance of its farthest pair. */
static int solve_tightest(Search *s, Cost most, Distance *ret_worst, Entry *ret) {
        Distance worst = s->space.pairs > 0 ? DISTANCE_PIX : s->task->limit;
        int r = solve(s, worst, most, ret);

        while (r == -ENOENT && worst < s->task->limit)
                r = solve(s, ++worst, most, ret);
        *ret_worst = worst;
        return r;
}

/*
 * The worst distance of a pair is a limit, not a cost: as a maximum it does not add up over subtrees. The number of
 * devices off the nodes precedes it and is fixed first. The first walks allow the lower bound that follows from the
 * counts. If no choice has so few, a walk with the widest distance finds the minimum.
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
