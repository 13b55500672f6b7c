/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>

#include "unit.h"

#include "model/cpuset.h"
#include "util/cleanup.h"

static CpuSet parse(const char *text) {
        CpuSet set;

        assert_int_equal(cpuset_parse(text, &set), 0);
        return set;
}

TEST(test_text) {
        static const struct {
                const char *text, *canonical;
                unsigned count;
        } good[] = {
                { "", "", 0 },
                { "\n", "", 0 },
                { "0", "0", 1 },
                { " 0-3,8,10-11\n", "0-3,8,10-11", 7 },
                { "3,1,2,2-2", "1-3", 3 },
                { "62-65,127,128", "62-65,127-128", 6 },
                { "0-4095", "0-4095", 4096 },
        };

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                CpuSet set = parse(good[i].text);
                _cleanup_free_ char *text = cpuset_format(&set);

                assert_string_equal(text, good[i].canonical);
                assert_int_equal(cpuset_count(&set), good[i].count);
                assert_int_equal(cpuset_is_empty(&set), good[i].count == 0);
        }
}

/* The longest possible texts: every second CPU, and pairs. */
TEST(test_format_worst) {
        for (unsigned step = 2; step <= 3; step++) {
                CpuSet set = { 0 }, again;

                for (unsigned i = 0; i < CPUSET_MAX; i++)
                        if (i % step != 0)
                                cpuset_add(&set, i);
                _cleanup_free_ char *text = cpuset_format(&set);
                assert_int_equal(cpuset_parse(text, &again), 0);
                assert_true(cpuset_equal(&set, &again));
        }
}

TEST(test_parse_refuses) {
        static const char *const bad[] = {
                ",", "1,", ",1", "1-", "-1", "3-1", "1 2", "a", "1,,2", "0x1", "1-2-3", "+1"
        };
        static const char *const outside[] = { "4096", "0-4096", "99999999999999999999" };
        CpuSet set = parse("5");

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(cpuset_parse(bad[i], &set), -EINVAL);
        for (size_t i = 0; i < ELEMENTSOF(outside); i++)
                assert_int_equal(cpuset_parse(outside[i], &set), -ERANGE);
        assert_int_equal(cpuset_count(&set), 1); /* unchanged */
}

TEST(test_members) {
        CpuSet set = { 0 };

        cpuset_add(&set, 63);
        cpuset_add(&set, 64);
        cpuset_add(&set, CPUSET_MAX - 1);
        assert_true(cpuset_has(&set, 63));
        assert_false(cpuset_has(&set, 62));
        assert_false(cpuset_has(&set, CPUSET_MAX));

        assert_int_equal(cpuset_next(&set, 0), 63);
        assert_int_equal(cpuset_next(&set, 64), 64);
        assert_int_equal(cpuset_next(&set, 65), CPUSET_MAX - 1);
        assert_int_equal(cpuset_next(&set, CPUSET_MAX), -1);

        cpuset_remove(&set, 64);
        cpuset_remove(&set, CPUSET_MAX);
        assert_false(cpuset_has(&set, 64));
        assert_int_equal(cpuset_count(&set), 2);
}

TEST(test_operations) {
        CpuSet a = parse("0-3,100"), b = parse("2-5,200"), sum = parse("0-5,100,200"), rest = parse("0-1,100"),
               other = parse("200");

        assert_true(cpuset_intersects(&a, &b));
        assert_false(cpuset_intersects(&a, &other));
        assert_false(cpuset_equal(&a, &b));

        CpuSet s = a;
        cpuset_merge(&s, &b);
        assert_true(cpuset_equal(&s, &sum));
        s = a;
        cpuset_subtract(&s, &b);
        assert_true(cpuset_equal(&s, &rest));
}
