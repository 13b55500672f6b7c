/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "unit.h"

#include "plan/proximity.h"
#include "sentences.h"
#include "util/strings.h"

static void assert_limit(const Request *r, size_t i, const char *expected) {
        _cleanup_free_ char *text = request_limit_format(&r->limits[i]);

        assert_string_equal(text, expected);
}

TEST(test_parse) {
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

TEST(test_problems) {
        static const char *const cases[] = {
                "near",          "",          "node,",    ",node", "gpu:disk", "gpu=node", "gpu=disk:node",
                "gpu:disk=near", "gpu:disk=", "node,any",
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_request_ Request r;
                _cleanup_refusal_ Refusal why = { 0 };

                request_init(&r);
                assert_int_equal(proximity_parse(cases[i], &r, &why), VERDICT_INVALID_REQUEST);
                record(cases[i], why.message);
        }
}

TEST(test_check) {
        static const struct {
                const char *text;
                bool refused;
        } cases[] = {
                { "gpu:vf=node", false },           { "gpu:gpu=node,gpu:vf=switch,vf:vf=any", false },
                { "gpu:disk=node", true },          { ":gpu=node", true },
                { "gpu:vf:x=node", true },          { "gpu:vf=node,gpu:vf=any", true },
                { "vf:gpu=node,gpu:vf=any", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_request_ Request r;
                _cleanup_refusal_ Refusal why = { 0 };

                request_init(&r);
                assert_int_equal(request_add_pool(&r, "gpu", 2), 0);
                assert_int_equal(request_add_pool(&r, "vf", 2), 0);
                assert_int_equal(proximity_parse(cases[i].text, &r, NULL), VERDICT_NONE);
                assert_int_equal(request_check(&r, &why), cases[i].refused ? VERDICT_INVALID_REQUEST : VERDICT_NONE);
                if (cases[i].refused)
                        record(cases[i].text, why.message);
        }
}

TEST(test_bounds) {
        _cleanup_request_ Request r;
        _cleanup_refusal_ Refusal why = { 0 };

        request_init(&r);
        for (unsigned i = 0; i < REQUEST_LIMITS_MAX; i++)
                assert_int_equal(proximity_parse("a:b=node", &r, NULL), VERDICT_NONE);
        assert_int_equal(proximity_parse("a:b=node", &r, &why), VERDICT_INVALID_REQUEST);
        record("33 pairs of pools", why.message);
}

TEST(test_sentences) {
        assert_sentences("proximity.txt");
}
