/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Costs, vectors of counts, and tables by them. */

#include "core/search-table.h"

#include <errno.h>

/* A tie is broken by addresses, which takes as long as so many comparisons of costs. */
#define TIE_WORK 8U

static const unsigned shifts[_COST_FIELD_MAX + 1] = {
        [COST_VF_LEFT] = 0, [COST_VF_LOAD] = 18, [COST_LEFT_OVER] = 42, [COST_HELD] = 60,        [COST_GPUS] = 84,
        [COST_PAIRS] = 100, [COST_REMOTE] = 112, [COST_OFF] = 120,      [_COST_FIELD_MAX] = 128,
};

Cost cost_of(CostField field, uint64_t value) {
        return (Cost) value << shifts[field];
}

unsigned cost_get(Cost cost, CostField field) {
        return (unsigned) (cost >> shifts[field]) & ((1U << (shifts[field + 1] - shifts[field])) - 1);
}

Cost cost_off_node(Cost cost) {
        return cost >> shifts[COST_REMOTE];
}

/* --- vectors of counts --- */

/* Totals of the request, which decide how pairs are made. */
typedef struct Sides {
        unsigned gpus, nics, share;
} Sides;

/* How many of the larger side one of the smaller may serve. */
static unsigned even_share(unsigned a, unsigned b) {
        return (MAX(a, b) + MIN(a, b) - 1) / MIN(a, b);
}

static Sides count_sides(const SearchPool *pools, size_t n_pools) {
        Sides s = { 0 };

        for (size_t p = 0; p < n_pools; p++) {
                if (pools[p].is_gpu)
                        s.gpus += pools[p].wanted;
                else if (pools[p].is_nic)
                        s.nics += pools[p].wanted;
        }
        if (s.gpus > 0 && s.nics > 0)
                s.share = even_share(s.gpus, s.nics);
        return s;
}

/* Adds some devices of a pool to the state. */
static void describe_devices(const Pool *pool, unsigned some, bool vfs, State *ret) {
        ret->taken += some;
        if (!vfs)
                ret->physical += some;
        else if (pool->placement == VF_PLACEMENT_PACK)
                ret->packed_vfs += some;
        else
                ret->spread_vfs += some;
}

static unsigned count_unpaired(const Sides *s, unsigned gpus, unsigned nics) {
        unsigned larger = s->gpus >= s->nics ? gpus : nics, smaller = s->gpus >= s->nics ? nics : gpus;

        return larger - MIN(larger, s->share * smaller);
}

/* Room for one digit up to wanted. */
static unsigned digit_width(unsigned wanted) {
        unsigned width = 0;

        while (wanted >> width > 0)
                width++;
        return width;
}

static void describe_state(const Space *s, const SearchPool *pools, size_t n_pools, const Sides *sides, size_t number,
                           State *ret) {
        unsigned gpus = 0, nics = 0, shift = 0;

        *ret = (State){ .complete = true };
        for (size_t p = 0; p < n_pools; p++) {
                unsigned radix = pools[p].wanted + 1, count = 0;

                for (unsigned vf = 0; vf < 2; vf++)
                        if (s->step[p][vf] > 0) {
                                unsigned some = (unsigned) (number / s->step[p][vf] % radix);

                                count += some;
                                describe_devices(pools[p].pool, some, vf, ret);
                        }
                gpus += pools[p].is_gpu ? count : 0;
                nics += !pools[p].is_gpu && pools[p].is_nic ? count : 0;
                ret->complete = ret->complete && count == pools[p].wanted;
                ret->packed |= (uint64_t) count << shift;
                shift += digit_width(pools[p].wanted) + 1;
        }
        ret->gpus_elsewhere = gpus < sides->gpus ? gpus * (sides->gpus - gpus) : 0;
        ret->unpaired = sides->share > 0 ? count_unpaired(sides, gpus, nics) : 0;
}

int space_init(Space *s, const SearchPool *pools, size_t n_pools) {
        Sides sides = count_sides(pools, n_pools);
        size_t n = 1;
        unsigned shift = 0;

        *s = (Space){ 0 };
        if (sides.share > 0)
                s->pairs = MAX(sides.gpus, sides.nics);
        for (size_t p = 0; p < n_pools; p++) {
                unsigned width = digit_width(pools[p].wanted);

                for (unsigned vf = 0; vf < 2; vf++)
                        if (vf ? pools[p].has_vfs : pools[p].has_devices) {
                                s->step[p][vf] = (uint32_t) n;
                                n *= pools[p].wanted + 1;
                                if (n > SEARCH_STATES_MAX)
                                        return -E2BIG;
                        }
                s->bias |= ((1ULL << width) - 1 - pools[p].wanted) << shift;
                s->pools[p].wanted = pools[p].wanted;
                s->pools[p].shift = shift;
                s->pools[p].width = width;
                s->guards |= 1ULL << (shift + width);
                shift += width + 1;
        }
        s->n_states = n;
        s->states = calloc(n, sizeof(*s->states));
        if (!s->states)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                describe_state(s, pools, n_pools, &sides, i, &s->states[i]);
        return 0;
}

