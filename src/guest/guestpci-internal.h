/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Interfaces between the files guestpci*.c: a layout in the making. */

#include "guest/guestpci.h"

/* The functions that share one guest slot: one VF, or all allocated functions of one host slot. */
typedef struct GuestCard {
        size_t first;   /* index of its first device in the allocation */
        size_t n;       /* number of its functions */
        uint8_t lowest; /* lowest host function, which becomes function 0 */
        int cell;       /* guest cell of its NUMA node; -1: none */
        int group;      /* index of its expander; -1: on pcie.0 */
        unsigned bus;   /* index of its port; 0: none yet */
        /* Its sysfs path on the host. Then the length of the path up to a bridge; 0: there is none. */
        const char *path;
        size_t host;    /* host bridge */
        size_t port;    /* root port */
        size_t nearest; /* nearest switch */
} GuestCard;

/* The cards behind one expander: those of one cell, in mirror mode of one cell and root complex. */
typedef struct GuestGroup {
        int cell;
        const GuestCard *card; /* the first card of the root complex; NULL: all cards of the cell */
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

/* guestpci-tree.c: makes the controllers and sets the bus of each card. Returns 0, -E2BIG or -ENOMEM. */
int guest_layout_controllers(GuestLayout *l);
