/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a plan costs, and why one is better than another. Pure. */

#include <stdbool.h>

/* Compared member by member from the top; less is better. */
typedef struct Score {
        unsigned numa_nodes;     /* host nodes used */
        unsigned off_node;       /* devices, but for the NICs of GPUs, not on those nodes; unknown ones count */
        unsigned remote;         /* those of them that are known to be on other nodes */
        unsigned worst_distance; /* of the GPU-NIC pairs, a Distance */
        unsigned total_distance; /* of the GPU-NIC pairs */
        unsigned nic_off_node;   /* NICs of GPUs that are not on those nodes, unknown ones among them */
        unsigned gpu_distance;   /* over all pairs of GPUs */
        unsigned node_distance;  /* SLIT, over all pairs of nodes used */
        unsigned spoiled;        /* free devices on the nodes of a request that wants none */
        unsigned held;           /* free devices taken along only because they share a group; see below */
        unsigned left_over;      /* free physical devices left behind at the switches and nodes taken from */
        unsigned vf_load;        /* VFs in use on the PFs of the VFs taken from pools that spread, see below */
        unsigned vf_left;        /* free VFs left behind on the PFs that pools which pack take from */
} Score;

/*
 * A NIC belongs with its GPU, because the two exchange data by RDMA: in a request that has GPUs every NIC is the NIC of
 * a GPU, and where it is counts only after how far the two are apart.
 *
 * Score.held counts a device once, and not when it is itself chosen, as long as its group is below one switch and has
 * either VFs of one PF only, or of each PF all free VFs. In any other group it counts once for each chosen device, and
 * chosen ones count for each other: that does not add up over switches, and is at least the same whenever the same is
 * asked.
 *
 * Score.vf_load counts for each VF of a pool with VfPlacement=spread the VFs of its PF that are in use, and two that
 * are taken of one PF count once for each other, when one of them is of such a pool.
 */

typedef enum ScoreMember {
        SCORE_NUMA_NODES,
        SCORE_OFF_NODE,
        SCORE_REMOTE,
        SCORE_WORST_DISTANCE,
        SCORE_TOTAL_DISTANCE,
        SCORE_NIC_OFF_NODE,
        SCORE_GPU_DISTANCE,
        SCORE_NODE_DISTANCE,
        SCORE_SPOILED,
        SCORE_HELD,
        SCORE_LEFT_OVER,
        SCORE_VF_LOAD,
        SCORE_VF_LEFT,
        _SCORE_MEMBER_MAX,
} ScoreMember;
const char *score_member_to_string(ScoreMember m);
unsigned score_get(const Score *s, ScoreMember m);

int score_compare(const Score *a, const Score *b);
/* The first member in which they differ, or _SCORE_MEMBER_MAX. */
ScoreMember score_difference(const Score *a, const Score *b);
/* Why the loser is no better than the winner, a sentence. NULL: out of memory. */
char *score_explain(const Score *winner, const Score *loser);
