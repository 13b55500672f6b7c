/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The nearest request that would succeed. Plans the request again, relaxed as little as possible. First each wish is
 * relaxed alone, in the order of least harm. If none suffices, all are relaxed together, and then each is restored as
 * far as possible.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "plan-internal.h"
#include "plan/proximity.h"
#include "util/strings.h"

/* Limits of the number of plans and of their cost: a refusal must not delay other callers. */
#define TRIES_MAX      96U
#define TRIES_WORK_MAX (PLAN_WORK_MAX / 8)

typedef enum Wish {
        WISH_NUMA,
        WISH_PROXIMITY,
        WISH_LIMIT, /* one for each limit */
        WISH_CELLS,
        WISH_COUNTS, /* the counts of all pools, in proportion */
        WISH_COUNT,  /* one for each pool */
        WISH_MEMORY,
        WISH_PAGES,
        WISH_REGION_PAGES, /* one for each piece of shared memory */
        WISH_REGION,       /* the size, one for each piece of shared memory */
        WISH_CPUS,
        _WISH_MAX,
} Wish;

typedef struct Dimension {
        Wish wish;
        size_t index; /* of the limit, pool or shared memory */
} Dimension;

#define DIMENSIONS_MAX (_WISH_MAX + REQUEST_LIMITS_MAX + REQUEST_POOLS_MAX + 2 * ALLOCATION_REGIONS_MAX)

typedef struct Nearest {
        const Planner *planner;
        Planner asked;  /* planner for the relaxed requests */
        Request base;   /* the request, with counts lowered to the free devices */
        Request at;     /* the relaxed request; strings are borrowed, as in base */
        size_t n_nodes; /* NUMA nodes of the last plan found */
        uint64_t work;
        unsigned tries;
} Nearest;

/* 1 when there is a plan, 0 when there is none, negative when that is unknown. */
static int fits(Nearest *n) {
        uint64_t look = n->asked.context->inventory->n_devices * PLAN_DEVICE_WORK;

        if (n->tries++ >= TRIES_MAX || n->work < look)
                return -E2BIG;
        n->work -= look;
        planner_ask(&n->asked, &n->at);
        return planner_is_feasible(&n->asked, &n->n_nodes);
}

static unsigned common_divisor(const Request *r) {
        unsigned divisor = 0;

        for (size_t i = 0; i < r->n_pools; i++)
                for (unsigned a = r->pools[i].count; a > 0;) {
                        unsigned rest = divisor % a;

                        divisor = a;
                        a = rest;
                }
        return divisor;
}

/* --- values of a wish: 0 is the requested value, last_value() the weakest --- */

/* The step by which memory is lowered: a round unit. */
static uint64_t memory_unit(const Request *r) {
        uint64_t page = request_page(r), unit = page;

        for (uint64_t u = 1ULL << 20; u <= 1ULL << 30; u <<= 10)
                if (u % page == 0 && r->memory > u && r->memory / u > MAX(r->cells, 1U))
                        unit = u;
        return unit;
}

/* The step by which CPUs are lowered: whole cores if the request wants whole cores. */
static unsigned cpu_unit(const Nearest *n) {
        unsigned threads = n->planner->threads;

        return n->base.cpus % threads == 0 ? threads : 1;
}

/* Weaker policies, in the order in which they are tried. Neither 'legacy' nor 'socket' includes the other. */
static const struct {
        uint64_t n;
        NumaPolicy policies[3];
} looser_policies[_NUMA_POLICY_MAX] = {
        [NUMA_POLICY_REQUIRED] = { 3, { NUMA_POLICY_LEGACY, NUMA_POLICY_SOCKET, NUMA_POLICY_PREFERRED } },
        [NUMA_POLICY_SOCKET] = { 1, { NUMA_POLICY_PREFERRED } },
        [NUMA_POLICY_LEGACY] = { 1, { NUMA_POLICY_PREFERRED } },
};

/* How often the size can be halved. */
static uint64_t region_halvings(const Region *r) {
        uint64_t n = 0;

        while (r->size >> (n + 1) >= MAX(REGION_SIZE_MIN, r->page_size))
                n++;
        return n;
}

/* Existing shared memory cannot be changed. */
static bool region_is_new(const Nearest *n, size_t index) {
        return !ledger_find_region(n->planner->context->ledger, n->base.regions[index].name);
}

