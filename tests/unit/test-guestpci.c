/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The guest's PCI layout: every device has its own address, and every bus its own number. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#include "guest/guestpci.h"
#include "model/locality.h"
#include "plan/request.h"
#include "util/strings.h"

static Inventory *inventory;
static Allocation *allocation;

static void begin(unsigned cells) {
        inventory = inventory_new();
        allocation = allocation_new("vm1");
        assert_non_null(inventory);
        assert_non_null(allocation);
        for (unsigned i = 0; i < cells; i++)
                allocation->cells[i] = (Cell) { .node = (int) (2 * i), .memory = 1 << 20 };
        allocation->n_cells = cells;
}

static void end(void) {
        inventory = inventory_free(inventory);
        allocation = allocation_free(allocation);
}

static void add(PciAddress address, int node, bool is_vf, DeviceRole role) {
        PciDevice *dev = inventory_add_device(inventory, address);
        AllocationDevice *taken = allocation_add_device(allocation, address, role);

        assert_non_null(dev);
        assert_non_null(taken);
        dev->numa_node = taken->numa_node = node;
        taken->is_vf = is_vf;
}

static GuestPci *layout(void) {
        GuestPci *pci = NULL;

        assert_int_equal(inventory_finish(inventory), 0);
        assert_int_equal(guest_pci_new(inventory, allocation, &GUEST_PCI_ROOM_DEFAULT, &pci), 0);
        return pci;
}

/* Returns the order in which firmware finds the controllers on a bus. */
static int place_on_bus(const GuestController *c) {
        return c->bus == 0 ? (int) c->index : c->slot * 8 + c->function;
}

/* Numbers the buses depth first, as firmware does, and compares them with the layout's. */
static void enumerate(const GuestPci *pci, unsigned parent, bool known, unsigned *next, bool used[]) {
        for (int last = -1;;) {
                const GuestController *first = NULL;

                for (size_t i = 0; i < pci->n_controllers; i++) {
                        const GuestController *c = &pci->controllers[i];

                        if (c->bus == parent && c->type != GUEST_EXPANDER_BUS && place_on_bus(c) > last &&
                            (!first || place_on_bus(c) < place_on_bus(first)))
                                first = c;
                }
                if (!first)
                        return;
                last = place_on_bus(first);
                assert_in_range(*next, 1, GUEST_BUSES_MAX - 1);
                assert_false(used[*next]);
                used[*next] = true;
                assert_int_equal(first->bus_nr, known ? *next : 0);
                (*next)++;
                enumerate(pci, first->index, known, next, used);
        }
}

static void assert_buses_are_apart(const GuestPci *pci) {
        bool used[GUEST_BUSES_MAX] = { true };
        unsigned next = 1;

        enumerate(pci, 0, false, &next, used);
        for (size_t i = 0; i < pci->n_controllers; i++) {
                const GuestController *c = &pci->controllers[i];

                assert_int_equal(c->index, i + 1);
                if (c->type != GUEST_EXPANDER_BUS)
                        continue;
                assert_in_range(c->bus_nr, 1, GUEST_BUSES_MAX - 1);
                assert_false(used[c->bus_nr]);
                used[c->bus_nr] = true;
                next = c->bus_nr + 1;
                enumerate(pci, c->index, true, &next, used);
        }
}

static void assert_addresses_are_apart(const GuestPci *pci) {
        for (size_t i = 0; i < pci->n_functions; i++) {
                const GuestFunction *f = &pci->functions[i];
                const GuestController *port = &pci->controllers[f->guest.bus - 1];
                bool has_first = false;

                assert_int_equal(port->index, f->guest.bus);
                assert_true(port->type == GUEST_ROOT_PORT || port->type == GUEST_DOWNSTREAM_PORT);
                assert_ptr_equal(port, guest_pci_port(pci, f));
                assert_int_equal(f->guest.slot, 0);
                for (size_t j = 0; j < pci->n_functions; j++) {
                        const GuestFunction *g = &pci->functions[j];

                        assert_true(i == j || !pci_address_equal(f->guest, g->guest));
                        if (pci_address_same_slot(f->guest, g->guest) && g->guest.function == 0) {
                                has_first = true;
                                assert_true(i == j || g->multifunction);
                        }
                }
                assert_true(has_first);
        }
}

