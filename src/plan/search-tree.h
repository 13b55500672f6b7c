/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The candidates of a request as leaves of the tree that the search walks. Only the search includes this header. */

#include "search.h"

/* From the leaves up. */
typedef enum Level {
        LEVEL_GROUP,   /* VFs of one PF in one IOMMU group; or interchangeable VFs, each alone in its group */
        LEVEL_FAMILY,  /* VFs of one PF; or one device that is no VF */
        LEVEL_CLUSTER, /* complete families in one IOMMU group */
        LEVEL_SWITCH,  /* DISTANCE_PIX, and so on to DISTANCE_NODE */
        LEVEL_ALL = LEVEL_SWITCH + DISTANCE_SYS,
} Level;

/* A free device that a pool of the request has, or that only counts in Score.left_over. */
typedef struct Leaf {
        uint32_t at[LEVEL_ALL]; /* leaves with equal numbers on a level and on all levels above are in one place */
        uint32_t device;        /* inventory index */
        bool is_wanted;         /* a pool of the request has it */
        bool is_fabric;         /* this pool has Fabric=yes: search_narrow() decides on is_wanted */
        uint8_t pool;           /* index of that pool */
        Level group_level;      /* level at which held members of its group are counted; LEVEL_ALL: for each device */
        uint32_t group_free;    /* free devices in its group */
        unsigned load;          /* VFs in use on its PF */
        unsigned spare;         /* free VFs of its PF */
        unsigned more;          /* interchangeable VFs of its PF that are not leaves themselves */
        uint8_t node;           /* search_node() */
        bool is_vf;
        bool is_required; /* in each choice */
} Leaf;

/*
 * The leaves are sorted so that each place is a range. Of interchangeable VFs of one PF, only as many become leaves as
 * the request wants, those with the lowest addresses. 0 or -ENOMEM; the caller frees *ret.
 */
int leaves_make(const HostView *view, const SearchPool *pools, size_t n_pools, const bool *is_free,
                const bool *is_required, Leaf **ret, size_t *ret_n);
