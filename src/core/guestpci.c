/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Lays out the guest's PCI: cards, then bus numbers, then controllers, then addresses. */

#include "core/guestpci.h"

#include <errno.h>

#define EXPANDER_SLOTS 32U
#define HOLE64_DEFAULT (32ULL << 30) /* QEMU's q35 without pcihole64 (domain.md F8) */

/* Functions that share one guest slot: one VF, or all functions here of one host slot. */
typedef struct Card {
        size_t first;   /* its first device in the allocation */
        size_t n;       /* functions */
        uint8_t lowest; /* host function that becomes function 0 */
        int cell;       /* -1: no guest cell is on its node */
        unsigned bus;   /* index of its port */
} Card;

typedef struct Layout {
        const Inventory *inv;
        const Allocation *a;
        Card cards[GUEST_PORTS_MAX];
        size_t n_cards;
        unsigned ports[REQUEST_CELLS_MAX]; /* behind the expander of each cell */
        unsigned bus_nr[REQUEST_CELLS_MAX];
} Layout;

bool guest_pci_shows(const AllocationDevice *dev) {
        return dev->role == DEVICE_ROLE_ASSIGNED || dev->role == DEVICE_ROLE_COMPANION;
}

/* A VF is a card of its own, wherever its routing id falls. */
static Card *layout_find_card(Layout *l, const AllocationDevice *dev) {
        if (dev->is_vf)
                return NULL;
        for (size_t i = 0; i < l->n_cards; i++) {
                const AllocationDevice *first = &l->a->devices[l->cards[i].first];

                if (!first->is_vf && pci_address_same_slot(first->address, dev->address))
                        return &l->cards[i];
        }
        return NULL;
}

/* Unknown is not zero: a device without a node is on no cell. */
static int layout_cell(const Layout *l, const AllocationDevice *dev) {
        if (dev->numa_node < 0)
                return -1;
        for (size_t i = 0; i < l->a->n_cells; i++)
                if (l->a->cells[i].node == dev->numa_node)
                        return (int) i;
        return -1;
}

static int layout_make_cards(Layout *l) {
        for (size_t i = 0; i < l->a->n_devices; i++) {
                const AllocationDevice *dev = &l->a->devices[i];
                Card *card;

                if (!guest_pci_shows(dev))
                        continue;
                card = layout_find_card(l, dev);
                if (!card) {
                        if (l->n_cards == ELEMENTSOF(l->cards))
                                return -E2BIG;
                        card = &l->cards[l->n_cards++];
                        *card = (Card){ .first = i, .lowest = dev->address.function };
                        card->cell = layout_cell(l, dev);
                        if (card->cell >= 0)
                                l->ports[card->cell]++;
                }
                card->n++;
                card->lowest = MIN(card->lowest, dev->address.function);
        }
        return 0;
}

/* From the top down; what is left below the lowest expander belongs to pcie.0. */
static int layout_number_buses(Layout *l, const GuestPciRoom *room) {
        unsigned end = room->bus_end;
        size_t behind_expanders = 0;

        for (size_t i = l->a->n_cells; i-- > 0;) {
                unsigned needed = 1 + l->ports[i] + GUEST_EXPANDER_SPARE;

                if (l->ports[i] == 0)
                        continue;
                if (needed >= end)
                        return -E2BIG;
                end -= needed;
                l->bus_nr[i] = end;
                behind_expanders += l->ports[i];
        }
        return 1 + (l->n_cards - behind_expanders) + room->others > end ? -E2BIG : 0;
}

/* Ports for the cards of one cell (-1: none), in the order of the request. */
static void layout_make_ports(Layout *l, int cell, unsigned bus, unsigned *index, GuestPci *pci) {
        unsigned n = 0;

        for (size_t i = 0; i < l->n_cards; i++) {
                GuestController *port = &pci->controllers[pci->n_controllers];

                if (l->cards[i].cell != cell)
                        continue;
                *port = (GuestController){ .type = GUEST_ROOT_PORT, .index = *index, .cell = cell, .bus = bus };
                if (cell >= 0) {
                        port->slot = (uint8_t) (n % EXPANDER_SLOTS);
                        port->function = (uint8_t) (n / EXPANDER_SLOTS);
                        port->multifunction = n + EXPANDER_SLOTS < l->ports[cell] && n < EXPANDER_SLOTS;
                }
                l->cards[i].bus = (*index)++;
                pci->n_controllers++;
                n++;
        }
}

