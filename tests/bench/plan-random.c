/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * plan-random ROOT CONFIG ROUNDS GPU-POOL NIC-POOL: in each round fills the machine below ROOT at random, and plans
 * random requests, some of which are refused. Prints the microseconds of each.
 */

#include <fcntl.h>
#include <stdio.h>

#include "../placement/random.h"
#include "clock.h"

#define REQUESTS 8U /* per round */
#define REPEATS  5U /* per timed request */

static int make_request(uint64_t *seed, const char *const pools[2], Request *r) {
        unsigned gpus = below(seed, 9), nics = below(seed, 3) ? gpus : below(seed, 9);

        request_init(r);
        r->cpus = (1 + below(seed, 16)) * 2;
        r->memory = r->cpus * 2 * GIB;
        r->cells = below(seed, 4) ? 0 : 1 + below(seed, 2);
        r->numa = (NumaPolicy) below(seed, _NUMA_POLICY_MAX);
        r->cells = r->numa == NUMA_POLICY_SINGLE ? MIN(r->cells, 1U) : r->cells;
        r->proximity = below(seed, 2) ? PROXIMITY_ANY : (Proximity) below(seed, _PROXIMITY_MAX);
        if (gpus > 0 && request_add_pool(r, pools[0], gpus) < 0)
                return -1;
        if (nics > 0 && request_add_pool(r, pools[1], nics) < 0)
                return -1;
        if (gpus > 1 && below(seed, 3) == 0)
                return request_add_limit(r, pools[0], pools[0], PROXIMITY_ROOT_COMPLEX + (Proximity) below(seed, 3));
        return 0;
}

/*
 * Returns the least time of some repeats: a plan always takes the same steps, so a longer time is due to the host (an
 * interrupt, a busy sibling CPU, memory that others use).
 */
static double time_plan(const HostView *c, const Request *r) {
        double least = 0;

        for (unsigned i = 0; i < REPEATS; i++) {
                _cleanup_(cleanup_plan_free) Plan *plan = NULL;
                _cleanup_refusal_ Refusal why = { 0 };
                double start = now_us(), taken;

                (void) plan_make(c, r, &plan, &why);
                taken = now_us() - start;
                least = i == 0 ? taken : MIN(least, taken);
        }
        return least;
}

/* Claims a random request, unless it is refused. */
static int fill_once(Machine *m, uint64_t *seed, const char *const pools[2], unsigned *number) {
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_refusal_ Refusal why = { 0 };
        _cleanup_request_ Request r;
        HostView c = machine_view(m);

        if (make_request(seed, pools, &r) < 0)
                return -1;
        if (plan_make(&c, &r, &plan, &why) != VERDICT_NONE)
                return 0;
        return enter(m, TAKE_PTR(plan->allocation), ++*number) ? 0 : -1;
}

static int run_round(Machine *m, uint64_t *seed, const char *const pools[2], unsigned most) {
        HostView c = machine_view(m);
        unsigned number = 0;

        while (m->ledger->n_allocations > 0)
                leave(m, 0);
        for (unsigned i = below(seed, most + 1); i > 0; i--)
                if (fill_once(m, seed, pools, &number) < 0)
                        return -1;
        for (unsigned i = 0; i < m->ledger->n_allocations; i += 1 + below(seed, 4))
                leave(m, i);
        for (unsigned i = 0; i < REQUESTS; i++) {
                _cleanup_request_ Request r;

                if (make_request(seed, pools, &r) < 0)
                        return -1;
                printf("%.1f\n", time_plan(&c, &r));
        }
        return 0;
}

/* Returns the approximate number of requests that fill the machine. */
static unsigned fill_of(const Machine *m, const char *pool) {
        unsigned n = 0;

        for (size_t i = 0; i < m->inventory->n_devices; i++) {
                const Pool *p = policy_pool(m->policy, &m->inventory->devices[i]);

                n += p && streq(p->name, pool);
        }
        return n / 2 + 1;
}

int main(int argc, char *argv[]) {
        _cleanup_(machine_done) Machine m = { 0 };
        unsigned rounds, most;
        uint64_t seed = 1;

        if (argc != 6 || machine_read(&m, argv[1], argv[2]) < 0) {
                (void) fprintf(stderr, "usage: plan-random ROOT CONFIG ROUNDS GPU-POOL NIC-POOL\n");
                return EXIT_FAILURE;
        }
        rounds = (unsigned) strtoul(argv[3], NULL, 10);
        most = fill_of(&m, argv[4]);
        for (unsigned i = 0; i < rounds; i++)
                if (run_round(&m, &seed, (const char *[]) { argv[4], argv[5] }, most) < 0)
                        return EXIT_FAILURE;
        return EXIT_SUCCESS;
}
