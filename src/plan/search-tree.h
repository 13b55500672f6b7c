/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The candidates of a request as leaves of the tree the search walks; only the search includes it. */

#include "search.h"

/* From the leaves up. */
typedef enum Level {
        LEVEL_GROUP,   /* VFs of one PF in one IOMMU group; or alike ones, each in a group of its own */
        LEVEL_FAMILY,  /* VFs of one PF; any other device on its own */
        LEVEL_CLUSTER, /* whole families in one IOMMU group */
        LEVEL_SWITCH,  /* DISTANCE_PIX, and so on to DISTANCE_NODE */
        LEVEL_ALL = LEVEL_SWITCH + DISTANCE_SYS,
} Level;

/* A free device that a pool of the request has, or that is merely left behind where others are taken. */
typedef struct Leaf {
        uint32_t at[LEVEL_ALL]; /* leaves with equal numbers on one level and all above share a place */
        uint32_t device;        /* inventory index */
        bool is_wanted;         /* by a pool of the request, not merely left behind */
        uint8_t pool;           /* that one */
        unsigned wanted;        /* by its pool */
        Level group_level;      /* where the devices held for its group are counted; LEVEL_ALL: for each device */
        uint32_t group_free;    /* free devices of its group */
        unsigned load;          /* VFs in use on its PF */
        unsigned spare;         /* free VFs of its PF */
        unsigned more;          /* VFs of its PF like this one that are no leaves: the wanted number is without them */
        uint8_t node;           /* search_node() */
        bool is_vf;
} Leaf;

/*
 * Sorted, such that each place is a range. Of VFs of one PF that are alike but for the address no more are leaves than
 * are wanted, those with the lowest addresses.
 */
int leaves_make(const HostView *c, const SearchPool *pools, size_t n_pools, const bool *is_free, Leaf **ret,
                size_t *ret_n);
