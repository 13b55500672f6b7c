/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks limits against the number of candidates. */

#include "search-bounds.h"

#include <errno.h>

/* A pairing of two sets of pools (bit masks): each device of the larger side needs a partner within the distance. */
typedef struct Pairing {
        uint32_t larger, smaller;
        unsigned n_larger, n_smaller;
        Distance within;
} Pairing;

/* All devices of a pool are within the distance of each other. */
typedef struct Gathering {
        uint32_t pool; /* bit mask */
        unsigned wanted;
        Distance within;
} Gathering;

typedef struct Bounds {
        const Stock *stocks;
        size_t n;
        const Space *space;
        const SearchTask *task;
        const NodeAffinity *farthest;
        Pairing pairings[REQUEST_LIMITS_MAX + 1];
        Gathering gatherings[REQUEST_LIMITS_MAX];
        size_t n_pairings, n_gatherings;
} Bounds;

int stocks_make(const Leaf *leaves, size_t n, Stock **ret, size_t *ret_n) {
        Stock *stocks = calloc(n + 1, sizeof(*stocks)), *last = NULL;

        if (!stocks)
                return -ENOMEM;
        *ret_n = 0;
        for (const Leaf *leaf = leaves; leaf < leaves + n; leaf++) {
                if (!leaf->is_wanted)
                        continue;
                if (!last || last->node != leaf->node ||
                    memcmp(last->at, leaf->at + LEVEL_SWITCH, sizeof(last->at)) != 0) {
                        last = &stocks[(*ret_n)++];
                        memcpy(last->at, leaf->at + LEVEL_SWITCH, sizeof(last->at));
                        last->node = leaf->node;
                }
                last->n[leaf->pool] += 1 + leaf->more;
        }
        *ret = stocks;
        return 0;
}

static size_t place_end(const Bounds *b, size_t first, Distance d) {
        size_t end = first + 1;

        while (end < b->n && b->stocks[end].at[d] == b->stocks[first].at[d])
                end++;
        return end;
}

/* Counts the candidates of the pools in a range of stocks, for each pool at most as many as wanted. */
static unsigned count(const Bounds *b, uint32_t pools, size_t first, size_t end) {
        unsigned sum = 0;

        for (size_t p = 0; p < b->space->n_pools; p++) {
                unsigned n = 0;

                if (!(pools >> p & 1))
                        continue;
                for (size_t i = first; i < end; i++) {
                        NodeAffinity affinity = (NodeAffinity) b->task->affinity[p][b->stocks[i].node];

                        if (affinity != NODE_AFFINITY_REFUSED && affinity <= b->farthest[p])
                                n += b->stocks[i].n[p];
                }
                sum += MIN(n, b->space->pools[p].wanted);
        }
        return sum;
}

/*
 * Greedy and optimal: the smaller side is first placed where each device gets a full share of partners, then where the
 * rest is largest. confined: pools whose candidates count only from first to end.
 */
static bool can_pair(const Bounds *b, const Pairing *p, uint32_t confined, size_t first, size_t end) {
        unsigned share = (p->n_larger + p->n_smaller - 1) / p->n_smaller, left = p->n_smaller, paired = 0;
        unsigned rests[REQUEST_DEVICES_MAX] = { 0 };

        for (size_t from = 0, to; from < b->n && left > 0; from = to) {
                unsigned larger, smaller, full;

                to = place_end(b, from, p->within);
                if (confined && (to <= first || from >= end))
                        continue;
                larger = p->larger & confined ? count(b, p->larger, MAX(from, first), MIN(to, end))
                                              : count(b, p->larger, from, to);
                smaller = p->smaller & confined ? count(b, p->smaller, MAX(from, first), MIN(to, end))
                                                : count(b, p->smaller, from, to);
                full = MIN(MIN(smaller, larger / share), left);
                paired += full * share;
                left -= full;
                if (smaller > full)
                        rests[larger % share]++;
        }
        for (unsigned rest = share - 1; rest > 0 && left > 0; rest--) {
                unsigned n = MIN(rests[rest], left);

                paired += n * rest;
                left -= n;
        }
        return paired >= p->n_larger;
}

/*
 * True when a place within the distance has enough devices of the pool and allows each pairing of the pool, judged
 * separately.
 */
static bool can_gather(const Bounds *b, const Gathering *g) {
        for (size_t first = 0, end; first < b->n; first = end) {
                bool good;

                end = place_end(b, first, g->within);
                good = count(b, g->pool, first, end) >= g->wanted;
                for (size_t i = 0; good && i < b->n_pairings; i++)
                        if (b->pairings[i].larger == g->pool || b->pairings[i].smaller == g->pool)
                                good = can_pair(b, &b->pairings[i], g->pool, first, end);
                if (good)
                        return true;
        }
        return false;
}

static unsigned count_wanted(const Space *s, uint32_t pools) {
        unsigned wanted = 0;

        for (size_t p = 0; p < s->n_pools; p++)
                if (pools >> p & 1)
                        wanted += s->pools[p].wanted;
        return wanted;
}

static void add_pairing(Bounds *b, uint32_t one, uint32_t other, Distance within) {
        unsigned n_one = count_wanted(b->space, one), n_other = count_wanted(b->space, other);

        b->pairings[b->n_pairings++] = n_one >= n_other ? (Pairing){ one, other, n_one, n_other, within }
                                                        : (Pairing){ other, one, n_other, n_one, within };
}

static void add_limits(Bounds *b, Distance worst) {
        const Space *s = b->space;
        uint32_t gpus = 0, nics = 0;

        for (size_t p = 0; p < s->n_pools; p++) {
                gpus |= (uint32_t) s->pools[p].is_gpu << p;
                nics |= (uint32_t) s->pools[p].is_gpu_nic << p;
        }
        if (s->pairs > 0 && worst < DISTANCE_SYS)
                add_pairing(b, gpus, nics, worst);
        for (size_t i = 0; i < b->task->n_limits; i++) {
                const SearchLimit *l = &b->task->limits[i];
                uint32_t one = 1U << l->pools[0], other = 1U << l->pools[1];

                if (l->limit == DISTANCE_SYS)
                        continue;
                if (one == other)
                        b->gatherings[b->n_gatherings++] = (Gathering){ one, s->pools[l->pools[0]].wanted, l->limit };
                else
                        add_pairing(b, one, other, l->limit);
        }
}

static bool is_one_pool(uint32_t pools) {
        return (pools & (pools - 1)) == 0;
}

/* True when separate judgements imply that all limits hold together. */
static bool is_exact(const Bounds *b) {
        return b->n_gatherings <= 1 && b->n_pairings <= 1 &&
               (b->n_pairings == 0 || (is_one_pool(b->pairings[0].larger) && is_one_pool(b->pairings[0].smaller)));
}

Bound stocks_judge(const Stock *stocks, size_t n, const Space *s, const SearchTask *task, const NodeAffinity *farthest,
                   Distance worst) {
        Bounds b = { .stocks = stocks, .n = n, .space = s, .task = task, .farthest = farthest };

        add_limits(&b, worst);
        for (size_t i = 0; i < b.n_pairings; i++)
                if (!can_pair(&b, &b.pairings[i], 0, 0, n))
                        return BOUND_NOTHING;
        for (size_t i = 0; i < b.n_gatherings; i++)
                if (!can_gather(&b, &b.gatherings[i]))
                        return BOUND_NOTHING;
        return is_exact(&b) ? BOUND_ENOUGH : BOUND_UNKNOWN;
}
