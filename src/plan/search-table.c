/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Costs, vectors of device counts, and tables that have the best choice for each vector. */

#include "search-table.h"

#include <assert.h>
#include <errno.h>

/* The work of deciding a tie by the addresses of the devices, in comparisons of costs. */
#define TIE_WORK 8U

/* The work of a merge besides its comparisons, in comparisons of costs. */
#define MERGE_WORK 48U

#define TABLE_FIRST 4U /* entries of a new table */
#define SLOTS_MAX   ((size_t) 2 * SEARCH_CHOICES_MAX)
#define SLOTS_FIRST ((size_t) 64)
#define SLOT_FREE   UINT16_MAX
#define HASH        0x9e3779b97f4a7c15U
#define HASH_VFS    0xff51afd7ed558ccdU

static const unsigned shifts[_COST_FIELD_MAX + 1] = {
        [COST_VF_LEFT] = 0,  [COST_VF_LOAD] = 17, [COST_LEFT_OVER] = 40, [COST_HELD] = 58, [COST_GPUS] = 82,
        [COST_NIC_OFF] = 97, [COST_PAIRS] = 104,  [COST_REMOTE] = 114,   [COST_OFF] = 121, [_COST_FIELD_MAX] = 128,
};

Cost cost_of(CostField field, uint64_t value) {
        assert(value >> (shifts[field + 1] - shifts[field]) == 0);
        return (Cost) value << shifts[field];
}

unsigned cost_get(Cost cost, CostField field) {
        return (unsigned) (cost >> shifts[field]) & ((1U << (shifts[field + 1] - shifts[field])) - 1);
}

Cost cost_off_node(Cost cost) {
        return cost >> shifts[COST_REMOTE];
}

static uint64_t tally_one(TallyField field) {
        return 1ULL << 8 * field;
}

unsigned state_get(const State *state, TallyField field) {
        return (state->tally >> 8 * field) & 0xff;
}

/* Returns the most devices of the larger side that share a device of the smaller side, if they are distributed evenly.
 */
static unsigned even_share(unsigned a, unsigned b) {
        assert(a > 0 && b > 0);
        return (MAX(a, b) + MIN(a, b) - 1) / MIN(a, b);
}

static void count_sides(Space *s, const SearchPool *pools) {
        for (size_t p = 0; p < s->n_pools; p++) {
                if (pools[p].is_gpu)
                        s->gpus += pools[p].wanted;
                else if (pools[p].is_nic)
                        s->nics += pools[p].wanted;
        }
        if (s->gpus == 0 || s->nics == 0)
                return;
        s->share = even_share(s->gpus, s->nics);
        s->pairs = MAX(s->gpus, s->nics);
}

static uint64_t count_of_pool(size_t pool, unsigned n) {
        return (uint64_t) n << 8 * pool;
}

static uint64_t tally_device(const SearchPool *pool, bool vf) {
        uint64_t tally = pool->is_gpu ? tally_one(TALLY_GPUS) : pool->is_nic ? tally_one(TALLY_NICS) : 0;

        if (!vf)
                return tally | tally_one(TALLY_PHYSICAL);
        return tally | tally_one(pool->pool->placement == VF_PLACEMENT_PACK ? TALLY_PACKED_VFS : TALLY_SPREAD_VFS);
}

void space_init(Space *s, const SearchPool *pools, size_t n_pools) {
        assert(n_pools <= ELEMENTSOF(s->pools));
        *s = (Space) { .n_pools = n_pools };
        count_sides(s, pools);
        for (size_t p = 0; p < n_pools; p++) {
                assert(pools[p].wanted <= COUNT_MAX);
                s->pools[p].wanted = pools[p].wanted;
                s->pools[p].is_gpu = pools[p].is_gpu;
                s->pools[p].is_gpu_nic = pools[p].is_gpu_nic;
                s->devices += pools[p].wanted;
                s->bias |= count_of_pool(p, COUNT_MAX - pools[p].wanted);
                for (unsigned vf = 0; vf < 2; vf++)
                        s->one[p][vf] = (State) { .counts = count_of_pool(p, 1), .tally = tally_device(&pools[p], vf) };
                if (pools[p].pool && pools[p].pool->vgpu_type)
                        s->vgpus |= count_of_pool(p, UINT8_MAX);
                if (pools[p].has_vfs && pools[p].has_devices)
                        s->one[p][1].vfs = count_of_pool(p, 1);
        }
        assert(s->devices <= REQUEST_DEVICES_MAX);
}

bool space_mixes_vgpus(const Space *s, const State *state) {
        uint64_t counts = state->counts & s->vgpus;

        while (counts > UINT8_MAX && (counts & UINT8_MAX) == 0)
                counts >>= 8;
        return counts > UINT8_MAX;
}

