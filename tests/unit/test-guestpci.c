/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The guest's PCI layout: every device has one address of its own, and no two buses share a number (domain.md F9). */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/guestpci.h"

static Inventory *inventory;
static Allocation *allocation;

static void begin(unsigned cells) {
        inventory = inventory_new();
        allocation = allocation_new("vm1");
        assert_non_null(inventory);
        assert_non_null(allocation);
        for (unsigned i = 0; i < cells; i++)
                allocation->cells[i] = (Cell){ .node = (int) (2 * i), .memory = 1 << 20 };
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

/* As firmware numbers them: an expander's bus, then each port behind it; the others from 1. */
static void assert_buses_are_apart(const GuestPci *pci) {
        bool used[GUEST_BUSES_MAX] = { true };
        unsigned next[GUEST_BUSES_MAX + 1] = { 1 };

        for (size_t i = 0; i < pci->n_controllers; i++) {
                const GuestController *c = &pci->controllers[i];
                unsigned bus = c->type == GUEST_EXPANDER_BUS ? c->bus_nr : next[c->bus]++;

                assert_int_equal(c->index, i + 1);
                assert_in_range(bus, 1, GUEST_BUSES_MAX - 1);
                assert_false(used[bus]);
                used[bus] = true;
                if (c->type == GUEST_EXPANDER_BUS)
                        next[c->index] = bus + 1;
        }
}

static void assert_addresses_are_apart(const GuestPci *pci) {
        for (size_t i = 0; i < pci->n_functions; i++) {
                const GuestFunction *f = &pci->functions[i];
                const GuestController *port = &pci->controllers[f->guest.bus - 1];
                bool has_first = false;

                assert_int_equal(port->index, f->guest.bus);
                assert_int_equal(port->type, GUEST_ROOT_PORT);
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

                for (size_t j = 0; a->cell >= 0 && a->type == GUEST_ROOT_PORT && j < i; j++) {
                        const GuestController *b = &pci->controllers[j];

                        if (b->type != GUEST_ROOT_PORT || b->bus != a->bus)
                                continue;
                        assert_true(a->slot != b->slot || a->function != b->function);
                        if (a->slot == b->slot && b->function == 0)
                                assert_true(b->multifunction);
                }
        }
}

/* 1 to 64 devices on 1 to 8 cells; node ids are twice the cell's, some devices are on none or unknown. */
static void test_buses_never_overlap(void **state) {
        for (unsigned cells = 1; cells <= REQUEST_CELLS_MAX; cells++)
                for (unsigned n = 1; n <= REQUEST_DEVICES_MAX; n++)
                        for (unsigned spread = 1; spread <= cells + 2; spread += 2) {
                                _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;

                                begin(cells);
                                for (unsigned i = 0; i < n; i++)
                                        add((PciAddress){ .bus = (uint8_t) i }, (int) (i % spread * 2) - (i % 7 == 6),
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

static void test_unknown_node_is_not_zero(void **state) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;

        begin(2);
        add((PciAddress){ .bus = 1 }, -1, false, DEVICE_ROLE_ASSIGNED); /* unknown */
        add((PciAddress){ .bus = 2 }, 2, false, DEVICE_ROLE_ASSIGNED);  /* cell 1 */
        add((PciAddress){ .bus = 3 }, 6, false, DEVICE_ROLE_ASSIGNED);  /* of no cell */
        assert_non_null(allocation_add_device(allocation, (PciAddress){ .bus = 9 }, DEVICE_ROLE_ASSIGNED)); /* gone */
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

/* The slot becomes one card, renumbered from 0; VFs are cards of their own even in one host slot; held devices are not
 * shown. */
static void test_functions_of_a_slot(void **state) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;

        begin(1);
        add((PciAddress){ .bus = 1, .function = 3 }, 0, false, DEVICE_ROLE_ASSIGNED);
        add((PciAddress){ .bus = 1, .function = 1 }, 0, false, DEVICE_ROLE_COMPANION);
        add((PciAddress){ .bus = 5, .slot = 16, .function = 1 }, 0, true, DEVICE_ROLE_ASSIGNED);
        add((PciAddress){ .bus = 5, .slot = 16, .function = 3 }, 0, true, DEVICE_ROLE_ASSIGNED);
        add((PciAddress){ .bus = 1, .function = 2 }, 0, false, DEVICE_ROLE_HELD);
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

static void test_ports_beyond_the_slots(void **state) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;

        begin(1);
        for (unsigned i = 0; i < 40; i++)
                add((PciAddress){ .bus = (uint8_t) i }, 0, false, DEVICE_ROLE_ASSIGNED);
        pci = layout();
        assert_ports_are_apart(pci);
        assert_true(port_of(pci, 7)->multifunction);
        assert_false(port_of(pci, 8)->multifunction);
        assert_int_equal(port_of(pci, 32)->slot, 0);
        assert_int_equal(port_of(pci, 32)->function, 1);
        end();
}

static void test_too_many(void **state) {
        GuestPciRoom room = GUEST_PCI_ROOM_DEFAULT;
        GuestPci *pci = NULL;

        begin(1);
        for (unsigned i = 0; i < 8; i++)
                add((PciAddress){ .bus = (uint8_t) i }, i < 4 ? 0 : -1, false, DEVICE_ROLE_ASSIGNED);
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
                assert_non_null(allocation_add_device(allocation, (PciAddress){ .domain = 1, .bus = (uint8_t) i },
                                                      DEVICE_ROLE_ASSIGNED));
        assert_int_equal(guest_pci_new(inventory, allocation, &GUEST_PCI_ROOM_DEFAULT, &pci), -E2BIG);
        assert_null(pci);
        end();
}

static uint64_t hole_of(uint64_t bar) {
        _cleanup_(cleanup_guest_pci_free) GuestPci *pci = NULL;

        begin(1);
        add((PciAddress){ .bus = 1 }, 0, false, DEVICE_ROLE_ASSIGNED);
        add((PciAddress){ .bus = 2 }, 0, false, DEVICE_ROLE_HELD);
        inventory->devices[0].bar_size[1] = bar;
        inventory->devices[1].bar_size[1] = 1ULL << 50; /* not in the guest */
        pci = layout();
        end();
        return pci->hole64;
}

static void test_hole64(void **state) {
        assert_int_equal(hole_of(0), 0);
        assert_int_equal(hole_of(16ULL << 30), 0); /* what q35 has anyway */
        assert_int_equal(hole_of((16ULL << 30) + 1), 64ULL << 30);
        assert_int_equal(hole_of(64ULL << 30), 128ULL << 30);
        assert_int_equal(hole_of(65ULL << 30), 256ULL << 30);
        assert_int_equal(hole_of(UINT64_MAX), 1ULL << 61); /* nonsense stays within bounds */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_buses_never_overlap),
                cmocka_unit_test(test_unknown_node_is_not_zero),
                cmocka_unit_test(test_functions_of_a_slot),
                cmocka_unit_test(test_ports_beyond_the_slots),
                cmocka_unit_test(test_too_many),
                cmocka_unit_test(test_hole64),
        };

        return cmocka_run_group_tests_name("guestpci", tests, NULL, NULL);
}
