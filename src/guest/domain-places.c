/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The places in the guest of a running domain's devices, as libvirt's document tells them. */

#include <stdio.h>

#include "domain-facts-internal.h"

/* Numbers the buses below the bus `above` as firmware does: depth first, in the order of slots, beginning with *next.
 */
static void number_below(DomainBuses *b, unsigned above, unsigned *next) {
        for (unsigned place = 0; place < PCI_PLACES_MAX; place++)
                for (unsigned i = 1; i < GUEST_BUSES_MAX; i++) {
                        DomainBus *bus = &b->buses[i];

                        if (!bus->is_bridge || bus->above != above || bus->slot * 8U + bus->function != place ||
                            bus->number > 0)
                                continue;
                        bus->number = (*next)++;
                        number_below(b, i, next);
                }
}

static void read_controller(DomainBuses *b, const xmlNode *controller) {
        const xmlNode *target = node_find(controller, "target");
        unsigned index, number;
        PciAddress a;

        if (node_get_number(controller, "index", GUEST_BUSES_MAX - 1, &index) < 0 || index == 0)
                return;
        if (node_has(controller, "model", "pcie-expander-bus")) {
                if (target && node_get_number(target, "busNr", GUEST_BUSES_MAX - 1, &number) == 0)
                        b->buses[index] = (DomainBus) { .is_expander = true, .number = number };
        } else if (domain_device_address(controller, &a))
                b->buses[index] =
                        (DomainBus) { .is_bridge = true, .above = a.bus, .slot = a.slot, .function = a.function };
}

void domain_buses_read(const xmlNode *devices, DomainBuses *ret) {
        *ret = (DomainBuses) { 0 };
        for (const xmlNode *n = devices->children; n; n = n->next)
                if (node_is(n, "controller") && node_has(n, "type", "pci"))
                        read_controller(ret, n);
        for (unsigned i = 1; i < GUEST_BUSES_MAX; i++) {
                unsigned next = ret->buses[i].number + 1;

                if (ret->buses[i].is_expander)
                        number_below(ret, i, &next);
        }
}

/* Prepends a part to the path at *at, which lies in buf. False: buf has no room. */
static bool prepend(const char *buf, char **at, const char *part) {
        size_t n = strlen(part);

        if ((size_t) (*at - buf) < n)
                return false;
        *at -= n;
        memcpy(*at, part, n);
        return true;
}

/* Sets ret to the path of the device at the address; "": unknown or too long. */
static void find_path(const DomainBuses *b, PciAddress a, char ret[static GUEST_PATH_MAX]) {
        char buf[GUEST_PATH_MAX], *at = buf + sizeof(buf) - 1;
        const DomainBus *bus = &b->buses[a.bus];

        *ret = *at = '\0';
        while (bus->number > 0 && bus->number < GUEST_BUSES_MAX) {
                char part[1 + PCI_ADDRESS_STRING_MAX];
                PciAddress seen = { .bus = (uint8_t) bus->number, .slot = a.slot, .function = a.function };

                (void) snprintf(part, sizeof(part), "/%s", PCI_ADDRESS_STR(seen));
                if (!prepend(buf, &at, part))
                        return;
                if (bus->is_expander) {
                        (void) snprintf(part, sizeof(part), "pci0000:%02x", bus->number);
                        if (prepend(buf, &at, part))
                                (void) stpcpy(ret, at);
                        return;
                }
                a = (PciAddress) { .slot = bus->slot, .function = bus->function };
                bus = &b->buses[bus->above];
        }
}

bool domain_buses_find(const DomainBuses *b, const xmlNode *device, GuestPlace *ret) {
        GuestPlace place = { .known = true };

        if (!domain_device_address(device, &place.address) || place.address.domain > 0)
                return false;
        find_path(b, place.address, place.path);
        *ret = place;
        return true;
}