static void assert_ports_are_apart(const GuestPci *pci) {
        for (size_t i = 0; i < pci->n_controllers; i++) {
                const GuestController *a = &pci->controllers[i];

                for (size_t j = 0; a->bus > 0 && j < i; j++) {
                        const GuestController *b = &pci->controllers[j];

                        if (b->bus != a->bus)
                                continue;
                        assert_true(a->slot != b->slot || a->function != b->function);
                        if (a->slot == b->slot && b->function == 0)
                                assert_true(b->multifunction);
                }
        }
}

/* 1 to 64 devices on 1 to 8 cells. The node is twice the cell; some devices are on other or unknown nodes. */
TEST(test_buses_never_overlap) {
        for (unsigned cells = 1; cells <= ALLOCATION_CELLS_MAX; cells++)
                for (unsigned n = 1; n <= REQUEST_DEVICES_MAX; n++)
                        for (unsigned spread = 1; spread <= cells + 2; spread += 2) {
                                _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;

                                begin(cells);
                                for (unsigned i = 0; i < n; i++)
                                        add((PciAddress) { .bus = (uint8_t) i }, (int) (i % spread * 2) - (i % 7 == 6),
                                            i % 3 == 0, DEVICE_ROLE_ASSIGNED);
                                pci = layout();
                                assert_int_equal(pci->n_functions, n);
                                assert_buses_are_apart(pci);
                                assert_addresses_are_apart(pci);
                                assert_ports_are_apart(pci);
                                end();
                        }
}

static const GuestController *port_of(const GuestPci *pci, size_t function) {
        return &pci->controllers[pci->functions[function].guest.bus - 1];
}

TEST(test_unknown_node_is_not_zero) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;

        begin(2);
        add((PciAddress) { .bus = 1 }, -1, false, DEVICE_ROLE_ASSIGNED); /* unknown */
        add((PciAddress) { .bus = 2 }, 2, false, DEVICE_ROLE_ASSIGNED);  /* cell 1 */
        add((PciAddress) { .bus = 3 }, 6, false, DEVICE_ROLE_ASSIGNED);  /* another node, without a cell */
        assert_non_null(allocation_add_device(allocation, (PciAddress) { .bus = 9 }, DEVICE_ROLE_ASSIGNED)); /* gone */
        pci = layout();

        assert_int_equal(pci->n_controllers, 5); /* one expander: cell 0 has no devices */
        assert_int_equal(pci->controllers[0].type, GUEST_EXPANDER_BUS);
        assert_int_equal(pci->controllers[0].cell, 1);
        assert_int_equal(port_of(pci, 0)->cell, -1);
        assert_int_equal(port_of(pci, 1)->cell, 1);
        assert_int_equal(port_of(pci, 2)->cell, -1);
        assert_int_equal(port_of(pci, 3)->cell, -1);
        end();
}

/* A slot becomes one card whose functions are numbered from 0. VFs are cards of their own, even in one slot. Held
 * devices are not shown. */
TEST(test_functions_of_a_slot) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;

        begin(1);
        add((PciAddress) { .bus = 1, .function = 3 }, 0, false, DEVICE_ROLE_ASSIGNED);
        add((PciAddress) { .bus = 1, .function = 1 }, 0, false, DEVICE_ROLE_COMPANION);
        add((PciAddress) { .bus = 5, .slot = 16, .function = 1 }, 0, true, DEVICE_ROLE_ASSIGNED);
        add((PciAddress) { .bus = 5, .slot = 16, .function = 3 }, 0, true, DEVICE_ROLE_ASSIGNED);
        add((PciAddress) { .bus = 1, .function = 2 }, 0, false, DEVICE_ROLE_HELD);
        pci = layout();

        assert_int_equal(pci->n_functions, 4);
        assert_int_equal(pci->n_controllers, 4);
        assert_int_equal(pci->functions[0].guest.function, 2);
        assert_int_equal(pci->functions[1].guest.function, 0);
        assert_int_equal(pci->functions[0].guest.bus, pci->functions[1].guest.bus);
        assert_true(pci->functions[1].multifunction);
        assert_false(pci->functions[0].multifunction);
        assert_int_not_equal(pci->functions[2].guest.bus, pci->functions[3].guest.bus);
        assert_int_equal(pci->functions[2].guest.function, 0);
        assert_false(pci->functions[2].multifunction);
        end();
}