unsigned space_unpaired(const Space *s, const State *state) {
        unsigned gpus = state_get(state, TALLY_GPUS), nics = state_get(state, TALLY_NICS);
        unsigned larger = s->gpus >= s->nics ? gpus : nics, smaller = s->gpus >= s->nics ? nics : gpus;

        return s->share > 0 ? larger - MIN(larger, s->share * smaller) : 0;
}

unsigned space_gpus_elsewhere(const Space *s, const State *state) {
        unsigned gpus = state_get(state, TALLY_GPUS);

        return gpus * (s->gpus - gpus);
}

static unsigned get_count(const State *state, size_t pool) {
        return (state->counts >> 8 * pool) & 0xff;
}

bool space_satisfies(const Space *s, const State *state, const size_t pools[2]) {
        unsigned first = get_count(state, pools[0]), second = get_count(state, pools[1]);
        unsigned wanted = s->pools[pools[0]].wanted, others = s->pools[pools[1]].wanted;

        assert(pools[0] < s->n_pools && pools[1] < s->n_pools);
        if (pools[0] == pools[1])
                return first == 0 || first == wanted;
        return wanted >= others ? first <= even_share(wanted, others) * second
                                : second <= even_share(wanted, others) * first;
}

uint64_t space_least(const Space *s, const unsigned *others) {
        uint64_t least = 0;

        for (size_t p = 0; p < s->n_pools; p++)
                if (others[p] < s->pools[p].wanted)
                        least |= count_of_pool(p, s->pools[p].wanted - others[p]);
        return least;
}

void search_scratch_done(SearchScratch *s) {
        free(s->slots);
        *s = (SearchScratch) { 0 };
}

Table *search_table_free(Table *t) {
        if (!t)
                return NULL;
        free(t->entries);
        free(t);
        return NULL;
}

Table *search_table_new(void) {
        Table *t = calloc(1, sizeof(*t));

        if (!t)
                return NULL;
        t->entries = malloc(TABLE_FIRST * sizeof(*t->entries));
        if (!t->entries)
                return search_table_free(t);
        t->allocated = TABLE_FIRST;
        search_table_reset(t);
        return t;
}

void search_table_reset(Table *t) {
        t->entries[0].cost = 0;
        t->entries[0].state = (State) { 0 };
        t->entries[0].n = 0;
        t->n = 1;
}

bool search_table_is_empty(const Table *t) {
        return t->n == 1 && t->entries[0].n == 0;
}

/* Reserves room for one more entry. 0 or -ENOMEM. */
static int table_reserve(Table *t) {
        Entry *more;

        if (t->n < t->allocated)
                return 0;
        more = realloc(t->entries, 2 * t->allocated * sizeof(*more));
        if (!more)
                return -ENOMEM;
        t->entries = more;
        t->allocated *= 2;
        return 0;
}

static State state_sum(const State *a, const State *b) {
        return (State) { a->counts + b->counts, a->vfs + b->vfs, a->tally + b->tally };
}

int search_table_put(Table *t, Cost cost, const State *one, uint32_t device) {
        Entry *e;
        int r = table_reserve(t);

        if (r < 0)
                return r;
        assert(t->n > 0 && t->entries[t->n - 1].n < REQUEST_DEVICES_MAX);
        e = &t->entries[t->n++];
        *e = e[-1];
        e->cost += cost;
        e->state = state_sum(&e->state, one);
        e->picks[e->n++] = device;
        return 0;
}

void search_table_drop_first(Table *t) {
        assert(t->n > 1);
        t->entries[0] = t->entries[--t->n];
}

/* Returns whether the devices of `a` have the lower addresses. `a` and `b` have the same number of devices. */
static bool picks_before(const Entry *a, const Entry *b) {
        for (unsigned i = 0; i < a->n; i++)
                if (a->picks[i] != b->picks[i])
                        return a->picks[i] < b->picks[i];
        return false;
}

const Entry *search_table_best(const Space *s, const Table *t) {
        const Entry *best = NULL;

        for (size_t i = 0; i < t->n; i++) {
                const Entry *e = &t->entries[i];

                if (e->n == s->devices &&
                    (!best || e->cost < best->cost || (e->cost == best->cost && picks_before(e, best))))
                        best = e;
        }
        return best;
}

/*
 * Returns whether the devices of `a` and `b` together have lower addresses than those of `have`. `a` and `b` have no
 * device in common.
 */
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

        assert(a->n + b->n <= REQUEST_DEVICES_MAX);
        while (i < a->n && j < b->n)
                ret->picks[n++] = a->picks[i] < b->picks[j] ? a->picks[i++] : b->picks[j++];
        while (i < a->n)
                ret->picks[n++] = a->picks[i++];
        while (j < b->n)
                ret->picks[n++] = b->picks[j++];
        ret->n = n;
        ret->cost = a->cost + b->cost;
        ret->state = state_sum(&a->state, &b->state);
}

