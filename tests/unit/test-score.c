/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "unit.h"

#include "model/locality.h"
#include "plan/score.h"
#include "sentences.h"
#include "util/strings.h"

TEST(test_score_order) {
        /* Each score is worse than the previous one in one member, and better in all later members. */
        const Score scores[] = {
                { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2 },
                { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0 }, { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0, 0 },
                { 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0, 0, 0 }, { 1, 1, 1, 1, 1, 1, 1, 1, 2, 0, 0, 0, 0 },
                { 1, 1, 1, 1, 1, 1, 1, 2, 0, 0, 0, 0, 0 }, { 1, 1, 1, 1, 1, 1, 2, 0, 0, 0, 0, 0, 0 },
                { 1, 1, 1, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0 }, { 1, 1, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0 },
                { 1, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, { 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
                { 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, { 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(scores); i++)
                for (size_t j = 0; j < ELEMENTSOF(scores); j++)
                        assert_int_equal(score_compare(&scores[i], &scores[j]), i < j ? -1 : i > j);
}

/* The first different member is the reason, regardless of later members. */
TEST(test_explanation) {
        static const struct {
                Score winner, loser;
                ScoreMember by;
        } cases[] = {
                { { .off_node = 0, .remote = 7 }, { .off_node = 2 }, SCORE_OFF_NODE },
                { { .worst_distance = DISTANCE_PIX, .total_distance = 9 },
                  { .worst_distance = DISTANCE_SYS },
                  SCORE_WORST_DISTANCE },
                { { .total_distance = 2, .gpu_distance = 4 },
                  { .total_distance = 2, .nic_off_node = 1 },
                  SCORE_NIC_OFF_NODE },
                { { .left_over = 1 }, { .left_over = 3 }, SCORE_LEFT_OVER },
                { { .numa_nodes = 1, .vf_left = 4 }, { .numa_nodes = 1, .vf_left = 4 }, _SCORE_MEMBER_MAX },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = score_explain(&cases[i].winner, &cases[i].loser);

                assert_int_equal(score_difference(&cases[i].winner, &cases[i].loser), cases[i].by);
                record("the other one", text);
        }
}

/* Each member has its own name, place and sentence. */
TEST(test_members) {
        assert_int_equal(sizeof(Score), _SCORE_MEMBER_MAX * sizeof(unsigned));
        for (ScoreMember m = 0; m < _SCORE_MEMBER_MAX; m++) {
                Score worse = { 0 };
                _cleanup_free_ char *text = NULL;

                ((unsigned *) &worse)[m] = 1;
                assert_int_equal(score_get(&worse, m), 1);
                assert_int_equal(score_difference(&worse, &(Score) { 0 }), m);
                assert_non_null(score_member_to_string(m));
                text = score_explain(&(Score) { 0 }, &worse);
                assert_non_null(strstr(text, m == SCORE_WORST_DISTANCE ? "PXB, not PIX." : "not 0."));
        }
        assert_null(score_member_to_string(_SCORE_MEMBER_MAX));
}

TEST(test_sentences) {
        assert_sentences("scores.txt");
}
