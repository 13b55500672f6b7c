/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "plan/score.h"

#include <errno.h>

#include "model/locality.h"
#include "util/strings.h"
#include "util/stringtable.h"

static const char *const score_member_table[_SCORE_MEMBER_MAX] = {
        [SCORE_NUMA_NODES] = "numa_nodes",
        [SCORE_OFF_NODE] = "off_node",
        [SCORE_REMOTE] = "remote",
        [SCORE_WORST_DISTANCE] = "worst_distance",
        [SCORE_TOTAL_DISTANCE] = "total_distance",
        [SCORE_NIC_OFF_NODE] = "nic_off_node",
        [SCORE_GPU_DISTANCE] = "gpu_distance",
        [SCORE_NODE_DISTANCE] = "node_distance",
        [SCORE_SPOILED] = "spoiled",
        [SCORE_HELD] = "held",
        [SCORE_LEFT_OVER] = "left_over",
        [SCORE_VF_LOAD] = "vf_load",
        [SCORE_VF_LEFT] = "vf_left",
        [SCORE_BROKEN] = "broken",
};
DEFINE_STRING_TABLE_TO_STRING(score_member, ScoreMember, _SCORE_MEMBER_MAX)

unsigned score_get(const Score *s, ScoreMember m) {
        const unsigned members[] = {
                [SCORE_NUMA_NODES] = s->numa_nodes,
                [SCORE_OFF_NODE] = s->off_node,
                [SCORE_REMOTE] = s->remote,
                [SCORE_WORST_DISTANCE] = s->worst_distance,
                [SCORE_TOTAL_DISTANCE] = s->total_distance,
                [SCORE_NIC_OFF_NODE] = s->nic_off_node,
                [SCORE_GPU_DISTANCE] = s->gpu_distance,
                [SCORE_NODE_DISTANCE] = s->node_distance,
                [SCORE_SPOILED] = s->spoiled,
                [SCORE_HELD] = s->held,
                [SCORE_LEFT_OVER] = s->left_over,
                [SCORE_VF_LOAD] = s->vf_load,
                [SCORE_VF_LEFT] = s->vf_left,
                [SCORE_BROKEN] = s->broken,
        };

        return members[m];
}

ScoreMember score_difference(const Score *a, const Score *b) {
        ScoreMember m = 0;

        while (m < _SCORE_MEMBER_MAX && score_get(a, m) == score_get(b, m))
                m++;
        return m;
}

int score_compare(const Score *a, const Score *b) {
        ScoreMember m = score_difference(a, b);

        if (m == _SCORE_MEMBER_MAX)
                return 0;
        return score_get(a, m) < score_get(b, m) ? -1 : 1;
}

/* A sentence has `before`, the loser's number, `after`, and the winner's number. */
static const struct {
        const char *before, *after;
} reasons[_SCORE_MEMBER_MAX] = {
        [SCORE_NUMA_NODES] = { "It takes ", " NUMA nodes" },
        [SCORE_OFF_NODE] = { "It has ", " devices that are not on its NUMA nodes" },
        [SCORE_REMOTE] = { "It has ", " devices that are known to be on other NUMA nodes" },
        [SCORE_WORST_DISTANCE] = { "Its farthest pair of a GPU and a NIC is at ", "" },
        [SCORE_TOTAL_DISTANCE] = { "Between its GPUs and their NICs are ", " steps in all" },
        [SCORE_NIC_OFF_NODE] = { "It has ", " NICs of GPUs that are not on its NUMA nodes" },
        [SCORE_GPU_DISTANCE] = { "Among its GPUs are ", " steps in all" },
        [SCORE_NODE_DISTANCE] = { "Among its NUMA nodes is a distance of ", " in all" },
        [SCORE_SPOILED] = { "On its NUMA nodes are ", " free devices" },
        [SCORE_HELD] = { "The free devices in its IOMMU groups count ", "" },
        [SCORE_LEFT_OVER] = { "On its switches plus its NUMA nodes are ", " devices left free or held" },
        [SCORE_VF_LOAD] = { "It has ", " pairs of VFs on one PF" },
        [SCORE_VF_LEFT] = { "On its PFs are ", " VFs left free or held" },
        [SCORE_BROKEN] = { "The whole NVLink partitions that it breaks have, added up, ", " GPUs" },
};

char *score_explain(const Score *winner, const Score *loser) {
        ScoreMember m = score_difference(winner, loser);

        if (m == _SCORE_MEMBER_MAX)
                return string_format("It is as good, but has higher addresses or NUMA nodes.");
        if (m == SCORE_WORST_DISTANCE)
                return string_format("%s%s, not %s.", reasons[m].before,
                                     distance_to_string((Distance) loser->worst_distance),
                                     distance_to_string((Distance) winner->worst_distance));
        return string_format("%s%u%s, not %u.", reasons[m].before, score_get(loser, m), reasons[m].after,
                             score_get(winner, m));
}
