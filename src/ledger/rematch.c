/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds hardware whose address differs from that in the ledger. */

#include "ledger/rematch.h"

#include <errno.h>

#include "util/strings.h"

/* A device that is not at its address, and its card if found. */
typedef struct Search {
        Rematch found;
        const AllocationDevice *device;
} Search;

static bool same_function(PciAddress a, PciAddress b) {
        return a.slot == b.slot && a.function == b.function;
}

bool rematch_may_be(const AllocationDevice *d, const PciDevice *dev) {
        if (dev->vendor != d->vendor || dev->device != d->device || dev->subsystem_vendor != d->subsystem_vendor ||
            dev->subsystem_device != d->subsystem_device || d->is_vf != (dev->type == PCI_TYPE_VF))
                return false;
        if (!d->is_vf)
                return same_function(d->address, dev->address);
        return d->vf_index >= 0 && d->vf_index == dev->vf_index && same_function(d->physfn, dev->physfn);
}

bool rematch_is_home(const AllocationDevice *d, const Inventory *inv) {
        const PciDevice *dev = inventory_find(inv, d->address);

        return dev && allocation_device_is(d, dev) && streq_ptr(d->path, dev->path);
}

/* Returns the length of the first component of a path. */
static size_t component(const char *path) {
        return strcspn(path, "/");
}

static bool same_component(const char *a, size_t n, const char *b, size_t m) {
        PciAddress x, y;

        if (pci_address_parse_part(a, n, &x) == 0 && pci_address_parse_part(b, m, &y) == 0)
                return same_function(x, y);
        return n == m && memcmp(a, b, n) == 0;
}

/* Returns true when both paths go through the same slots. PCI components count as equal when their slots and functions
 * are equal, because bus numbers change. length_a, length_b: where the paths end. */
static bool same_slots(const char *a, size_t length_a, const char *b, size_t length_b) {
        const char *end_a = a + length_a, *end_b = b + length_b;

        while (a < end_a && b < end_b) {
                size_t n = MIN(component(a), (size_t) (end_a - a)), m = MIN(component(b), (size_t) (end_b - b));

                if (!same_component(a, n, b, m))
                        return false;
                a += MIN(n + 1, (size_t) (end_a - a));
                b += MIN(m + 1, (size_t) (end_b - b));
        }
        return a == end_a && b == end_b;
}

bool rematch_same_slots(const char *a, const char *b) {
        return same_slots(a, strlen(a), b, strlen(b));
}

/* Returns the length of the path of the parent, which a VF shares with its PF. */
static size_t above(const char *path) {
        const char *last = strrchr(path, '/');

        return last ? (size_t) (last - path) : 0;
}

static bool is_in_same_slot(const AllocationDevice *d, const PciDevice *dev) {
        const char *was = d->path ?: "", *now = dev->path ?: "";

        /* An unknown path matches nothing. */
        if (!*was || !*now)
                return false;
        return d->is_vf ? same_slots(was, above(was), now, above(now)) : rematch_same_slots(was, now);
}

/* Finds the card of `d` by its serial number. If several cards have the serial number, the slot decides among them; if
 * none has it, the slot alone. NULL: no card, or several. */
static const PciDevice *find_card(const AllocationDevice *d, const Inventory *inv, const unsigned *taken) {
        const PciDevice *by_serial = NULL, *by_slot = NULL, *by_both = NULL;
        size_t serials = 0, slots = 0, both = 0;

        for (size_t i = 0; i < inv->n_devices; i++) {
                const PciDevice *dev = &inv->devices[i];
                bool serial = d->serial != 0 && dev->serial_known && dev->serial == d->serial, slot;

                if (taken[i] > 0 || !rematch_may_be(d, dev) || allocation_device_differs(d, dev))
                        continue;
                slot = is_in_same_slot(d, dev);
                serials += serial;
                slots += slot;
                both += serial && slot;
                by_serial = serial ? dev : by_serial;
                by_slot = slot ? dev : by_slot;
                by_both = serial && slot ? dev : by_both;
        }
        if (serials > 0)
                return serials == 1 ? by_serial : both == 1 ? by_both : NULL;
        return slots == 1 ? by_slot : NULL;
}

/*
 * Returns true when another device cannot move to `now` while `d` keeps its address: `d` and `now` have the same
 * address, or one has the address of the other's PF.
 */
static bool conflicts(const AllocationDevice *d, const PciDevice *now) {
        return pci_address_equal(d->address, now->address) ||
               (now->type == PCI_TYPE_VF && pci_address_equal(d->address, now->physfn)) ||
               (d->is_vf && pci_address_equal(d->physfn, now->address));
}

static bool is_displaced(const AllocationDevice *d, const Search *searches, size_t n) {
        for (size_t i = 0; !d->lost && i < n; i++)
                if (searches[i].found.now && conflicts(d, searches[i].found.now))
                        return true;
        return false;
}

/* Lists the devices that are not at their address. Increases taken[i] for each allocated device that is at its address,
 * where i is its index in the inventory. */
static int find_moved_devices(Allocation *const *allocations, size_t n_allocations, const Inventory *inv,
                              unsigned *taken, Search **ret, size_t *ret_n) {
        _cleanup_free_ Search *searches = NULL;
        size_t n = 0;

        for (size_t i = 0; i < n_allocations; i++)
                for (size_t j = 0; j < allocations[i]->n_devices; j++) {
                        const AllocationDevice *d = &allocations[i]->devices[j];

                        if (rematch_is_home(d, inv)) {
                                taken[inventory_device_index(inv, inventory_find(inv, d->address))]++;
                                continue;
                        }
                        if (ARRAY_RESERVE(searches, n) < 0)
                                return -ENOMEM;
                        searches[n++] = (Search) { { allocations[i], j, NULL }, d };
                }
        *ret = TAKE_PTR(searches);
        *ret_n = n;
        return 0;
}

int rematch_find(Allocation *const *allocations, size_t n_allocations, const Inventory *inv, Rematch **ret,
                 size_t *ret_n) {
        _cleanup_free_ unsigned *taken = calloc(inv->n_devices + 1, sizeof(*taken));
        _cleanup_free_ Rematch *found = NULL;
        _cleanup_free_ Search *searches = NULL;
        size_t n_searches = 0, n = 0;

        if (!taken || find_moved_devices(allocations, n_allocations, inv, taken, &searches, &n_searches) < 0)
                return -ENOMEM;
        found = calloc(n_searches + 1, sizeof(*found));
        if (!found)
                return -ENOMEM;
        for (size_t i = 0; i < n_searches; i++)
                searches[i].found.now = find_card(searches[i].device, inv, taken);
        /* Two devices have found the same card: neither gets it. */
        for (size_t i = 0; i < n_searches; i++)
                if (searches[i].found.now)
                        taken[inventory_device_index(inv, searches[i].found.now)]++;
        for (size_t i = 0; i < n_searches; i++)
                if (searches[i].found.now && taken[inventory_device_index(inv, searches[i].found.now)] > 1)
                        searches[i].found.now = NULL;
        for (size_t i = 0; i < n_searches; i++)
                if (searches[i].found.now || is_displaced(searches[i].device, searches, n_searches))
                        found[n++] = searches[i].found;
        *ret = TAKE_PTR(found);
        *ret_n = n;
        return 0;
}
