/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Builds the guest's PCI tree of expanders, ports and switches, and numbers its buses. */

#include <errno.h>

#include "guestpci-internal.h"

#define SLOTS_MAX     32U
#define FUNCTIONS_MAX 8U

static bool is_mirror(const GuestLayout *l) {
        return l->a->topology == GUEST_TOPOLOGY_MIRROR;
}

/* Returns true when the first a_length bytes of the path of `a` and the first b_length bytes of that of `b` name the
 * same bridge. A length of 0 names no bridge. */
static bool same_place(const GuestCard *a, size_t a_length, const GuestCard *b, size_t b_length) {
        return a_length > 0 && a_length == b_length && memcmp(a->path, b->path, a_length) == 0;
}

static bool same_host(const GuestCard *a, const GuestCard *b) {
        return same_place(a, a->host, b, b->host) || (a->host == 0 && b->host == 0);
}

/* Returns true when both cards are in one group, and below switches of one root port of the host. */
static bool same_tree(const GuestCard *a, const GuestCard *b) {
        return a->group == b->group && a->nearest > 0 && b->nearest > 0 && same_place(a, a->port, b, b->port);
}

static bool same_switch(const GuestCard *a, const GuestCard *b) {
        return same_place(a, a->nearest, b, b->nearest);
}

static int find_group(const GuestLayout *l, const GuestCard *card) {
        for (size_t i = 0; i < l->n_groups; i++)
                if (l->groups[i].cell == card->cell && (!is_mirror(l) || same_host(l->groups[i].card, card)))
                        return (int) i;
        return -1;
}

static int join_group(GuestLayout *l, GuestCard *card) {
        card->group = find_group(l, card);
        if (card->group >= 0)
                return 0;
        if (l->n_groups == ELEMENTSOF(l->groups))
                return -E2BIG;
        card->group = (int) l->n_groups;
        l->groups[l->n_groups++] = (GuestGroup) { .cell = card->cell, .card = card };
        return 0;
}

/* Makes the groups in the order of the expanders: by guest cell or, in mirror mode, by the first card in the
 * allocation. */
static int make_groups(GuestLayout *l) {
        for (int cell = 0; cell < (int) l->a->n_cells; cell++)
                for (size_t i = 0; i < l->n_cards; i++) {
                        GuestCard *card = &l->cards[i];
                        bool joins = is_mirror(l) ? cell == 0 && card->cell >= 0 : card->cell == cell;
                        int r = joins ? join_group(l, card) : 0;

                        if (r < 0)
                                return r;
                }
        return 0;
}

/* Adds a controller. Returns its index, or -E2BIG. */
static int add_controller(GuestLayout *l, GuestControllerType type, unsigned bus, int cell) {
        unsigned index = l->room->first_index + (unsigned) l->pci->n_controllers;

        if (index >= GUEST_BUSES_MAX)
                return -E2BIG;
        l->pci->controllers[l->pci->n_controllers++] =
                (GuestController) { .type = type, .index = index, .cell = cell, .bus = bus };
        return (int) index;
}

static int plug(GuestLayout *l, GuestCard *card, GuestControllerType type, unsigned bus) {
        int port = add_controller(l, type, bus, card->cell);

        if (port >= 0)
                card->bus = (unsigned) port;
        return MIN(port, 0);
}

/* Adds a port, and a switch below it. Returns the index of the switch, or -E2BIG. */
static int add_switch(GuestLayout *l, GuestControllerType port, unsigned bus, int cell) {
        int below = add_controller(l, port, bus, cell);

        return below < 0 ? below : add_controller(l, GUEST_UPSTREAM_PORT, (unsigned) below, cell);
}

/* Returns true when all other cards of the group below the card's root port on the host are at the card's switch, or
 * below that switch. */
static bool is_at_top(const GuestLayout *l, const GuestCard *card) {
        for (size_t i = 0; i < l->n_cards; i++) {
                const GuestCard *other = &l->cards[i];

                if (same_tree(card, other) &&
                    (other->nearest < card->nearest || memcmp(other->path, card->path, card->nearest) != 0))
                        return false;
        }
        return true;
}

/* Adds a lower switch, and plugs into it the cards of the group that are at the host switch of `first`. 0 or -E2BIG. */
static int plug_lower_switch(GuestLayout *l, const GuestCard *first, unsigned top) {
        int below = add_switch(l, GUEST_DOWNSTREAM_PORT, top, first->cell), r = MIN(below, 0);

        for (size_t i = 0; r == 0 && i < l->n_cards; i++)
                if (same_tree(first, &l->cards[i]) && same_switch(first, &l->cards[i]))
                        r = plug(l, &l->cards[i], GUEST_DOWNSTREAM_PORT, (unsigned) below);
        return r;
}

/* Plugs `first`, and all cards of its group that are below switches of the same root port of the host. Two levels of
 * switches are enough for all distances. 0 or -E2BIG. */
static int plug_tree(GuestLayout *l, const GuestCard *first, unsigned bus) {
        int top = add_switch(l, GUEST_ROOT_PORT, bus, first->cell), r = MIN(top, 0);

        if (r < 0)
                return r;
        for (size_t i = 0; i < l->n_cards; i++) {
                GuestCard *card = &l->cards[i];

                if (card->bus > 0 || !same_tree(first, card))
                        continue;
                if (is_at_top(l, card))
                        r = plug(l, card, GUEST_DOWNSTREAM_PORT, (unsigned) top);
                else
                        r = plug_lower_switch(l, card, (unsigned) top);
                if (r < 0)
                        return r;
        }
        return r;
}

