/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * speed ROOT CONFIG ROUNDS P99_US WORST_US GPU-POOL NIC-POOL: how long the planner takes for random requests on the
 * machine below ROOT, filled at random anew in each round. Prints percentiles of processor time, of plans and of
 * refusals; 1 when the 99th of both together or the longest is above its limit. PLACEMENT_SEED= for other requests.
 */

#include <fcntl.h>
#include <stdio.h>
#include <time.h>

#include "random.h"

#define REQUESTS 8U /* of a round */

typedef struct Times {
        double *us;
        size_t n;
} Times;

static double cpu_us(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

static int time_compare(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

static double percentile(const Times *t, unsigned percent) {
        return t->n > 0 ? t->us[(t->n - 1) * percent / 100] : 0;
}

static void print_times(Times *t, const char *what) {
        qsort(t->us, t->n, sizeof(*t->us), time_compare);
        printf("# %-9s %6zu: %8.0f us 50 %%, %8.0f us 90 %%, %8.0f us 99 %%, %8.0f us at most\n", what, t->n,
               percentile(t, 50), percentile(t, 90), percentile(t, 99), percentile(t, 100));
}

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

/* The times of plans and of refusals, and both; each has room for all. */
typedef struct Record {
        Times plans, refusals, all;
} Record;

static int record_init(Record *r, size_t n) {
        r->plans.us = calloc(n + 1, sizeof(double));
        r->refusals.us = calloc(n + 1, sizeof(double));
        r->all.us = calloc(n + 1, sizeof(double));
        return r->plans.us && r->refusals.us && r->all.us ? 0 : -1;
}

static void record_done(Record *r) {
        free(r->plans.us);
        free(r->refusals.us);
        free(r->all.us);
}

static void record_add(Record *r, bool planned, double us) {
        Times *t = planned ? &r->plans : &r->refusals;

        t->us[t->n++] = us;
        r->all.us[r->all.n++] = us;
}

/* record: NULL while the machine is filled. */
static int run_once(Machine *m, uint64_t *seed, const char *const pools[2], Record *record, unsigned *number) {
        _cleanup_(cleanup_plan_free) Plan *plan = NULL;
        _cleanup_refusal_ Refusal why = { 0 };
        _cleanup_request_ Request r;
        HostView c = machine_view(m);
        double start;
        Verdict v;

        if (make_request(seed, pools, &r) < 0)
                return -1;
        start = cpu_us();
        v = plan_make(&c, &r, &plan, &why);
        if (!record)
                return v != VERDICT_NONE || enter(m, TAKE_PTR(plan->allocation), ++*number) ? 0 : -1;
        record_add(record, v == VERDICT_NONE, cpu_us() - start);
        return 0;
}

static int run_round(Machine *m, uint64_t *seed, const char *const pools[2], unsigned most, Record *record) {
        unsigned number = 0;
        int r = 0;

        while (m->ledger->n_allocations > 0)
                leave(m, 0);
        for (unsigned i = below(seed, most + 1); r == 0 && i > 0; i--)
                r = run_once(m, seed, pools, NULL, &number);
        for (unsigned i = 0; r == 0 && i < m->ledger->n_allocations; i += 1 + below(seed, 4))
                leave(m, i);
        for (unsigned i = 0; r == 0 && i < REQUESTS; i++)
                r = run_once(m, seed, pools, record, &number);
        return r;
}

/* So many requests fill the machine, more or less. */
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
        _cleanup_(record_done) Record record = { 0 };
        const char *from = getenv("PLACEMENT_SEED");
        uint64_t seed = from ? strtoull(from, NULL, 10) : 1;
        double limit, worst;
        unsigned rounds;
        int r;

        if (argc != 8 || machine_read(&m, argv[1], argv[2]) < 0) {
                (void) fprintf(stderr, "usage: speed ROOT CONFIG ROUNDS P99_US WORST_US GPU-POOL NIC-POOL\n");
                return EXIT_FAILURE;
        }
        rounds = (unsigned) strtoul(argv[3], NULL, 10);
        limit = strtod(argv[4], NULL);
        worst = strtod(argv[5], NULL);
        r = record_init(&record, (size_t) rounds * REQUESTS);
        for (unsigned i = 0; r == 0 && i < rounds; i++)
                r = run_round(&m, &seed, (const char *[]) { argv[6], argv[7] }, fill_of(&m, argv[6]), &record);
        if (r < 0 || record.plans.n == 0)
                return EXIT_FAILURE;
        print_times(&record.plans, "plans");
        print_times(&record.refusals, "refusals");
        print_times(&record.all, "both");
        r = percentile(&record.all, 99) > limit || percentile(&record.all, 100) > worst;
        printf("%sok - %zu functions, a plan or a refusal takes at most %.0f us, the 99th percentile is at most %.0f "
               "us\n",
               r ? "not " : "", m.inventory->n_devices, worst, limit);
        return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