TEST(test_ports_beyond_the_slots) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;

        begin(1);
        for (unsigned i = 0; i < 40; i++)
                add((PciAddress) { .bus = (uint8_t) i }, 0, false, DEVICE_ROLE_ASSIGNED);
        pci = layout();
        assert_ports_are_apart(pci);
        assert_buses_are_apart(pci);
        assert_true(port_of(pci, 38)->multifunction);
        assert_int_equal(port_of(pci, 38)->slot, 19);
        assert_int_equal(port_of(pci, 39)->slot, 19);
        assert_int_equal(port_of(pci, 39)->function, 1);
        end();
}

TEST(test_too_many) {
        GuestPciRoom room = GUEST_PCI_ROOM_DEFAULT;
        GuestPci *pci = NULL;

        begin(1);
        for (unsigned i = 0; i < 8; i++)
                add((PciAddress) { .bus = (uint8_t) i }, i < 4 ? 0 : -1, false, DEVICE_ROLE_ASSIGNED);
        assert_int_equal(inventory_finish(inventory), 0);

        room.bus_end = 1 + 4 + GUEST_EXPANDER_SPARE + 1 + 4 + room.others;
        assert_int_equal(guest_pci_new(inventory, allocation, &room, &pci), 0);
        pci = guest_pci_free(pci);
        room.bus_end--;
        assert_int_equal(guest_pci_new(inventory, allocation, &room, &pci), -E2BIG);
        room.bus_end = 3;
        assert_int_equal(guest_pci_new(inventory, allocation, &room, &pci), -E2BIG);

        room = GUEST_PCI_ROOM_DEFAULT;
        room.first_index = 247; /* 9 controllers: up to 255 */
        assert_int_equal(guest_pci_new(inventory, allocation, &room, &pci), 0);
        pci = guest_pci_free(pci);
        room.first_index++;
        assert_int_equal(guest_pci_new(inventory, allocation, &room, &pci), -E2BIG);

        for (unsigned i = 0; i < 256; i++)
                assert_non_null(allocation_add_device(allocation, (PciAddress) { .domain = 1, .bus = (uint8_t) i },
                                                      DEVICE_ROLE_ASSIGNED));
        assert_int_equal(guest_pci_new(inventory, allocation, &GUEST_PCI_ROOM_DEFAULT, &pci), -E2BIG);
        assert_null(pci);
        end();
}

static uint64_t hole_of(uint64_t bar) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;

        begin(1);
        add((PciAddress) { .bus = 1 }, 0, false, DEVICE_ROLE_ASSIGNED);
        add((PciAddress) { .bus = 2 }, 0, false, DEVICE_ROLE_HELD);
        inventory->devices[0].bar_size[1] = bar;
        inventory->devices[1].bar_size[1] = 1ULL << 50; /* not a device of the guest */
        pci = layout();
        end();
        return pci->hole64;
}

static void assert_window(unsigned phys_bits, uint64_t bar, uint64_t hole64, bool hint) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;

        begin(1);
        add((PciAddress) { .bus = 1 }, 0, false, DEVICE_ROLE_ASSIGNED);
        inventory->devices[0].bar_size[1] = bar;
        inventory->phys_bits = phys_bits;
        pci = layout();
        end();
        assert_int_equal(pci->hole64, hole64);
        assert_int_equal(pci->hint, hint);
}

/* Firmware makes a window of an eighth of what the processor can address. */
TEST(test_firmware_hint) {
        assert_window(0, 128ULL << 30, 256ULL << 30, false); /* unknown */
        assert_window(52, 1024ULL << 30, 2048ULL << 30, false);
        assert_window(46, 4096ULL << 30, 8192ULL << 30, false);
        assert_window(46, (4096ULL << 30) + 1, 16384ULL << 30, true);
        assert_window(39, 16ULL << 30, 0, false);
        assert_window(39, 32ULL << 30, 64ULL << 30, false);
        assert_window(39, 64ULL << 30, 128ULL << 30, true);
        assert_window(39, 128ULL << 30, 128ULL << 30, true); /* twice the BARs would leave too little for memory */
}

