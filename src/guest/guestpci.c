/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Computes the layout of the guest's PCI buses: cards, then controllers, then addresses. */

#include <errno.h>
#include <stdio.h>

#include "guestpci-internal.h"

bool guest_pci_shows(const AllocationDevice *dev) {
        return dev->role != DEVICE_ROLE_HELD && allocation_device_is_settled(dev);
}

/* Returns the card that has the function's slot on the host; NULL: none yet. A VF is always a card of its own. */
static GuestCard *layout_find_card(GuestLayout *l, const AllocationDevice *dev) {
        if (dev->is_vf)
                return NULL;
        for (size_t i = 0; i < l->n_cards; i++) {
                const AllocationDevice *first = &l->a->devices[l->cards[i].first];

                if (!first->is_vf && pci_address_same_slot(first->address, dev->address))
                        return &l->cards[i];
        }
        return NULL;
}

/* Returns -1 also if the NUMA node of the device is unknown. */
int guest_pci_cell(const Allocation *a, const AllocationDevice *dev) {
        for (size_t i = 0; i < a->n_cells; i++)
                if (dev->numa_node >= 0 && a->cells[i].node == dev->numa_node)
                        return (int) i;
        return -1;
}

/* Finds the bridges above a card, as model/locality.h does. Of three or more bridges the first is a root port, the
 * others are upstream and downstream ports of switches. Of two bridges the second counts as a switch. Cards at one
 * switch have the same upstream port, with which card->nearest ends. */
static void locate_card(GuestCard *card, const AllocationDevice *dev) {
        size_t last = 0, second = 0; /* where the names of the two nearest bridges end */
        const char *at, *end;
        unsigned n = 0;

        card->path = dev->path ?: "";
        card->host = pci_path_host_length(card->path);
        at = card->path + card->host;
        for (; card->host > 0 && *at && (end = strchr(at + 1, '/')); at = end) {
                second = last;
                last = (size_t) (end - card->path);
                if (n++ == 0)
                        card->port = last;
        }
        card->nearest = n >= 3 ? second : n == 2 ? last : 0;
}

static int layout_make_cards(GuestLayout *l) {
        for (size_t i = 0; i < l->a->n_devices; i++) {
                const AllocationDevice *dev = &l->a->devices[i];
                GuestCard *card;

                if (!guest_pci_shows(dev))
                        continue;
                card = layout_find_card(l, dev);
                if (!card) {
                        if (l->n_cards == ELEMENTSOF(l->cards))
                                return -E2BIG;
                        card = &l->cards[l->n_cards++];
                        *card = (GuestCard) {
                                .first = i,
                                .lowest = dev->address.function,
                                .cell = guest_pci_cell(l->a, dev),
                                .group = -1,
                        };
                        locate_card(card, dev);
                }
                card->n++;
                card->lowest = MIN(card->lowest, dev->address.function);
        }
        return 0;
}

static int layout_make_functions(GuestLayout *l, GuestPci *pci) {
        pci->functions = calloc(l->a->n_devices + 1, sizeof(GuestFunction));
        if (!pci->functions)
                return -ENOMEM;

        for (size_t i = 0, next_card = 0; i < l->a->n_devices; i++) {
                const AllocationDevice *dev = &l->a->devices[i];
                const GuestCard *card;
                uint8_t function;

                if (!guest_pci_shows(dev))
                        continue;
                if (next_card < l->n_cards && l->cards[next_card].first == i)
                        card = &l->cards[next_card++];
                else
                        card = layout_find_card(l, dev);
                function = (uint8_t) (dev->address.function - card->lowest);
                pci->functions[pci->n_functions++] = (GuestFunction) {
                        .device = i,
                        .guest = { .bus = (uint8_t) card->bus, .function = function },
                        .multifunction = function == 0 && card->n > 1,
                };
        }
        return 0;
}

#define BARS_MAX (1ULL << 60)

/* BARs of the devices below one port, as far as they are known. */
typedef struct PortBars {
        uint64_t sum, largest;
} PortBars;

static void add_bar(PortBars *p, uint64_t size) {
        p->sum = size > BARS_MAX - p->sum ? BARS_MAX : p->sum + size;
        p->largest = MAX(p->largest, MIN(size, BARS_MAX));
}

/* Adds up the BARs below each port, by the port's index. Index 0 stands for the port that all shared memory has
 * together. */
static void read_bars(const Inventory *inv, const Allocation *a, const GuestPci *pci,
                      PortBars ret[static GUEST_BUSES_MAX]) {
        for (size_t i = 0; i < a->n_regions; i++)
                add_bar(&ret[0], a->regions[i].size);
        for (size_t i = 0; i < pci->n_functions; i++) {
                const GuestFunction *f = &pci->functions[i];
                const PciDevice *dev = inventory_find(inv, a->devices[f->device].address);

                for (size_t bar = 0; dev && bar < PCI_BARS_MAX; bar++)
                        add_bar(&ret[f->guest.bus], dev->bar_size[bar]);
        }
}

/*
 * Returns the size of a window in which all ports fit. Each port begins at a multiple of its largest BAR; the ports
 * with the largest BARs come first.
 */