typedef struct Merge {
        const Space *space;
        const SearchScratch *scratch;
        uint64_t least;
        Cost most;
        Table *sum;
        size_t mask; /* number of cleared slots, a power of 2, less one */
        unsigned ties;
} Merge;

/* Clears enough slots for `pairs` entries: at most half of the slots will be in use. Empties the sum. 0 or -ENOMEM. */
static int clear_slots(Merge *m, SearchScratch *scratch, size_t pairs) {
        size_t n = SLOTS_FIRST;

        while (n < SLOTS_MAX && n < 2 * pairs)
                n *= 2;
        if (n > scratch->n_slots) {
                free(scratch->slots);
                scratch->slots = malloc(n * sizeof(*scratch->slots));
                scratch->n_slots = scratch->slots ? n : 0;
        }
        if (!scratch->slots)
                return -ENOMEM;
        memset(m->scratch->slots, 0xff, n * sizeof(*m->scratch->slots));
        m->mask = n - 1;
        m->sum->n = 0;
        return 0;
}

/* Returns the slot of the sum of two states, or the free slot where it belongs. */
static uint16_t *find_slot(const Merge *m, const State *a, const State *b) {
        uint64_t counts = a->counts + b->counts, vfs = a->vfs + b->vfs;
        /* Use the uppermost bits of the product, because they depend on more bits of the sums than lower bits do. */
        size_t at = (counts + vfs * HASH_VFS) * HASH >> __builtin_clzll(m->mask);

        for (;; at = (at + 1) & m->mask) {
                uint16_t *slot = &m->scratch->slots[at];

                if (*slot == SLOT_FREE ||
                    (m->sum->entries[*slot].state.counts == counts && m->sum->entries[*slot].state.vfs == vfs))
                        return slot;
        }
}

/* Enters the sum of `e` and `f`, whose counts the caller has checked, unless the entry of that state is better, or the
 * sum has more devices off the nodes than m->most. 0, -ENOMEM or -E2BIG. */
static int merge_pair(Merge *m, const Entry *e, const Entry *f) {
        uint16_t *slot = find_slot(m, &e->state, &f->state);
        Cost cost = e->cost + f->cost;

        if (*slot != SLOT_FREE) {
                const Entry *have = &m->sum->entries[*slot];

                m->ties += cost == have->cost;
                if (cost > have->cost || (cost == have->cost && !sum_before(e, f, have)))
                        return 0;
        } else {
                int r;

                if (cost_off_node(cost) > m->most)
                        return 0;
                r = m->sum->n < SEARCH_CHOICES_MAX ? table_reserve(m->sum) : -E2BIG;
                if (r < 0)
                        return r;
                *slot = (uint16_t) m->sum->n++;
        }
        entry_sum(e, f, &m->sum->entries[*slot]);
        return 0;
}

/*
 * Merges one entry with all entries of `b`. A guard bit that is set in most + counts means that a count exceeds the
 * request. A guard bit that is clear in least + counts means that a count is below m->least. Returns the work, or a
 * negative errno.
 */
static int64_t merge_row(Merge *m, const Entry *e, const Table *b) {
        uint64_t most = e->state.counts + m->space->bias, least = e->state.counts + COUNT_GUARDS - m->least;

        m->ties = 0;
        for (const Entry *f = b->entries; f < b->entries + b->n; f++) {
                int r = 0;

                if (!((most + f->state.counts) & COUNT_GUARDS) && !(~(least + f->state.counts) & COUNT_GUARDS))
                        r = merge_pair(m, e, f);
                if (r < 0)
                        return r;
        }
        return (int64_t) b->n + TIE_WORK * m->ties;
}

static int spend(uint64_t *work, uint64_t amount) {
        if (*work < amount) {
                *work = 0;
                return -E2BIG;
        }
        *work -= amount;
        return 0;
}

int search_table_merge(const Space *s, SearchScratch *scratch, const Table *a, const Table *b, uint64_t least,
                       Cost most, uint64_t *work, Table *sum) {
        Merge m = { .space = s, .scratch = scratch, .least = least, .most = most, .sum = sum };
        int r = spend(work, MERGE_WORK);

        assert(sum != a && sum != b);
        if (r == 0)
                r = clear_slots(&m, scratch, a->n * b->n);
        for (size_t i = 0; i < a->n && r == 0; i++) {
                int64_t done = merge_row(&m, &a->entries[i], b);

                r = done < 0 ? (int) done : spend(work, (uint64_t) done);
        }
        return r;
}