TEST(test_hole64) {
        assert_int_equal(hole_of(0), 0);
        assert_int_equal(hole_of(16ULL << 30), 0); /* q35 has this by default */
        assert_int_equal(hole_of((16ULL << 30) + 1), 64ULL << 30);
        assert_int_equal(hole_of(64ULL << 30), 128ULL << 30);
        assert_int_equal(hole_of(65ULL << 30), 256ULL << 30);
        assert_int_equal(hole_of(UINT64_MAX), 1ULL << 61); /* invalid sizes are limited */
}

/* The window of 'virt' is used up to its end. The BARs of a port begin at a multiple of the largest one. */
TEST(test_window_virt) {
        static const struct {
                unsigned gpus;
                uint64_t bar, small; /* of each GPU, in GiB and MiB */
                uint64_t hole64;     /* in GiB; 0: the default */
        } cases[] = {
                { 0, 0, 0, 0 },        { 2, 256, 0, 0 },  { 3, 256, 0, 2048 },  { 1, 256, 16, 0 },
                { 2, 256, 16, 2048 },  { 2, 128, 16, 0 }, { 3, 128, 16, 1024 }, { 4, 128, 0, 0 },
                { 4, 128, 16, 2048 },  { 1, 512, 0, 0 },  { 1, 512, 16, 2048 }, { 4, 64, 1024, 0 },
                { 5, 64, 1024, 1024 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;

                begin(1);
                strcpy(inventory->architecture, ARCHITECTURE_AARCH64);
                for (unsigned k = 0; k < cases[i].gpus; k++) {
                        add((PciAddress) { .bus = (uint8_t) (k + 1) }, 0, false, DEVICE_ROLE_ASSIGNED);
                        inventory->devices[k].bar_size[0] = cases[i].small << 20;
                        inventory->devices[k].bar_size[2] = cases[i].bar << 30;
                }
                pci = layout();
                end();
                assert_int_equal(pci->hole64, cases[i].hole64 << 30);
        }
}

/* Expanders and root ports for hot-plug do not change the addresses of devices. */
TEST(test_spare_ports) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *without = NULL, *with = NULL;
        GuestPciRoom room = GUEST_PCI_ROOM_DEFAULT;
        unsigned on_root = 0, behind = 0;

        begin(2);
        add((PciAddress) { .bus = 1 }, 0, false, DEVICE_ROLE_ASSIGNED);
        add((PciAddress) { .bus = 2 }, 2, false, DEVICE_ROLE_ASSIGNED);
        add((PciAddress) { .bus = 3 }, -1, false, DEVICE_ROLE_ASSIGNED);
        without = layout();
        allocation->spare_ports = 2;
        room.seekers = 3;
        assert_int_equal(guest_pci_new(inventory, allocation, &room, &with), 0);
        assert_int_equal(without->n_used, without->n_controllers);
        assert_int_equal(with->n_used, without->n_controllers);
        for (size_t i = 0; i < 3; i++)
                assert_true(pci_address_equal(with->functions[i].guest, without->functions[i].guest));
        for (size_t i = with->n_used; i < with->n_controllers; i++) {
                on_root += with->controllers[i].bus == 0;
                behind += with->controllers[i].bus > 0;
        }
        assert_int_equal(on_root, 2 + 3);
        assert_int_equal(behind, 2 * 2);
        assert_buses_are_apart(with);
        assert_ports_are_apart(with);
        end();
}

/* Adds a device with this path on the host. */
static void add_at(const char *path, int node, bool is_vf) {
        PciAddress address;

        assert_int_equal(pci_address_parse(strrchr(path, '/') + 1, &address), 0);
        add(address, node, is_vf, DEVICE_ROLE_ASSIGNED);
        assert_int_equal(string_copy(&allocation->devices[allocation->n_devices - 1].path, path), 0);
}

#define TREE_CARDS_MAX 12U

/* The place of a card: one of two root ports of one of three root complexes, and the switch below the port; 0: none. */
typedef struct Spot {
        unsigned complex, port, at;
} Spot;

static int node_of(Spot s) {
        return s.complex == 2 ? 2 : 0;
}

static Distance host_distance(Spot a, Spot b) {
        if (a.complex != b.complex)
                return node_of(a) == node_of(b) ? DISTANCE_NODE : DISTANCE_SYS;
        if (a.port != b.port || a.at == 0 || b.at == 0)
                return DISTANCE_PHB;
        return a.at == b.at ? DISTANCE_PIX : DISTANCE_PXB;
}

