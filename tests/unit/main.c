/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"
#include "util/strings.h"

#define TESTS_MAX 128U

static struct CMUnitTest tests[TESTS_MAX];
static size_t n_tests;
static CMFixtureFunction set_up_group, tear_down_group;

void unit_group(CMFixtureFunction set_up, CMFixtureFunction tear_down) {
        set_up_group = set_up;
        tear_down_group = tear_down;
}

void unit_add(const struct CMUnitTest *test) {
        if (n_tests == ELEMENTSOF(tests))
                abort();
        tests[n_tests++] = *test;
}

int main(void) {
        const char *filter = getenv("UNIT_TEST");
        size_t n = 0;

        for (size_t i = 0; filter && i < n_tests; i++)
                n += fnmatch(filter, tests[i].name, 0) == 0;
        if (filter && n == 0)
                return fprintf(stderr, "There is no test '%s'.\n", filter), EXIT_FAILURE;
        cmocka_set_test_filter(filter);
        return _cmocka_run_group_tests(program_invocation_short_name, tests, n_tests, set_up_group, tear_down_group);
}
