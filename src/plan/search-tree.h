/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The candidates of a request as leaves of the search's tree. Only the search includes this header. */

#include "search.h"

/* The levels of the tree, from the leaves up. The comment of a level says what one of its places has. */
typedef enum Level {
        LEVEL_GROUP,   /* VFs of one PF in one IOMMU group; or interchangeable VFs, each the only free device of its
                          group; or one device */
        LEVEL_FAMILY,  /* VFs of one PF, or one device that is no VF */
        LEVEL_CLUSTER, /* complete families in one IOMMU group; or one family */
        LEVEL_SWITCH,  /* a switch (DISTANCE_PIX); the levels above are the distances up to DISTANCE_NODE */
        LEVEL_ALL = LEVEL_SWITCH + DISTANCE_SYS,
} Level;

/* A free device that a pool of the request has, or that only counts in Score.left_over. */
typedef struct Leaf {
        uint32_t at[LEVEL_ALL]; /* by level, the number of the leaf's place */
        uint32_t device;        /* inventory index */
        bool is_wanted;         /* a pool of the request has the device */
        bool is_fabric;         /* the pool has Fabric=yes: search_narrow() sets is_wanted */
        uint8_t pool;           /* index of the pool */
        Level group_level;      /* level at which Score.held of its IOMMU group is counted; LEVEL_ALL: at each device */
        uint32_t group_free;    /* free devices in its IOMMU group */
        unsigned load;          /* VFs of its PF that are allocated */
        unsigned spare;         /* VFs of its PF that are free */
        unsigned more;          /* of the first of several interchangeable VFs: how many of them have no leaf */
        uint8_t node;           /* NUMA node, by search_node() */
        bool is_vf;
        bool is_required; /* the request names the device, so each choice has it */
} Leaf;

/*
 * Makes the leaves, sorted so that each place is a range. Of interchangeable VFs of one PF, only those with the lowest
 * addresses become leaves, as many as the request wants of their pool. Returns 0 or -ENOMEM. The caller frees *ret.
 */
int leaves_make(const HostView *view, const SearchPool *pools, size_t n_pools, const bool *is_free,
                const bool *is_required, Leaf **ret, size_t *ret_n);
