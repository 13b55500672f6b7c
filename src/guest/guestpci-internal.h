/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by guestpci*.c: a layout being made. */

#include "guest/guestpci.h"

/* Functions that share one guest slot: one VF, or all functions here of one host slot. */
typedef struct GuestCard {
        size_t first;   /* its first device in the allocation */
        size_t n;       /* functions */
        uint8_t lowest; /* host function that becomes function 0 */
        int cell;       /* -1: no guest cell is on its node */
        int group;      /* index of its expander, -1: pcie.0 */
        unsigned bus;   /* index of its port; 0 none yet */
        /* Where it is on the host: how much of its path names these; 0 none. */
        const char *path;
        size_t host;    /* host bridge */
        size_t port;    /* root port */
        size_t nearest; /* nearest switch */
} GuestCard;

/* An expander to be: all cards of one cell, or of one root complex and cell. */
typedef struct GuestGroup {
        int cell;
        const GuestCard *card; /* the first of a root complex; NULL: of a cell */
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

/* guestpci-tree.c: from cards to controllers; 0, -E2BIG or -ENOMEM. Sets bus of each card. */
int guest_layout_controllers(GuestLayout *l);
