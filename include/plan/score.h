/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The score of a plan, and why one plan is better than another. Pure. */

#include <stdbool.h>

/* Compared member by member from the top; less is better. */
typedef struct Score {
        unsigned numa_nodes;     /* host nodes used */
        unsigned off_node;       /* devices on other or unknown nodes, except the NICs of GPUs */
        unsigned remote;         /* devices of off_node that are on a known node */
        unsigned worst_distance; /* Distance of the farthest GPU-NIC pair */
        unsigned total_distance; /* sum of distances over the GPU-NIC pairs */
        unsigned nic_off_node;   /* NICs of GPUs on other or unknown nodes */
        unsigned gpu_distance;   /* sum of distances over all pairs of GPUs */
        unsigned node_distance;  /* sum of SLIT distances over all pairs of nodes used */
        unsigned spoiled;        /* free devices on the nodes used, when the request has no devices */
        unsigned held;           /* free devices held only because they share an IOMMU group; see below */
        unsigned left_over; /* physical devices left free or held on the switches of chosen physical devices, plus those
                               on their nodes: a device on such a switch counts twice */
        unsigned vf_load;   /* pairs of VFs on one PF that VfPlacement=spread is to avoid; see below */
        unsigned vf_left;   /* VFs left free or held on the PFs of VFs from pools that pack */
        unsigned broken;    /* sum of the GPUs of larger NVLink partitions that are whole and have a chosen GPU */
} Score;

/*
 * A NIC belongs with its GPU, because the two exchange data by RDMA. In a request with GPUs every NIC therefore counts
 * as the NIC of a GPU, and its NUMA node counts only after its distance to the GPU.
 *
 * Score.held counts a held device once, if its IOMMU group is below one switch and contains either VFs of one PF only,
 * or all free VFs of each of its PFs. In any other group the device counts once for each chosen device of the group,
 * and chosen devices count for each other. That sum cannot be split by switch; it is the same whenever the same devices
 * are requested.
 *
 * Score.vf_load counts pairs of VFs on one PF: a chosen VF from a pool with VfPlacement=spread and a VF in use, or two
 * chosen VFs of which at least one is from such a pool. These are pairs, because fewer of them mean fewer VFs on the
 * fullest PF; the number of VFs in use on the chosen PFs would be smallest when all chosen VFs are on one PF.
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
        SCORE_BROKEN,
        _SCORE_MEMBER_MAX,
} ScoreMember;
const char *score_member_to_string(ScoreMember m);
unsigned score_get(const Score *s, ScoreMember m);

int score_compare(const Score *a, const Score *b);
/* The first member in which a and b differ, or _SCORE_MEMBER_MAX. */
ScoreMember score_difference(const Score *a, const Score *b);
/* A sentence that says why winner is better than loser. The caller frees. NULL: out of memory. */
char *score_explain(const Score *winner, const Score *loser);
