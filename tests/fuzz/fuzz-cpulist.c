/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Lists of CPUs: a parsed list is written in the shortest form, and parsed as the same set. */

#include "fuzz.h"

#include <errno.h>

#include "model/cpuset.h"

/* Ranges in the list: each begins with a number whose predecessor is not in the set. */
static unsigned count_ranges(const CpuSet *set) {
        unsigned n = 0;

        for (int c = cpuset_next(set, 0); c >= 0; c = cpuset_next(set, (unsigned) c + 1))
                n += c == 0 || !cpuset_has(set, (unsigned) c - 1);
        return n;
}

static unsigned count_commas(const char *s) {
        unsigned n = 0;

        for (; (s = strchr(s, ',')); s++)
                n++;
        return n;
}

static void check_members(const CpuSet *set) {
        CpuSet without = *set, all = { 0 };
        unsigned n = 0;

        for (int c = cpuset_next(set, 0); c >= 0; c = cpuset_next(set, (unsigned) c + 1)) {
                assert_true(cpuset_has(set, (unsigned) c));
                cpuset_add(&all, (unsigned) c);
                n++;
        }
        assert_int_equal(cpuset_count(set), n);
        assert_true(cpuset_equal(set, &all));
        assert_int_equal(cpuset_intersects(set, &all), n > 0);
        cpuset_subtract(&without, &all);
        assert_true(cpuset_is_empty(&without));
        cpuset_merge(&without, set);
        assert_true(cpuset_equal(set, &without));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *text = fuzz_text(data, size), *written = NULL, *again = NULL;
        CpuSet set, same;
        int r;

        memset(&set, 0xa5, sizeof(set));
        r = cpuset_parse(text, &set);
        if (r < 0) {
                assert_true(r == -EINVAL || r == -ERANGE);
                assert_int_equal(set.words[0], UINT64_C(0xa5a5a5a5a5a5a5a5));
                return 0;
        }
        check_members(&set);
        written = cpuset_format(&set);
        assert_non_null(written);
        assert_int_equal(cpuset_parse(written, &same), 0);
        assert_true(cpuset_equal(&set, &same));
        assert_int_equal(count_commas(written) + !!*written, count_ranges(&set));
        again = cpuset_format(&same);
        assert_non_null(again);
        assert_string_equal(written, again);
        return 0;
}