static const GuestController *above(const GuestPci *pci, const GuestController *c, GuestControllerType type) {
        while (c->type != type) {
                if (c->bus == 0)
                        return NULL;
                c = &pci->controllers[c->bus - 1];
        }
        return c;
}

static Distance guest_distance(const GuestPci *pci, const GuestFunction *f, const GuestFunction *g) {
        const GuestController *a = guest_pci_port(pci, f), *b = guest_pci_port(pci, g);
        const GuestController *at = above(pci, a, GUEST_UPSTREAM_PORT);

        if (at && at == above(pci, b, GUEST_UPSTREAM_PORT))
                return DISTANCE_PIX;
        if (above(pci, a, GUEST_ROOT_PORT) == above(pci, b, GUEST_ROOT_PORT))
                return DISTANCE_PXB;
        if (above(pci, a, GUEST_EXPANDER_BUS) == above(pci, b, GUEST_EXPANDER_BUS))
                return DISTANCE_PHB;
        return a->cell == b->cell ? DISTANCE_NODE : DISTANCE_SYS;
}

/* Adds a card. Switch 1 is below the root port, 2 and 3 below 1, 4 below 2. A port without switches has one card. */
static void add_at_spot(Spot s, unsigned bus) {
        static const char *const switches[] = { "", "/%s:00.0/%s:01.0", "/%s:00.0/%s:02.0/%s:10.0/%s:11.0",
                                                "/%s:00.0/%s:03.0/%s:20.0/%s:21.0",
                                                "/%s:00.0/%s:02.0/%s:10.0/%s:12.0/%s:30.0/%s:31.0" };
        _cleanup_free_ char *path = NULL, *below = NULL;
        char bridge[16];

        (void) snprintf(bridge, sizeof(bridge), "0000:%02x", 0x80 + s.complex * 16 + s.port);
        assert_int_equal(string_replace(&below, "%s", ""), 0);
        for (const char *c = switches[s.at]; *c; c += c[0] == '%' ? 2 : 1)
                assert_int_equal(string_replace(&below, "%s%.*s", below, c[0] == '%' ? 7 : 1, c[0] == '%' ? bridge : c),
                                 0);
        assert_int_equal(string_replace(&path, "pci0000:%02x/0000:%02x:%02x.0%s/0000:%02x:00.0", 0x70 + s.complex,
                                        0x70 + s.complex, s.at == 0 ? 8 + bus : s.port, below, bus),
                         0);
        add_at(path, node_of(s), false);
}

/* The distances between the guest's cards are those of the host. */
TEST(test_mirror_keeps_distances) {
        srand(7);
        for (unsigned round = 0; round < 3000; round++) {
                _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;
                Spot spots[TREE_CARDS_MAX];
                unsigned n = 2 + (unsigned) rand() % (TREE_CARDS_MAX - 1);

                begin(2);
                allocation->topology = GUEST_TOPOLOGY_MIRROR;
                allocation->spare_ports = round % 3;
                for (unsigned i = 0; i < n; i++) {
                        spots[i] = (Spot) { (unsigned) rand() % 3, (unsigned) rand() % 2, (unsigned) rand() % 5 };
                        add_at_spot(spots[i], i + 1);
                }
                pci = layout();
                assert_buses_are_apart(pci);
                assert_addresses_are_apart(pci);
                assert_ports_are_apart(pci);
                for (unsigned i = 0; i < n; i++) {
                        assert_int_equal(port_of(pci, i)->cell, node_of(spots[i]) / 2);
                        for (unsigned j = 0; j < i; j++)
                                assert_int_equal(guest_distance(pci, &pci->functions[i], &pci->functions[j]),
                                                 host_distance(spots[i], spots[j]));
                }
                end();
        }
}

static unsigned count(const GuestPci *pci, GuestControllerType type) {
        unsigned n = 0;

        for (size_t i = 0; i < pci->n_controllers; i++)
                n += pci->controllers[i].type == type;
        return n;
}

