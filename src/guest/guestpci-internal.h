/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A layout in the making, which the files guestpci*.c share. */

#include "guest/guestpci.h"

/* Functions in one slot of the guest: a VF, or all allocated functions of a slot of the host. */
typedef struct GuestCard {
        size_t first;   /* index of its first device in Allocation.devices */
        size_t n;       /* number of its functions */
        uint8_t lowest; /* lowest function number on the host, which is function 0 in the guest */
        int cell;       /* guest cell of its NUMA node; -1: none */
        int group;      /* index of the GuestGroup with its expander; -1: on pcie.0 */
        unsigned bus;   /* index of the port above it; 0: none yet */
        /* Its path in sysfs, and the lengths of the parts of the path that end with a bridge; 0: no such bridge. */
        const char *path;
        size_t host;    /* ends with the host bridge */
        size_t port;    /* ends with the root port */
        size_t nearest; /* ends with the nearest switch */
} GuestCard;

/* Cards below one expander: those of one cell; in mirror mode those of one cell and one root complex. */
typedef struct GuestGroup {
        int cell;
        const GuestCard *card; /* the first card of the group; in mirror mode its root complex is that of the group */
} GuestGroup;

typedef struct GuestLayout {
        const Allocation *a;
        const GuestPciRoom *room;
        GuestCard cards[GUEST_CARDS_MAX];
        size_t n_cards;
        GuestGroup groups[GUEST_EXPANDERS_MAX];
        size_t n_groups;
        GuestPci *pci;
} GuestLayout;

/* guestpci-tree.c: makes the controllers, and sets the bus of each card. Returns 0, -E2BIG or -ENOMEM. */
int guest_layout_controllers(GuestLayout *l);
