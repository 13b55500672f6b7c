/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the nearest request that would succeed. First lowers the count of each pool to its free devices. Then lowers
 * CPUs, memory and shared memory to the room of the nodes, without a search for devices, but lowers none of these three
 * if another number of NUMA nodes gives room. Then tries a few requests with devices: with a weaker NUMA policy, with a
 * wider proximity, with any number of guest cells, and with fewer devices.
 */

#include <errno.h>
#include <stdio.h>

#include "plan-internal.h"
#include "plan/proximity.h"
#include "util/strings.h"

/* The most searches with devices, and the most comparisons of all searches. A refusal must not take long, because it
 * delays other callers. */
#define TRIES_MAX      12U
#define TRIES_WORK_MAX (PLAN_WORK_MAX / 8)

typedef struct Nearest {
        const Planner *planner;
        Planner asked;  /* planner for relaxed requests */
        Request at;     /* the request that is being relaxed; its strings are borrowed */
        size_t n_nodes; /* number of NUMA nodes of the last feasible plan */
        uint64_t work;
        unsigned tries;
} Nearest;

/* Returns 1 if the host has room for the request without its devices, 0 if not, or a negative errno if that is unknown.
 * If with_memory is false, memory and shared memory are ignored. */
static int has_room(Nearest *n, bool with_memory) {
        Request r = n->at;
        Planner room;

        r.n_pools = 0;
        planner_ask(&n->asked, &n->at);
        room = n->asked;
        room.request = &r;
        if (!with_memory) {
                r.n_regions = 0;
                planner_ignore_memory(&room);
        }
        return planner_is_feasible(&room, &n->n_nodes);
}

static void set_cpus(Request *r, uint64_t cpus) {
        r->cpus = (unsigned) cpus;
}

static void set_memory(Request *r, uint64_t memory) {
        r->memory = memory;
}

/* Finds by bisection the largest multiple of `unit` below `wanted` for which there is room, and sets it. Returns 1; 0
 * if there is none, and `wanted` is set again; or a negative errno. */
static int lower(Nearest *n, uint64_t wanted, uint64_t unit, void (*set)(Request *, uint64_t), bool with_memory) {
        uint64_t room = 0, too_much = (wanted + unit - 1) / unit;

        while (too_much - room > 1) {
                uint64_t middle = room + (too_much - room) / 2;
                int r;

                set(&n->at, middle * unit);
                r = has_room(n, with_memory);
                if (r < 0)
                        return r;
                *(r > 0 ? &room : &too_much) = middle;
        }
        set(&n->at, room > 0 ? room * unit : wanted);
        return room > 0;
}

/* Returns the step for lowering memory: 1 GiB, 1 MiB or a page. */
static uint64_t memory_unit(const Request *r) {
        uint64_t page = request_page(r), unit = page;

        for (uint64_t u = 1ULL << 20; u <= 1ULL << 30; u <<= 10)
                if (u % page == 0 && r->memory > u && r->memory / u > MAX(r->cells, 1U))
                        unit = u;
        return unit;
}

/* Returns whether the region would be new. The size of an existing region cannot be lowered. */
static bool is_new(const Nearest *n, const Region *region) {
        return !ledger_find_region(n->planner->context->ledger, region->name);
}

/* Makes a new region fit: tries ordinary pages, then halves the size until there is room. Leaves an existing region
 * alone. Returns as has_room(). */
static int lower_region(Nearest *n, Region *region) {
        Region wanted = *region;
        int r = 0;

        if (!is_new(n, region))
                return 0;
        region->page_size = 0;
        if (wanted.page_size > 0)
                r = has_room(n, true);
        if (r != 0)
                return r;
        region->page_size = wanted.page_size;
        for (region->size /= 2; region->size >= MAX(REGION_SIZE_MIN, region->page_size); region->size /= 2) {
                r = has_room(n, true);
                if (r != 0)
                        return r;
        }
        *region = wanted;
        return 0;
}

/* Lowers the guest's memory; if that does not help, tries ordinary pages, then less shared memory. Returns as
 * has_room(). */
static int lower_memory(Nearest *n) {
        const uint64_t page_size = n->at.page_size;
        int r = lower(n, n->at.memory, memory_unit(&n->at), set_memory, true);

        if (r == 0 && page_size > 0) {
                n->at.page_size = 0;
                r = has_room(n, true);
                if (r == 0)
                        n->at.page_size = page_size;
        }
        for (size_t i = 0; r == 0 && i < n->at.n_regions; i++)
                r = lower_region(n, &n->at.regions[i]);
        return r;
}

/* Lowers the number of CPUs, by whole cores if the request is for whole cores. Returns as has_room(). */
static int lower_cpus(Nearest *n) {
        unsigned threads = n->planner->threads, wanted = n->at.cpus;

        return lower(n, wanted, wanted % threads == 0 ? threads : 1, set_cpus, false);
}

/* Tries any number of cells and NUMA nodes. Returns as has_room(), and keeps the change on 1. */
static int lift_nodes(Nearest *n) {
        const unsigned cells = n->at.cells;
        const NumaPolicy numa = n->at.numa;
        int r;

        if (cells == 0 && numa_policy_allows_several(numa))
                return 0;
        n->at.cells = 0;
        n->at.numa = numa_policy_allows_several(numa) ? numa : NUMA_POLICY_REQUIRED;
        r = has_room(n, true);
        if (r == 0) {
                n->at.cells = cells;
                n->at.numa = numa;
        }
        return r;
}