static unsigned state_count(const Space *s, const State *state, size_t pool) {
        return (unsigned) (state->packed >> s->pools[pool].shift) & ((1U << s->pools[pool].width) - 1);
}

bool space_satisfies(const Space *s, const State *state, const size_t pools[2]) {
        unsigned first = state_count(s, state, pools[0]), second = state_count(s, state, pools[1]);
        unsigned wanted = s->pools[pools[0]].wanted, others = s->pools[pools[1]].wanted;

        if (pools[0] == pools[1])
                return first == 0 || first == wanted;
        return wanted >= others ? first <= even_share(wanted, others) * second
                                : second <= even_share(wanted, others) * first;
}

void space_done(Space *s) {
        free(s->states);
        s->states = NULL;
}

/* --- tables --- */

Table *search_table_free(Table *t) {
        if (!t)
                return NULL;
        free(t->entries);
        free(t->present);
        free(t->used);
        free(t);
        return NULL;
}

Table *search_table_new(const Space *s) {
        Table *t = calloc(1, sizeof(*t));

        if (!t)
                return NULL;
        t->entries = malloc(s->n_states * sizeof(*t->entries));
        t->present = calloc(s->n_states, sizeof(*t->present));
        t->used = malloc(s->n_states * sizeof(*t->used));
        if (!t->entries || !t->present || !t->used)
                return search_table_free(t);
        search_table_reset(t);
        return t;
}

static Entry *search_table_add(Table *t, size_t state) {
        if (!t->present[state]) {
                t->present[state] = true;
                t->used[t->n_used++] = (uint16_t) state;
        }
        return &t->entries[state];
}

static void table_clear(Table *t) {
        for (size_t i = 0; i < t->n_used; i++)
                t->present[t->used[i]] = false;
        t->n_used = 0;
}

void search_table_reset(Table *t) {
        Entry *none;

        table_clear(t);
        none = search_table_add(t, 0);
        none->cost = 0;
        none->n = 0;
}

void search_table_put(Table *t, size_t state, Cost cost, uint32_t device) {
        Entry *e = search_table_add(t, state);

        e->cost = cost;
        e->n = 1;
        e->picks[0] = device;
}

/* Both hold as many, ascending: the set with the lowest address that the other lacks comes first. */
static bool picks_before(const Entry *a, const Entry *b) {
        for (unsigned i = 0; i < a->n; i++)
                if (a->picks[i] != b->picks[i])
                        return a->picks[i] < b->picks[i];
        return false;
}

const Entry *search_table_best(const Space *s, const Table *t) {
        const Entry *best = NULL;

        for (size_t i = 0; i < t->n_used; i++) {
                const Entry *e = &t->entries[t->used[i]];

                if (s->states[t->used[i]].complete &&
                    (!best || e->cost < best->cost || (e->cost == best->cost && picks_before(e, best))))
                        best = e;
        }
        return best;
}

/* a and b have no device in common; none of the rest is written before it is known to be better. */
static bool sum_before(const Entry *a, const Entry *b, const Entry *have) {
        for (unsigned i = 0, j = 0, n = 0; n < have->n; n++) {
                uint32_t next = j == b->n || (i < a->n && a->picks[i] < b->picks[j]) ? a->picks[i++] : b->picks[j++];

                if (next != have->picks[n])
                        return next < have->picks[n];
        }
        return false;
}

static void entry_sum(const Entry *a, const Entry *b, Entry *ret) {
        unsigned i = 0, j = 0, n = 0;

        while (i < a->n || j < b->n)
                ret->picks[n++] = j == b->n || (i < a->n && a->picks[i] < b->picks[j]) ? a->picks[i++] : b->picks[j++];
        ret->n = n;
        ret->cost = a->cost + b->cost;
}

/* The row of one entry of a; returns how many ties there were. */
static unsigned merge_row(const Space *s, size_t state, const Entry *e, const Table *b, Cost most, Table *sum) {
        uint64_t packed = s->states[state].packed + s->bias;
        unsigned ties = 0;

        for (size_t i = 0; i < b->n_used; i++) {
                const Entry *f = &b->entries[b->used[i]];
                size_t both = state + b->used[i];
                Cost cost;

                if ((packed + s->states[b->used[i]].packed) & s->guards)
                        continue;
                cost = e->cost + f->cost;
                if (sum->present[both]) {
                        const Entry *have = &sum->entries[both];

                        if (cost > have->cost)
                                continue;
                        if (cost == have->cost) {
                                ties++;
                                if (!sum_before(e, f, have))
                                        continue;
                        }
                } else if (cost_off_node(cost) > most)
                        continue;
                entry_sum(e, f, search_table_add(sum, both));
        }
        return ties;
}

int search_table_merge(const Space *s, const Table *a, const Table *b, Cost most, uint64_t *work, Table *sum) {
        table_clear(sum);
        for (size_t i = 0; i < a->n_used; i++) {
                uint64_t spent = b->n_used +
                                 (uint64_t) TIE_WORK * merge_row(s, a->used[i], &a->entries[a->used[i]], b, most, sum);

                if (*work < spent) {
                        *work = 0;
                        return -E2BIG;
                }
                *work -= spent;
        }
        return 0;
}
