/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The score of a plan, and why a plan is better than another one. Pure. */

#include <stdbool.h>

/* A plan is better if the first member in which two scores differ is smaller. */
typedef struct Score {
        unsigned numa_nodes;     /* host NUMA nodes that the guest is on */
        unsigned off_node;       /* devices on other or unknown NUMA nodes, except NICs of GPUs */
        unsigned remote;         /* the devices of off_node whose node is known */
        unsigned worst_distance; /* the largest distance between a GPU and its NIC */
        unsigned total_distance; /* sum of the distances between GPUs and their NICs */
        unsigned nic_off_node;   /* NICs of GPUs on other or unknown NUMA nodes */
        unsigned gpu_distance;   /* sum of the distances between all GPUs */
        unsigned node_distance;  /* sum of the SLIT distances between all nodes of the guest */
        unsigned spoiled; /* if the request has no devices: free devices on the guest's nodes, which later guests will
                             miss */
        unsigned held; /* free devices of the IOMMU groups of chosen devices, which no other allocation can have then;
                          see below */
        unsigned left_over; /* physical devices that stay free or held on the switches of chosen physical devices, plus
                               those on their NUMA nodes: a device on such a switch counts twice */
        unsigned vf_load;   /* pairs of VFs on one PF that VfPlacement=spread wants to avoid; see below */
        unsigned vf_left;   /* VFs that stay free or held on the PFs of chosen VFs of pools with VfPlacement=pack */
        unsigned broken; /* sum of the sizes of the NVLink partitions that the plan breaks: partitions that are free as
                            a whole, larger than the chosen partition, and share a GPU with it */
} Score;

/*
 * A NIC belongs with its GPU, because the two exchange data by RDMA. So in a request with GPUs every NIC counts as the
 * NIC of a GPU, and its NUMA node is less important than its distance to the GPU.
 *
 * Score.held: In most groups a held device counts once: in IOMMU groups below one switch that have VFs of one PF only,
 * or that have all free VFs of each of their PFs. In any other group a held device counts once for each chosen device
 * of the group, and the chosen devices count for each other in the same way. The score of such a group cannot be
 * computed switch by switch; it only depends on the requested devices.
 *
 * Score.vf_load counts pairs of VFs on one PF: a chosen VF from a pool with VfPlacement=spread and a VF in use, or two
 * chosen VFs of which at least one is from such a pool. Pairs are counted because fewer pairs mean fewer VFs on the
 * fullest PF. A plain number of VFs in use on the chosen PFs would be smallest with all chosen VFs on one PF.
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
/* Returns the first member in which two scores differ; _SCORE_MEMBER_MAX: they are equal. */
ScoreMember score_difference(const Score *a, const Score *b);
/* Returns a sentence about the loser, which it calls "It": why it was not chosen. With equal scores, it says that the
 * loser is as good but has higher addresses or NUMA nodes. The caller frees. NULL: out of memory. */
char *score_explain(const Score *winner, const Score *loser);