static int layout_make_controllers(Layout *l, const GuestPciRoom *room, GuestPci *pci) {
        unsigned index = room->first_index;

        pci->controllers = calloc(l->n_cards + l->a->n_cells + 1, sizeof(GuestController));
        if (!pci->controllers)
                return -ENOMEM;

        for (size_t i = 0; i < l->a->n_cells; i++) {
                unsigned bus = index;

                if (l->ports[i] == 0)
                        continue;
                index++;
                pci->controllers[pci->n_controllers++] = (GuestController){
                        .type = GUEST_EXPANDER_BUS,
                        .index = bus,
                        .cell = (int) i,
                        .bus_nr = l->bus_nr[i],
                };
                layout_make_ports(l, (int) i, bus, &index, pci);
        }
        layout_make_ports(l, -1, 0, &index, pci);
        return index > GUEST_BUSES_MAX ? -E2BIG : 0;
}

static int layout_make_functions(Layout *l, GuestPci *pci) {
        pci->functions = calloc(l->a->n_devices + 1, sizeof(GuestFunction));
        if (!pci->functions)
                return -ENOMEM;

        for (size_t i = 0, next_card = 0; i < l->a->n_devices; i++) {
                const AllocationDevice *dev = &l->a->devices[i];
                const Card *card;
                uint8_t function;

                if (!guest_pci_shows(dev))
                        continue;
                if (next_card < l->n_cards && l->cards[next_card].first == i)
                        card = &l->cards[next_card++];
                else
                        card = layout_find_card(l, dev);
                function = (uint8_t) (dev->address.function - card->lowest);
                pci->functions[pci->n_functions++] = (GuestFunction){
                        .device = i,
                        .guest = { .bus = (uint8_t) card->bus, .function = function },
                        .multifunction = function == 0 && card->n > 1,
                };
        }
        return 0;
}

/* Twice the BARs, so that alignment cannot make them miss, as a power of two (domain.md F8). */
static uint64_t hole64_size(const Inventory *inv, const Allocation *a) {
        const uint64_t limit = 1ULL << 60;
        uint64_t sum = 0, size = 1;

        for (size_t i = 0; i < a->n_devices; i++) {
                const PciDevice *dev =
                        guest_pci_shows(&a->devices[i]) ? inventory_find(inv, a->devices[i].address) : NULL;

                for (size_t bar = 0; dev && bar < PCI_BARS_MAX; bar++)
                        sum = dev->bar_size[bar] > limit - sum ? limit : sum + dev->bar_size[bar];
        }
        while (size < sum * 2)
                size *= 2;
        return size > HOLE64_DEFAULT ? size : 0;
}

int guest_pci_new(const Inventory *inv, const Allocation *a, const GuestPciRoom *room, GuestPci **ret) {
        Layout l = { .inv = inv, .a = a };
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = calloc(1, sizeof(GuestPci));
        int r;

        if (!pci)
                return -ENOMEM;

        r = layout_make_cards(&l);
        if (r < 0)
                return r;
        r = layout_number_buses(&l, room);
        if (r < 0)
                return r;
        r = layout_make_controllers(&l, room, pci);
        if (r < 0)
                return r;
        r = layout_make_functions(&l, pci);
        if (r < 0)
                return r;

        pci->hole64 = hole64_size(inv, a);
        *ret = TAKE_PTR(pci);
        return 0;
}

GuestPci *guest_pci_free(GuestPci *p) {
        if (!p)
                return NULL;
        free(p->controllers);
        free(p->functions);
        free(p);
        return NULL;
}
