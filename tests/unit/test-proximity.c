/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/proximity.h"
#include "util/strings.h"

static void assert_limit(const Request *r, size_t i, const char *expected) {
        _cleanup_free_ char *text = request_limit_format(&r->limits[i]);

        assert_string_equal(text, expected);
}

static void test_parse(void **state) {
        _cleanup_request_ Request r;

        request_init(&r);
        assert_int_equal(proximity_parse("switch", &r, NULL), VERDICT_NONE);
        assert_int_equal(r.proximity, PROXIMITY_SWITCH);
        assert_int_equal(r.n_limits, 0);
        assert_int_equal(proximity_parse("gpu:disk=node,root-complex,gpu:gpu=any", &r, NULL), VERDICT_NONE);
        assert_int_equal(r.proximity, PROXIMITY_ROOT_COMPLEX);
        assert_int_equal(r.n_limits, 2);
        assert_limit(&r, 0, "gpu:disk=node");
        assert_limit(&r, 1, "gpu:gpu=any");
}

static void test_problems(void **state) {
        static const char *const cases[][2] = {
                { "near", "There is no proximity 'near'." },
                { "", "There is no proximity ''." },
                { "node,", "There is no proximity ''." },
                { ",node", "There is no proximity ''." },
                { "gpu:disk", "There is no proximity 'gpu:disk'." },
                { "gpu=node", "There is no proximity 'gpu=node'." },
                { "gpu=disk:node", "There is no proximity 'gpu=disk:node'." },
                { "gpu:disk=near", "There is no proximity 'gpu:disk=near'." },
                { "gpu:disk=", "There is no proximity 'gpu:disk='." },
                { "node,any", "There is more than one proximity of GPUs and NICs." },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_request_ Request r;
                _cleanup_refusal_ Refusal why = { 0 };

                request_init(&r);
                assert_int_equal(proximity_parse(cases[i][0], &r, &why), VERDICT_INVALID_REQUEST);
                assert_string_equal(why.message, cases[i][1]);
        }
}

static void test_check(void **state) {
        static const char *const cases[][2] = {
                { "gpu:vf=node", NULL },
                { "gpu:gpu=node,gpu:vf=switch,vf:vf=any", NULL },
                { "gpu:disk=node", "The proximity of pool 'disk' is limited, but none of its devices is wanted." },
                { ":gpu=node", "The proximity of pool '' is limited, but none of its devices is wanted." },
                { "gpu:vf:x=node", "The proximity of pool 'vf:x' is limited, but none of its devices is wanted." },
                { "gpu:vf=node,gpu:vf=any", "There is more than one proximity of the pools 'gpu' and 'vf'." },
                { "vf:gpu=node,gpu:vf=any", "There is more than one proximity of the pools 'gpu' and 'vf'." },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_request_ Request r;
                _cleanup_refusal_ Refusal why = { 0 };

                request_init(&r);
                assert_int_equal(request_add_pool(&r, "gpu", 2), 0);
                assert_int_equal(request_add_pool(&r, "vf", 2), 0);
                assert_int_equal(proximity_parse(cases[i][0], &r, NULL), VERDICT_NONE);
                assert_int_equal(request_check(&r, &why), cases[i][1] ? VERDICT_INVALID_REQUEST : VERDICT_NONE);
                if (cases[i][1])
                        assert_string_equal(why.message, cases[i][1]);
        }
}

static void test_bounds(void **state) {
        _cleanup_request_ Request r;
        _cleanup_refusal_ Refusal why = { 0 };

        request_init(&r);
        for (unsigned i = 0; i < REQUEST_LIMITS_MAX; i++)
                assert_int_equal(proximity_parse("a:b=node", &r, NULL), VERDICT_NONE);
        assert_int_equal(proximity_parse("a:b=node", &r, &why), VERDICT_INVALID_REQUEST);
        assert_string_equal(why.message, "A request can limit the proximity of at most 32 pairs of pools.");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_problems),
                cmocka_unit_test(test_check),
                cmocka_unit_test(test_bounds),
        };

        return cmocka_run_group_tests_name("proximity", tests, NULL, NULL);
}