/* A switch costs bus numbers, so only shared switches are made. VFs of one PF without a switch share none. */
TEST(test_switches_only_where_shared) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *mirror = NULL, *flat = NULL;

        begin(1);
        add_at("pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0", 0, false);
        add_at("pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:00.0/0000:23:00.0", 0, false);
        add_at("pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:01.0/0000:24:00.0", 0, false);
        add_at("pci0000:30/0000:30:01.0/0000:31:00.1", 0, true);
        add_at("pci0000:30/0000:30:01.0/0000:31:00.2", 0, true);
        allocation->topology = GUEST_TOPOLOGY_MIRROR;
        mirror = layout();
        assert_int_equal(count(mirror, GUEST_EXPANDER_BUS), 3);
        assert_int_equal(count(mirror, GUEST_UPSTREAM_PORT), 1);
        assert_int_equal(count(mirror, GUEST_DOWNSTREAM_PORT), 2);
        assert_int_equal(count(mirror, GUEST_ROOT_PORT), 1 + 1 + 2);
        assert_int_equal(port_of(mirror, 1)->bus, port_of(mirror, 2)->bus);

        allocation->topology = GUEST_TOPOLOGY_FLAT;
        flat = layout();
        assert_int_equal(count(flat, GUEST_EXPANDER_BUS), 1);
        assert_int_equal(count(flat, GUEST_ROOT_PORT), 5);
        end();
}

/* Devices without a cell stay together on the root bus, with their switch. */
TEST(test_mirror_without_a_cell) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;

        begin(1);
        add_at("pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:00.0/0000:23:00.0", -1, false);
        add_at("pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:01.0/0000:24:00.0", -1, false);
        add_at("pci0000:30/0000:30:01.0/0000:31:00.0", 6, false);
        allocation->topology = GUEST_TOPOLOGY_MIRROR;
        pci = layout();
        assert_int_equal(count(pci, GUEST_EXPANDER_BUS), 0);
        assert_int_equal(count(pci, GUEST_UPSTREAM_PORT), 1);
        assert_int_equal(pci->controllers[0].bus, 0);
        assert_int_equal(port_of(pci, 2)->bus, 0);
        assert_int_equal(port_of(pci, 2)->bus_nr, 0);
        assert_buses_are_apart(pci);
        end();
}

/* Root complexes, and so the guest's bus numbers, are in the order of the request. */
TEST(test_request_order) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;

        begin(2);
        add_at("pci0000:c0/0000:c0:01.0/0000:c1:00.0", 2, false);
        add_at("pci0000:20/0000:20:01.0/0000:21:00.0", 0, false);
        add_at("pci0000:80/0000:80:01.0/0000:81:00.0", 2, false);
        allocation->topology = GUEST_TOPOLOGY_MIRROR;
        pci = layout();
        for (unsigned i = 1; i < 3; i++) {
                assert_true(pci->functions[i - 1].guest.bus < pci->functions[i].guest.bus);
                assert_true(port_of(pci, i - 1)->bus_nr < port_of(pci, i)->bus_nr);
        }
        assert_int_equal(port_of(pci, 0)->cell, 1);
        assert_int_equal(port_of(pci, 1)->cell, 0);
        assert_int_equal(port_of(pci, 2)->cell, 1);
        end();
}

/* By default mirror is chosen for several devices if it fits. An explicit request that does not fit is refused. */
TEST(test_choose) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        begin(1);
        assert_int_equal(guest_topology_choose(inventory, _GUEST_TOPOLOGY_INVALID, allocation, NULL), VERDICT_NONE);
        assert_int_equal(allocation->topology, GUEST_TOPOLOGY_FLAT);
        for (unsigned i = 0; i <= GUEST_EXPANDERS_MAX; i++) {
                char path[64];

                if (i == 1)
                        assert_int_equal(allocation->topology, GUEST_TOPOLOGY_FLAT);
                else if (i > 1)
                        assert_int_equal(allocation->topology, GUEST_TOPOLOGY_MIRROR);
                (void) snprintf(path, sizeof(path), "pci0000:%02x/0000:%02x:00.0", i + 1, i + 1);
                add_at(path, 0, false);
                assert_int_equal(guest_topology_choose(inventory, _GUEST_TOPOLOGY_INVALID, allocation, NULL),
                                 VERDICT_NONE);
        }
        assert_int_equal(allocation->topology, GUEST_TOPOLOGY_FLAT);
        assert_int_equal(guest_topology_choose(inventory, GUEST_TOPOLOGY_MIRROR, allocation, &refusal),
                         VERDICT_INVALID_REQUEST);
        assert_non_null(strstr(refusal.remedy, "--topology flat"));
        end();
}
