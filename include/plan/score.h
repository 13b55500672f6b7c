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
        unsigned left_over; /* free physical devices that stay unused on the switches and nodes of chosen devices */
        unsigned vf_load;   /* VFs in use on the PFs of VFs from pools with VfPlacement=spread; see below */
        unsigned vf_left;   /* free VFs that stay unused on the PFs of VFs from pools that pack */
        unsigned broken;    /* GPUs of larger NVLink partitions that are whole and of which GPUs are chosen */
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
 * Score.vf_load counts, for each VF from a pool with VfPlacement=spread, the VFs in use on its PF. Two chosen VFs of
 * one PF count once for each other when at least one of them is from such a pool.
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