static uint64_t last_value(const Nearest *n, Dimension d) {
        const Request *r = &n->base;

        switch (d.wish) {
        case WISH_NUMA:
                return looser_policies[r->numa].n;
        case WISH_PROXIMITY:
                return PROXIMITY_ANY - r->proximity;
        case WISH_LIMIT:
                return PROXIMITY_ANY - r->limits[d.index].limit;
        case WISH_CELLS:
                return r->cells > 0;
        case WISH_COUNTS:
                return r->n_pools > 1 ? common_divisor(r) - 1 : 0;
        case WISH_COUNT:
                return r->pools[d.index].count - 1;
        case WISH_MEMORY: /* a page for each cell remains */
                return r->cpus == 0 ? 0 : (r->memory - request_page(r) * MAX(r->cells, 1U)) / memory_unit(r);
        case WISH_PAGES:
                return r->page_size > 0;
        case WISH_REGION_PAGES:
                return region_is_new(n, d.index) && r->regions[d.index].page_size > 0;
        case WISH_REGION:
                return region_is_new(n, d.index) ? region_halvings(&r->regions[d.index]) : 0;
        default:
                return r->cpus == 0 ? 0 : (r->cpus - MAX(r->cells, 1U)) / cpu_unit(n);
        }
}

static void set_value(Nearest *n, Dimension d, uint64_t value) {
        const Request *base = &n->base;
        Request *r = &n->at;
        uint64_t unit = memory_unit(base);

        switch (d.wish) {
        case WISH_NUMA:
                r->numa = value > 0 ? looser_policies[base->numa].policies[value - 1] : base->numa;
                return;
        case WISH_PROXIMITY:
                r->proximity = base->proximity + (Proximity) value;
                return;
        case WISH_LIMIT:
                r->limits[d.index].limit = base->limits[d.index].limit + (Proximity) value;
                return;
        case WISH_CELLS:
                r->cells = value > 0 ? 0 : base->cells;
                return;
        case WISH_COUNTS:
                for (size_t i = 0; i < r->n_pools; i++)
                        r->pools[i].count =
                                base->pools[i].count / common_divisor(base) * (common_divisor(base) - (unsigned) value);
                return;
        case WISH_COUNT:
                r->pools[d.index].count = base->pools[d.index].count - (unsigned) value;
                return;
        case WISH_MEMORY: /* the first step rounds down to a whole unit */
                r->memory = value > 0 ? (base->memory + unit - 1) / unit * unit - value * unit : base->memory;
                return;
        case WISH_PAGES:
                r->page_size = value > 0 ? 0 : base->page_size;
                return;
        case WISH_REGION_PAGES:
                r->regions[d.index].page_size = value > 0 ? 0 : base->regions[d.index].page_size;
                return;
        case WISH_REGION:
                r->regions[d.index].size = base->regions[d.index].size >> value;
                return;
        default:
                r->cpus = base->cpus - (unsigned) value * cpu_unit(n);
        }
}

/*
 * Finds the smallest value from low to high with a plan; high is known to have one. Every higher value has one too,
 * except for NUMA policies, which are tried one by one.
 */