static bool shares_switch(const GuestLayout *l, const GuestCard *card) {
        for (size_t i = 0; is_mirror(l) && i < l->n_cards; i++)
                if (&l->cards[i] != card && same_tree(&l->cards[i], card))
                        return true;
        return false;
}

/* Plugs the cards of a group below the controller `bus`. Group -1 has the cards on pcie.0. 0 or -E2BIG. */
static int plug_group(GuestLayout *l, int group, unsigned bus) {
        int r = 0;

        for (size_t i = 0; i < l->n_cards; i++) {
                GuestCard *card = &l->cards[i];

                if (card->group != group || card->bus > 0)
                        continue;
                if (shares_switch(l, card))
                        r = plug_tree(l, card, bus);
                else
                        r = plug(l, card, GUEST_ROOT_PORT, bus);
                if (r < 0)
                        return r;
        }
        return r;
}

static int plug_all(GuestLayout *l) {
        int r = 0;

        for (size_t i = 0; r == 0 && i < l->n_groups; i++) {
                int expander = add_controller(l, GUEST_EXPANDER_BUS, 0, l->groups[i].cell);

                r = expander < 0 ? expander : plug_group(l, (int) i, (unsigned) expander);
        }
        return r ?: plug_group(l, -1, 0);
}

/* Adds the spare ports. They come after all other controllers, so that no address of a device depends on them. The
 * spare ports of pcie.0 come before those of expanders, because libvirt looks for a free port there first. */
static int add_spares(GuestLayout *l) {
        unsigned n = l->a->spare_ports;
        int r = 0;

        l->pci->n_used = l->pci->n_controllers;
        for (unsigned i = 0; n > 0 && r >= 0 && i < n + l->room->seekers; i++)
                r = add_controller(l, GUEST_ROOT_PORT, 0, -1);
        for (size_t i = 0; i < l->pci->n_used; i++) {
                const GuestController *c = &l->pci->controllers[i];

                for (unsigned j = 0; c->type == GUEST_EXPANDER_BUS && r >= 0 && j < n; j++)
                        r = add_controller(l, GUEST_ROOT_PORT, c->index, c->cell);
        }
        return MIN(r, 0);
}

/* Gives slots to the controllers below parent, in the order in which they were made. If there are too few slots,
 * several controllers are functions of one slot. */
static int place_children(GuestPci *pci, const GuestController *parent) {
        unsigned n = 0, per_slot, at = 0;

        for (size_t i = 0; i < pci->n_controllers; i++)
                n += pci->controllers[i].bus == parent->index;
        if (n == 0)
                return 0;
        per_slot = (n + SLOTS_MAX - 1) / SLOTS_MAX;
        if (per_slot > FUNCTIONS_MAX)
                return -E2BIG;
        for (size_t i = 0; i < pci->n_controllers; i++) {
                GuestController *c = &pci->controllers[i];

                if (c->bus != parent->index)
                        continue;
                c->slot = (uint8_t) (at / per_slot);
                c->function = (uint8_t) (at % per_slot);
                c->multifunction = c->function == 0 && per_slot > 1 && at + 1 < n;
                at++;
        }
        return 0;
}

/* Returns the number of controllers below parent, at any depth. */
static unsigned count_below(const GuestPci *pci, const GuestController *parent) {
        unsigned n = 0;

        for (size_t i = 0; i < pci->n_controllers; i++)
                if (pci->controllers[i].bus == parent->index)
                        n += 1 + count_below(pci, &pci->controllers[i]);
        return n;
}

/* Numbers the buses below parent depth first, by slot; each port has one bus. */
static void number_below(GuestPci *pci, const GuestController *parent, unsigned *next) {
        for (size_t i = 0; i < pci->n_controllers; i++)
                if (pci->controllers[i].bus == parent->index) {
                        pci->controllers[i].bus_nr = (*next)++;
                        number_below(pci, &pci->controllers[i], next);
                }
}

/* Numbers the buses of the expanders from the highest number down, beginning with the last expander. pcie.0 keeps the
 * numbers below those of the first expander. 0 or -E2BIG. */
static int number_buses(GuestLayout *l) {
        GuestPci *pci = l->pci;
        unsigned end = l->room->bus_end, behind = 0, next;

        for (size_t i = pci->n_used; i-- > 0;) {
                GuestController *c = &pci->controllers[i];
                unsigned below = c->type == GUEST_EXPANDER_BUS ? count_below(pci, c) : 0;

                if (c->type != GUEST_EXPANDER_BUS)
                        continue;
                if (1 + below + GUEST_EXPANDER_SPARE >= end)
                        return -E2BIG;
                end -= 1 + below + GUEST_EXPANDER_SPARE;
                behind += 1 + below;
                c->bus_nr = end;
                next = end + 1;
                number_below(pci, c, &next);
        }
        /* room->others counts the seekers already: do not count the spare ports that are for them. */
        behind += l->a->spare_ports > 0 ? l->room->seekers : 0;
        return 1 + (pci->n_controllers - behind) + l->room->others > end ? -E2BIG : 0;
}

int guest_layout_controllers(GuestLayout *l) {
        int r;

        l->pci->controllers = calloc(GUEST_BUSES_MAX, sizeof(GuestController));
        if (!l->pci->controllers)
                return -ENOMEM;
        r = make_groups(l);
        r = r ?: plug_all(l);
        r = r ?: add_spares(l);
        for (size_t i = 0; r == 0 && i < l->pci->n_controllers; i++)
                r = place_children(l->pci, &l->pci->controllers[i]);
        return r ?: number_buses(l);
}
