/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The distance between two PCI functions, in the terms of nvidia-smi topo: the level at which the two devices meet in
 * the tree node > host bridge > root port > nearest switch. So the distance is an ultrametric, on which the planner
 * relies.
 */

#include "model/inventory.h"

typedef enum Distance {
        DISTANCE_PIX,  /* one switch or none between them, or on one card */
        DISTANCE_PXB,  /* several switches, below one root port */
        DISTANCE_PHB,  /* below one host bridge, but different root ports */
        DISTANCE_NODE, /* on one NUMA node, below different host bridges */
        DISTANCE_SYS,  /* on different or unknown NUMA nodes */
        _DISTANCE_MAX,
        _DISTANCE_INVALID = -22,
} Distance;
const char *distance_to_string(Distance d);

/* How near devices of a request must be to each other, as the largest allowed distance: a NIC to its GPU, or devices of
 * two pools. */
typedef enum Proximity {
        PROXIMITY_SWITCH,       /* PXB */
        PROXIMITY_ROOT_COMPLEX, /* PHB */
        PROXIMITY_NODE,         /* NODE */
        PROXIMITY_ANY,          /* SYS */
        _PROXIMITY_MAX,
        _PROXIMITY_INVALID = -22,
} Proximity;
const char *proximity_to_string(Proximity p);
Proximity proximity_from_string(const char *s);
bool proximity_allows(Proximity limit, Distance d);

/*
 * The position of a device. level[d], for each Distance except DISTANCE_SYS, is a number that is the same for all
 * devices within that distance: for example for those below one switch (DISTANCE_PIX) or on one NUMA node
 * (DISTANCE_NODE). The distance of two devices is the lowest level at which both have the same number.
 */
typedef struct Place {
        uint32_t level[_DISTANCE_MAX - 1];
} Place;

typedef struct Locality {
        Place *places; /* by index in the inventory */
        size_t n_places;
} Locality;

/* Computes the places of all devices of an inventory. 0 or -ENOMEM. */
int locality_new(const Inventory *inv, Locality **ret);
Locality *locality_free(Locality *l);
DEFINE_CLEANUP(Locality *, locality_free)

Distance place_distance(const Place *a, const Place *b);