static int bisect(Nearest *n, Dimension d, uint64_t low, uint64_t high) {
        while (low < high) {
                uint64_t middle = d.wish == WISH_NUMA ? low : low + (high - low) / 2;
                int r;

                set_value(n, d, middle);
                r = fits(n);
                if (r < 0)
                        return r;
                if (r > 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        set_value(n, d, high);
        return fits(n);
}

/* Relaxes one wish as little as possible. 1, 0 when no value suffices (the wish is then unchanged), or negative. */
static int give_up(Nearest *n, Dimension d) {
        uint64_t last = last_value(n, d);
        int r;

        if (last == 0)
                return 0;
        set_value(n, d, last);
        r = fits(n);
        if (r > 0)
                return bisect(n, d, 1, last);
        /* Fewer devices of one pool may be harder to pair. */
        if (r == 0 && d.wish == WISH_COUNT && last > 1) {
                set_value(n, d, 1);
                r = fits(n);
        }
        if (r == 0)
                set_value(n, d, 0);
        return r;
}

/* --- which wish --- */

static bool concerns(Verdict v, Wish w) {
        switch (v) {
        case VERDICT_INSUFFICIENT_CPUS:
                return w == WISH_CELLS || w == WISH_CPUS;
        case VERDICT_INSUFFICIENT_MEMORY:
                return w == WISH_CELLS || w == WISH_MEMORY || w == WISH_PAGES || w == WISH_REGION_PAGES ||
                       w == WISH_REGION;
        case VERDICT_PROXIMITY:
                return w == WISH_PROXIMITY || w == WISH_LIMIT;
        default:
                return w == WISH_NUMA;
        }
}

static size_t count_dimensions(const Request *r, Wish w) {
        switch (w) {
        case WISH_LIMIT:
                return r->n_limits;
        case WISH_COUNT:
                return r->n_pools;
        case WISH_REGION_PAGES:
        case WISH_REGION:
                return r->n_regions;
        default:
                return 1;
        }
}

/* Lists the wishes; those that the refusal is about come first. */
static size_t list_dimensions(const Nearest *n, Verdict v, Dimension *ret) {
        size_t count = 0;

        for (int first = 1; first >= 0; first--)
                for (Wish w = 0; w < _WISH_MAX; w++) {
                        size_t times = count_dimensions(&n->base, w);

                        for (size_t i = 0; i < times && concerns(v, w) == first; i++)
                                ret[count++] = (Dimension){ w, i };
                }
        return count;
}

/* Relaxes several wishes. WISH_COUNTS is skipped, because WISH_COUNT changes the same numbers. */
static int give_up_several(Nearest *n, const Dimension *dimensions, size_t count) {
        size_t given = 0;
        int r = 0;

        n->at = n->base;
        while (r == 0 && given < count) {
                Dimension d = dimensions[given++];

                if (d.wish != WISH_COUNTS && last_value(n, d) > 0) {
                        set_value(n, d, last_value(n, d));
                        r = fits(n);
                }
        }
        while (r > 0 && given-- > 0) {
                Dimension d = dimensions[given];

                if (d.wish == WISH_COUNTS || last_value(n, d) == 0)
                        continue;
                set_value(n, d, 0);
                r = fits(n);
                if (r == 0)
                        r = give_up(n, d);
        }
        return r;
}

static int find(Nearest *n, Verdict v) {
        Dimension dimensions[DIMENSIONS_MAX];
        size_t count = list_dimensions(n, v, dimensions);
        int r = fits(n);

        for (size_t i = 0; r == 0 && i < count; i++)
                r = give_up(n, dimensions[i]);
        return r == 0 ? give_up_several(n, dimensions, count) : r;
}

/* Lowers the counts to the free devices, which no plan can exceed. False when a pool has no free device. */
static bool clamp_counts(Nearest *n) {
        for (size_t i = 0; i < n->base.n_pools; i++) {
                unsigned have = planner_count(n->planner, i);

                if (have == 0)
                        return false;
                n->base.pools[i].count = MIN(n->base.pools[i].count, have);
        }
        return true;
}

/* --- in words --- */

typedef struct Words {
        char *text;
        bool failed;
} Words;

static _printf_(2, 3) void add_words(Words *w, const char *format, ...) {
        _cleanup_free_ char *before = TAKE_PTR(w->text), *words = NULL;
        va_list ap;

        va_start(ap, format);
        words = string_vformat(format, ap);
        va_end(ap);
        if (!words || string_replace(&w->text, "%s%s%s", before ?: "", before ? " and " : "", words) < 0)
                w->failed = true;
}

static char *describe(const Nearest *n) {
        const Request *wanted = n->planner->request, *r = &n->at;
        Words w = { 0 };

        for (size_t i = 0; i < r->n_pools; i++)
                if (r->pools[i].count != wanted->pools[i].count)
                        add_words(&w, "%u of pool '%s'", r->pools[i].count, r->pools[i].pool);
        if (r->cpus != wanted->cpus)
                add_words(&w, "%u vCPU%s", r->cpus, PLURAL(r->cpus));
        if (r->memory != wanted->memory)
                add_words(&w, "%s of memory", FORMAT_SIZE(r->memory));
        if (r->page_size != wanted->page_size)
                add_words(&w, "ordinary pages");
        for (size_t i = 0; i < r->n_regions; i++) {
                if (r->regions[i].size != wanted->regions[i].size)
                        add_words(&w, "%s of shared memory '%s'", FORMAT_SIZE(r->regions[i].size), r->regions[i].name);
                if (r->regions[i].page_size != wanted->regions[i].page_size)
                        add_words(&w, "ordinary pages of shared memory '%s'", r->regions[i].name);
        }
        if (r->cells != wanted->cells)
                add_words(&w, "%zu guest cell%s", n->n_nodes, PLURAL(n->n_nodes));
        if (r->numa != wanted->numa)
                add_words(&w, "the NUMA policy '%s'", numa_policy_to_string(r->numa));
        if (r->proximity != wanted->proximity)
                add_words(&w, "the proximity '%s'", proximity_to_string(r->proximity));
        for (size_t i = 0; i < r->n_limits; i++)
                if (r->limits[i].limit != wanted->limits[i].limit)
                        add_words(&w, "the proximity '%s:%s=%s'", r->limits[i].pools[0], r->limits[i].pools[1],
                                  proximity_to_string(r->limits[i].limit));
        if (w.failed) {
                free(w.text);
                return NULL;
        }
        return w.text;
}

void planner_nearest(const Planner *p, Verdict v, Refusal *ret) {
        Nearest n = { .planner = p, .asked = *p, .base = *p->request, .work = TRIES_WORK_MAX };
        _cleanup_free_ char *words = NULL;

        if (!ret || v == VERDICT_LIMIT || !clamp_counts(&n))
                return;
        n.at = n.base;
        n.asked.work = &n.work;
        if (find(&n, v) <= 0)
                return;
        words = describe(&n);
        if (words)
                (void) string_replace(&ret->nearest, "It would fit with %s.", words);
}