static uint64_t place_ports(const PortBars ports[static GUEST_BUSES_MAX]) {
        uint64_t end = 0;

        for (uint64_t size = BARS_MAX; size > 0; size /= 2)
                for (size_t i = 0; i < GUEST_BUSES_MAX; i++)
                        if (ports[i].largest >= size && ports[i].largest / 2 < size)
                                end = MIN((end + size - 1) / size * size + ports[i].sum, BARS_MAX);
        return end;
}

/*
 * Sets hole64 and hint, unless the machine's default window is large enough. The window is twice the sum of the BARs,
 * because of alignment, rounded up to a power of two. If that is half of the address space or more, the window is half
 * as large, provided that the BARs still fit. OVMF uses an eighth of the address space by default, a quarter since edk2
 * of August 2026 (tianocore/edk2 12997). Firmware takes the whole window of 'virt', which is enlarged only if the ports
 * do not fit.
 */
static void size_window(const Inventory *inv, const Allocation *a, GuestPci *pci) {
        bool aarch64 = streq(inventory_architecture(inv), ARCHITECTURE_AARCH64);
        uint64_t space = inv->phys_bits > 0 ? 1ULL << MIN(inv->phys_bits, 63U) : 0, size = 1;
        PortBars ports[GUEST_BUSES_MAX] = { 0 }, all = { 0 };

        read_bars(inv, a, pci, ports);
        for (size_t i = 0; i < GUEST_BUSES_MAX; i++)
                add_bar(&all, ports[i].sum);
        while (size < all.sum * 2)
                size *= 2;
        if (space > 0 && size >= space / 2 && size / 2 >= all.sum)
                size /= 2;
        if (aarch64 ? place_ports(ports) <= GUEST_HOLE64_VIRT : size <= GUEST_HOLE64_Q35)
                return;
        pci->hole64 = size;
        pci->hint = space > 0 && size > space / 8;
}

int guest_pci_new(const Inventory *inv, const Allocation *a, const GuestPciRoom *room, GuestPci **ret) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = calloc(1, sizeof(GuestPci));
        GuestLayout l = { .a = a, .room = room, .pci = pci };
        int r;

        if (!pci)
                return -ENOMEM;

        r = layout_make_cards(&l);
        if (r < 0)
                return r;
        r = guest_layout_controllers(&l);
        if (r < 0)
                return r;
        r = layout_make_functions(&l, pci);
        if (r < 0)
                return r;

        size_window(inv, a, pci);
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

const GuestController *guest_pci_port(const GuestPci *p, const GuestFunction *f) {
        return &p->controllers[f->guest.bus - p->controllers[0].index];
}

PciAddress guest_pci_seen(const GuestPci *p, const GuestFunction *f) {
        return (PciAddress) { .bus = (uint8_t) guest_pci_port(p, f)->bus_nr, .function = f->guest.function };
}

static GuestPlace find_place(const GuestPci *p, const GuestFunction *f) {
        GuestPlace place = { .known = true, .address = f->guest };
        PciAddress seen = guest_pci_seen(p, f);
        const GuestController *c = guest_pci_port(p, f);
        char below[GUEST_PATH_MAX] = "";

        while (seen.bus > 0) {
                (void) snprintf(place.path, sizeof(place.path), "/%s%s", PCI_ADDRESS_STR(seen), below);
                (void) stpcpy(below, place.path);
                if (c->type == GUEST_EXPANDER_BUS)
                        break;
                seen = (PciAddress) { .slot = c->slot, .function = c->function };
                c = &p->controllers[c->bus - p->controllers[0].index];
                seen.bus = (uint8_t) c->bus_nr;
        }
        if (*below)
                (void) snprintf(place.path, sizeof(place.path), "pci0000:%02x%s", c->bus_nr, below);
        return place;
}

GuestPlace *guest_pci_places(const GuestPci *p, const Allocation *a) {
        GuestPlace *places = calloc(a->n_devices + 1, sizeof(*places));

        for (size_t i = 0; places && i < p->n_functions; i++)
                places[p->functions[i].device] = find_place(p, &p->functions[i]);
        return places;
}

static int try_topology(const Inventory *inv, GuestTopology topology, Allocation *a) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;

        a->topology = topology;
        return guest_pci_new(inv, a, &GUEST_PCI_ROOM_DEFAULT, &pci);
}

Verdict guest_topology_choose(const Inventory *inv, GuestTopology wanted, Allocation *a, Refusal *ret) {
        bool mirrors = wanted == GUEST_TOPOLOGY_MIRROR;
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; i < a->n_devices; i++)
                n += a->devices[i].role == DEVICE_ROLE_ASSIGNED;
        if (mirrors || (wanted == _GUEST_TOPOLOGY_INVALID && n > 1))
                r = try_topology(inv, GUEST_TOPOLOGY_MIRROR, a);
        else
                a->topology = GUEST_TOPOLOGY_FLAT;
        if (r == -E2BIG && mirrors)
                return refuse_request(ret, "Use --topology flat, or ask for fewer devices.",
                                      "The host's PCI tree of these devices does not fit the %u buses of a guest.",
                                      GUEST_BUSES_MAX);
        if (r == -E2BIG) {
                a->topology = GUEST_TOPOLOGY_FLAT;
                return VERDICT_NONE;
        }
        return r < 0 ? refuse_no_memory(ret) : VERDICT_NONE;
}