static int make_room(Nearest *n) {
        int r = n->at.cpus == 0 ? 1 : has_room(n, true);

        if (r == 0)
                r = lift_nodes(n);
        if (r != 0)
                return r;
        r = has_room(n, false);
        if (r == 0)
                r = lower_cpus(n);
        if (r > 0)
                r = has_room(n, true);
        return r == 0 ? lower_memory(n) : r;
}

/* Returns 1 if n->at has a plan, 0 if not, or a negative errno if that is unknown. */
static int fits(Nearest *n) {
        if (n->tries++ >= TRIES_MAX)
                return -E2BIG;
        planner_ask(&n->asked, &n->at);
        return planner_is_feasible(&n->asked, &n->n_nodes);
}

/* Tries NUMA policies that are weaker than the request's. 'legacy' and 'socket' are not weaker than each other. Returns
 * as fits(), and keeps the change on 1. */
static int weaken_policy(Nearest *n) {
        static const NumaPolicy policies[] = { NUMA_POLICY_REQUIRED, NUMA_POLICY_LEGACY, NUMA_POLICY_SOCKET,
                                               NUMA_POLICY_PREFERRED };
        const NumaPolicy wanted = n->at.numa;
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(policies); i++) {
                if (policies[i] == wanted || numa_policy_stricter(wanted, policies[i]) != wanted)
                        continue;
                n->at.numa = policies[i];
                r = fits(n);
        }
        if (r == 0)
                n->at.numa = wanted;
        return r;
}

/* Tries wider values of *limit, a proximity in n->at. Returns as fits(), and keeps the change on 1. */
static int widen(Nearest *n, Proximity *limit) {
        const Proximity wanted = *limit;
        int r = 0;

        while (r == 0 && *limit < PROXIMITY_ANY) {
                (*limit)++;
                r = fits(n);
        }
        if (r == 0)
                *limit = wanted;
        return r;
}

static int widen_proximity(Nearest *n) {
        int r = widen(n, &n->at.proximity);

        for (size_t i = 0; r == 0 && i < n->at.n_limits; i++)
                r = widen(n, &n->at.limits[i].limit);
        return r;
}

static int free_cells(Nearest *n) {
        const unsigned cells = n->at.cells;
        int r;

        n->at.cells = 0;
        r = cells > 0 ? fits(n) : 0;
        if (r == 0)
                n->at.cells = cells;
        return r;
}

/* Tries one device less of each pool, then half of each. Returns as fits(). */
static int lower_counts(Nearest *n) {
        const Request wanted = n->at;
        int r = 0;

        for (unsigned half = 0; r == 0 && half < 2; half++) {
                bool fewer = false;

                for (size_t i = 0; i < wanted.n_pools; i++) {
                        unsigned count = wanted.pools[i].count;

                        n->at.pools[i].count = half ? (count + 1) / 2 : MAX(count - 1, 1U);
                        fewer = fewer || n->at.pools[i].count < count;
                }
                r = fewer ? fits(n) : 0;
        }
        return r;
}

static int find_place(Nearest *n, Verdict v) {
        int (*const changes[])(Nearest *) = { v == VERDICT_PROXIMITY ? widen_proximity : weaken_policy,
                                              v == VERDICT_PROXIMITY ? weaken_policy : widen_proximity, free_cells,
                                              lower_counts };
        int r = fits(n);

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(changes); i++)
                r = changes[i](n);
        return r;
}

/* Lowers the count of each pool to its free devices. False: a pool has none. */
static bool clamp_counts(Nearest *n) {
        for (size_t i = 0; i < n->at.n_pools; i++) {
                unsigned have = planner_count(n->planner, i);

                if (have == 0)
                        return false;
                n->at.pools[i].count = MIN(n->at.pools[i].count, have);
        }
        return true;
}

typedef struct Words {
        char *text;
        bool failed;
} Words;

static _printf_(2, 3) void add_words(Words *w, const char *format, ...) {
        _cleanup_free_ char *before = TAKE_PTR(w->text), *words = FORMAT_ARGUMENTS(format);

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
                add_words(&w, "%s of memory", FORMAT_SIZE_EXACT(r->memory));
        if (r->page_size != wanted->page_size)
                add_words(&w, "ordinary pages");
        for (size_t i = 0; i < r->n_regions; i++) {
                if (r->regions[i].size != wanted->regions[i].size)
                        add_words(&w, "%s of shared memory '%s'", FORMAT_SIZE_EXACT(r->regions[i].size),
                                  r->regions[i].name);
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
        Nearest n = { .planner = p, .asked = *p, .at = *p->request, .work = TRIES_WORK_MAX };
        _cleanup_free_ char *words = NULL;

        if (!ret || v == VERDICT_LIMIT)
                return;
        n.asked.work = &n.work;
        if (!clamp_counts(&n) || make_room(&n) <= 0 || find_place(&n, v) <= 0)
                return;
        words = describe(&n);
        if (words)
                (void) string_replace(&ret->nearest, "It would fit with %s.", words);
}
