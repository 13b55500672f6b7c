/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The distance between two PCI functions, in the terms of nvidia-smi topo: the level at which the two devices meet in
 * the tree node > host bridge > root port > nearest switch. So the distance is an ultrametric, on which the planner
 * relies.
 */

#include "model/inventory.h"

typedef enum Distance {
        DISTANCE_PIX,  /* at most one switch between them, or functions of one card */
        DISTANCE_PXB,  /* several switches below one root port */
        DISTANCE_PHB,  /* below one host bridge */
        DISTANCE_NODE, /* on one NUMA node, below different host bridges */
        DISTANCE_SYS,  /* on different or unknown NUMA nodes */
        _DISTANCE_MAX,
        _DISTANCE_INVALID = -22,
} Distance;
const char *distance_to_string(Distance d);

/* The largest distance between a GPU and its NIC that a request accepts. */
typedef enum Proximity {
        PROXIMITY_SWITCH,       /* PIX, PXB */
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
 * The place of a device: one number per level; equal numbers mean the same place. level[DISTANCE_PIX] is the nearest
 * switch, level[DISTANCE_NODE] the NUMA node. The distance of two devices is the lowest level at which their numbers
 * are equal.
 */
typedef struct Place {
        uint32_t level[_DISTANCE_MAX - 1];
} Place;

typedef struct Locality {
        Place *places; /* one per inventory device */
        size_t n_places;
} Locality;

/* Computes the places of all devices. 0 or -ENOMEM. */
int locality_new(const Inventory *inv, Locality **ret);
Locality *locality_free(Locality *l);
DEFINE_CLEANUP(Locality *, locality_free)

Distance place_distance(const Place *a, const Place *b);
