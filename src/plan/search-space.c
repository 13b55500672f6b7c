/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Costs and vectors of counts. */

#include "search-space.h"

static const unsigned shifts[_COST_FIELD_MAX + 1] = {
        [COST_VF_LEFT] = 0,  [COST_VF_LOAD] = 17, [COST_LEFT_OVER] = 40, [COST_HELD] = 58, [COST_GPUS] = 82,
        [COST_NIC_OFF] = 97, [COST_PAIRS] = 104,  [COST_REMOTE] = 114,   [COST_OFF] = 121, [_COST_FIELD_MAX] = 128,
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

static uint64_t tally_one(TallyField field) {
        return 1ULL << 8 * field;
}

unsigned state_get(const State *state, TallyField field) {
        return (state->tally >> 8 * field) & 0xff;
}

/* The most devices of the larger side for one device of the smaller side. */
static unsigned even_share(unsigned a, unsigned b) {
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
        *s = (Space){ .n_pools = n_pools };
        count_sides(s, pools);
        for (size_t p = 0; p < n_pools; p++) {
                s->pools[p].wanted = pools[p].wanted;
                s->pools[p].is_gpu = pools[p].is_gpu;
                s->pools[p].is_gpu_nic = pools[p].is_gpu_nic;
                s->devices += pools[p].wanted;
                s->bias |= count_of_pool(p, COUNT_MAX - pools[p].wanted);
                for (unsigned vf = 0; vf < 2; vf++)
                        s->one[p][vf] = (State){ .counts = count_of_pool(p, 1), .tally = tally_device(&pools[p], vf) };
                if (pools[p].has_vfs && pools[p].has_devices)
                        s->one[p][1].vfs = count_of_pool(p, 1);
        }
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
