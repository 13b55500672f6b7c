/* SPDX-License-Identifier: GPL-2.0-or-later */

/* CPUs as whole cores. */

#include "unit.h"

#include "model/cores.h"
#include "nodefixture.h"

static TestNode *make_node(unsigned n, unsigned threads) {
        TestNode *t = node_new();

        node_numa(t, 0, 0, n, threads, 8 * GIB);
        assert_int_equal(inventory_finish(t->inventory), 0);
        return t;
}

TEST(test_threads) {
        for (unsigned threads = 1; threads <= 4; threads *= 2) {
                _cleanup_node_ TestNode *t = make_node(8, threads);

                assert_int_equal(cores_threads(t->inventory), threads);
        }
        _cleanup_node_ TestNode *none = make_node(0, 1);

        assert_int_equal(cores_threads(none->inventory), 1);
}

/* One core has lost a thread: the largest number of threads counts. */
TEST(test_threads_of_unequal_cores) {
        _cleanup_node_ TestNode *t = make_node(4, 2);

        t->inventory->n_cpus = 3;
        assert_int_equal(cores_threads(t->inventory), 2);
}

TEST(test_split) {
        static const struct {
                unsigned cpus, threads;
                size_t k;
                unsigned shares[4];
        } table[] = {
                { 8, 1, 1, { 8 } },       { 8, 1, 2, { 4, 4 } },        { 7, 1, 2, { 4, 3 } },
                { 6, 2, 2, { 4, 2 } },    { 5, 2, 2, { 3, 2 } },        { 10, 2, 3, { 4, 4, 2 } },
                { 3, 1, 3, { 1, 1, 1 } }, { 32, 2, 4, { 8, 8, 8, 8 } }, { 1, 2, 1, { 1 } },
                { 2, 2, 2, { 1, 1 } },    { 7, 2, 2, { 4, 3 } },        { 9, 4, 2, { 5, 4 } },
                { 9, 4, 3, { 4, 4, 1 } }, { 11, 2, 4, { 4, 3, 2, 2 } },
        };

        /* Shares for any number of CPUs are in order, and differ by a core at most. */
        for (unsigned threads = 1; threads <= 4; threads *= 2)
                for (unsigned cpus = 4; cpus < 40; cpus++) {
                        unsigned shares[4];

                        cores_split(cpus, threads, 4, shares);
                        assert_true(shares[0] >= shares[1] && shares[1] >= shares[2] && shares[2] >= shares[3]);
                        assert_in_range(shares[3], MAX(1U, shares[0] - MIN(shares[0], threads)), shares[0]);
                        assert_int_equal(shares[0] + shares[1] + shares[2] + shares[3], cpus);
                }
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                unsigned shares[4] = { 0 }, sum = 0;

                cores_split(table[i].cpus, table[i].threads, table[i].k, shares);
                for (size_t j = 0; j < table[i].k; j++) {
                        if (shares[j] != table[i].shares[j])
                                fail_msg("%u CPUs, %u threads, %zu cells: share %zu is %u, not %u", table[i].cpus,
                                         table[i].threads, table[i].k, j, shares[j], table[i].shares[j]);
                        sum += shares[j];
                }
                assert_int_equal(sum, table[i].cpus);
        }
}

static void assert_pick(unsigned threads, const char *free_text, unsigned share, unsigned expected,
                        const char *claimed_text) {
        _cleanup_node_ TestNode *t = make_node(8, threads);
        CpuSet free_cpus, claimed = { 0 };
        Pin pins[8];

        assert_int_equal(cpuset_parse(free_text, &free_cpus), 0);
        assert_int_equal(MIN(cores_count(t->inventory, &free_cpus), share), expected);
        assert_int_equal(cores_pick(t->inventory, &free_cpus, share, &claimed, pins), expected);
        assert_cpus(&claimed, claimed_text);
        for (unsigned i = 0; i < expected; i++) {
                assert_true(cpuset_has(&claimed, pins[i].cpu));
                for (unsigned j = 0; j < i; j++)
                        assert_true(pins[j].cpu < pins[i].cpu);
        }
}

TEST(test_pick) {
        assert_pick(1, "0-7", 3, 3, "0-2");
        assert_pick(2, "0-7", 4, 4, "0-3");
        assert_pick(2, "0-7", 3, 3, "0-3"); /* the odd thread takes its core with it */
        assert_pick(2, "2-7", 2, 2, "2-3"); /* the lowest free core */
        assert_pick(4, "4-7", 8, 4, "4-7"); /* fewer than wanted */
        assert_pick(2, "", 2, 0, "");
        assert_pick(2, "0-7", 0, 0, "");
}

/* Two performance cores with two threads, two efficient and two low-power ones: 0-3, 4-5, 6-7. */
TEST(test_pick_of_kinds) {
        static const struct {
                const char *free_cpus;
                unsigned share;
                const char *claimed;
        } cases[] = {
                { "0-7", 2, "0-1" }, { "0-7", 4, "0-3" }, { "2-7", 2, "2-3" }, { "4-7", 2, "4-5" },
                { "5-7", 2, "6-7" }, { "0-7", 5, "0-4" }, { "2-7", 4, "2-5" }, { "4-7", 3, "4-6" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_node_ TestNode *t = make_node(8, 2);
                CpuSet free_cpus, claimed = { 0 };
                Pin pins[8];

                for (unsigned cpu = 4; cpu < 8; cpu++) {
                        t->inventory->cpus[cpu].core = cpu;
                        t->inventory->cpus[cpu].kind = cpu < 6 ? CORE_EFFICIENT : CORE_LOW_POWER;
                }
                assert_int_equal(cpuset_parse(cases[i].free_cpus, &free_cpus), 0);
                assert_int_equal(cores_pick(t->inventory, &free_cpus, cases[i].share, &claimed, pins), cases[i].share);
                assert_cpus(&claimed, cases[i].claimed);
        }
}
