/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The answers after which an endpoint is down or up. */

#include <stdlib.h>

#include "unit.h"

#include "model/endpoint-status.h"
#include "util/cleanup.h"

/* A letter is an answer: ? unknown, + accepts, - refuses. Then the states after each answer: ? unknown, + up, -
 * down. */
static const struct {
        const char *answers, *states;
} cases[] = {
        { "????", "????" },
        { "+", "+" },
        { "?+?", "?++" },
        { "-", "-" }, /* an endpoint that never answered is down at once */
        { "?-?", "?--" },
        { "+-", "++" },
        { "+--", "++-" },
        { "+-+-+-", "++++++" },
        { "+-?-", "+++-" }, /* an unknown answer neither counts nor resets the count */
        { "+-???", "+++++" },
        { "+--+", "++-+" },
        { "-+-", "-++" },
        { "-+--+", "-++-+" },
        { "--?--+-?-", "-----+++-" },
};

static EndpointAnswer answer_of(char c) {
        return c == '?' ? ENDPOINT_UNKNOWN : c == '+' ? ENDPOINT_ACCEPTS : ENDPOINT_REFUSES;
}

static EndpointState state_of(char c) {
        return c == '?' ? ENDPOINT_STATE_UNKNOWN : c == '+' ? ENDPOINT_STATE_UP : ENDPOINT_STATE_DOWN;
}

TEST(test_states) {
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                EndpointStatusTable t = { 0 };

                assert_int_equal(endpoint_status_add(&t, "a:1"), 0);
                for (size_t k = 0; cases[i].answers[k]; k++) {
                        EndpointState before = endpoint_status_state(&t, "a:1");
                        bool changed = endpoint_status_take(&t.endpoints[0], answer_of(cases[i].answers[k]));

                        if (endpoint_status_state(&t, "a:1") != state_of(cases[i].states[k]))
                                fail_msg("'%s': answer %zu", cases[i].answers, k);
                        assert_int_equal(changed, before != state_of(cases[i].states[k]));
                        assert_int_equal(endpoint_status_reason(&t, "a:1") != NULL, cases[i].states[k] == '-');
                }
                endpoint_status_table_done(&t);
        }
}

/* Each kind of failure counts. The reason is that of the last failure. */
TEST(test_reasons) {
        const char *reasons[_ENDPOINT_ANSWER_MAX] = { 0 };
        EndpointStatusTable t = { 0 };

        assert_int_equal(endpoint_status_add(&t, "a:1"), 0);
        for (EndpointAnswer a = ENDPOINT_REFUSES; a < _ENDPOINT_ANSWER_MAX; a++) {
                (void) endpoint_status_take(&t.endpoints[0], a);
                reasons[a] = endpoint_status_reason(&t, "a:1");
                assert_non_null(reasons[a]);
                for (EndpointAnswer b = ENDPOINT_REFUSES; b < a; b++)
                        assert_string_not_equal(reasons[a], reasons[b]);
        }
        endpoint_status_table_done(&t);
}

TEST(test_table) {
        EndpointStatusTable t = { 0 };

        assert_int_equal(endpoint_status_state(NULL, "a:1"), ENDPOINT_STATE_UNKNOWN);
        assert_null(endpoint_status_reason(NULL, "a:1"));
        assert_null(endpoint_status_find(&t, "a:1"));
        assert_int_equal(endpoint_status_add(&t, "a:1"), 0);
        assert_int_equal(endpoint_status_add(&t, "b:1"), 0);
        assert_true(endpoint_status_take(&t.endpoints[1], ENDPOINT_SILENT));
        assert_int_equal(endpoint_status_add(&t, "b:1"), 0);
        assert_int_equal(t.n, 2);
        assert_int_equal(endpoint_status_state(&t, "a:1"), ENDPOINT_STATE_UNKNOWN);
        assert_int_equal(endpoint_status_state(&t, "b:1"), ENDPOINT_STATE_DOWN);
        assert_int_equal(endpoint_status_state(&t, "c:1"), ENDPOINT_STATE_UNKNOWN);
        assert_string_equal(endpoint_state_to_string(ENDPOINT_STATE_DOWN), "down");
        endpoint_status_table_done(&t);
        assert_int_equal(t.n, 0);
}
