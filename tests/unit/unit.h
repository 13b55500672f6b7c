/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Registration of tests. main.c runs all tests of the program in the order of their lines, or the one that $UNIT_TEST
 * names.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four headers above first */
#include <cmocka.h>

#include "util/cleanup.h"

/* Sets the functions that run before and after all tests; NULL: none. */
void unit_group(CMFixtureFunction set_up, CMFixtureFunction tear_down);
void unit_add(const struct CMUnitTest *test);

#define TEST(name) TEST_WITH(name, NULL, NULL)
/* A test with functions that run before and after it. */
#define TEST_WITH(name, set_up, tear_down)                                                                             \
        static void name(void **state);                                                                                \
        __attribute__((constructor)) static void add_##name(void) {                                                    \
                static const struct CMUnitTest test = cmocka_unit_test_setup_teardown(name, set_up, tear_down);        \
                                                                                                                       \
                unit_add(&test);                                                                                       \
        }                                                                                                              \
        static void name(void **state _unused_)
#define TEST_GROUP(set_up, tear_down)                                                                                  \
        __attribute__((constructor)) static void add_group(void) {                                                     \
                unit_group(set_up, tear_down);                                                                         \
        }
