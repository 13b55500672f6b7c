/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the serial numbers of cards, and finds by them the cards that have another address after a boot. */

#include <assert.h>
#include <errno.h>

#include "facts.h"
#include "host/serial.h"
#include "ledger/rematch.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

static PciDevice *find_device(Manager *m, PciAddress address) {
        const PciDevice *dev = inventory_find(m->host.inventory, address);

        return dev ? &m->host.inventory->devices[inventory_device_index(m->host.inventory, dev)] : NULL;
}

/* Reads the serial number of the device; a VF has that of its PF. Skips a card in D3cold, which a read would wake up,
 * and a card that a job may be resetting. */
void manager_read_serial(Manager *m, PciDevice *dev) {
        PciDevice *card = dev->type == PCI_TYPE_VF ? find_device(m, dev->physfn) : dev;

        if (dev->serial_known || !card)
                return;
        if (!card->serial_known && !streq_ptr(card->power_state, "D3cold") && !manager_is_busy(m, card->address))
                card->serial_known = serial_read(m->fs, card->address, &card->serial) == 0;
        dev->serial = card->serial;
        dev->serial_known = card->serial_known;
}

static void read_serial_again(Manager *m, const Inventory *old, PciAddress address) {
        PciDevice *now = find_device(m, address);
        const PciDevice *before = now && old ? inventory_find(old, address) : NULL;

        if (before && before->instance == now->instance && before->serial_known) {
                now->serial = before->serial;
                now->serial_known = true;
        }
        if (now)
                manager_read_serial(m, now);
}

void manager_read_serials(Manager *m, const Inventory *old) {
        const Ledger *l = m->host.ledger;

        for (size_t i = 0; i < l->n_claims; i++)
                read_serial_again(m, old, l->claims[i].address);
        for (size_t i = 0; i < l->n_quarantined; i++)
                read_serial_again(m, old, l->quarantined[i]->devices[0].address);
}

void manager_note_serials(Manager *m, Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++) {
                PciDevice *dev = find_device(m, a->devices[i].address);

                if (dev)
                        manager_read_serial(m, dev);
                a->devices[i].serial = dev ? dev->serial : 0;
        }
}

/* If `d` has a serial number and is not at its address, reads the serial numbers of all devices that may be `d` at
 * another address. */
static void read_candidates(Manager *m, const AllocationDevice *d) {
        if (d->serial == 0 || rematch_is_home(d, m->host.inventory))
                return;
        for (size_t i = 0; i < m->host.inventory->n_devices; i++)
                if (rematch_may_be(d, &m->host.inventory->devices[i]))
                        manager_read_serial(m, &m->host.inventory->devices[i]);
}

static int find_relocations(Manager *m, Allocation *const *allocations, size_t n, Rematch **ret, size_t *ret_n) {
        int r;

        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < allocations[i]->n_devices; j++)
                        read_candidates(m, &allocations[i]->devices[j]);
        r = rematch_find(allocations, n, m->host.inventory, ret, ret_n);
        return r < 0 ? log_error_errno(r, "Failed to search for devices with changed addresses: %m") : 0;
}

static int save(Manager *m, const Allocation *a) {
        int r = store_save(m->store, a);

        if (r < 0)
                log_full(LOG_ERR, r, (&(LogFields) { .id = MESSAGE_LEDGER_WRITE, .allocation = a->name }),
                         "Failed to write the addresses of the devices of '%s' to the ledger: %m", a->name);
        return r;
}

/* Returns the index after the last entry of the allocation whose first entry is at index begin. The list is sorted by
 * allocation. */
static size_t end_of_allocation(const Rematch *list, size_t n, size_t begin) {
        size_t end = begin;

        while (end < n && list[end].allocation == list[begin].allocation)
                end++;
        return end;
}

static void adopt_moved(Manager *m, Allocation *a, const Rematch *list, size_t n) {
        _cleanup_refusal_ Refusal refusal = { 0 };

        if (ledger_adopt(m->host.ledger, a, &refusal) == VERDICT_NONE)
                return;
        log_full(LOG_ERR, 0, (&(LogFields) { .id = MESSAGE_DEVIATION, .allocation = a->name }),
                 "'%s' cannot keep its devices: %s", a->name, refusal.message);
        for (size_t i = 0; i < n; i++)
                a->devices[list[i].index].lost = true;
        (void) ledger_adopt(m->host.ledger, a, NULL);
}

static int drop_addresses(Manager *m, const Rematch *list, size_t n) {
        Allocation *a = ledger_remove(m->host.ledger, list[0].allocation->name);

        assert(a == list[0].allocation);
        for (size_t i = 0; i < n; i++)
                a->devices[list[i].index].lost = true;
        adopt_moved(m, a, list, n);
        return save(m, a);
}

static void record(Manager *m, const Allocation *a, const AllocationDevice *d, PciAddress before) {
        const char *was = PCI_ADDRESS_STR(before), *is = PCI_ADDRESS_STR(d->address);

        if (d->lost)
                note_event(m, HISTORY_MISSING, before, a,
                           "The card that was %s, allocated to '%s', is not on this node any more; another "
                           "allocated card has that address now.",
                           was, a->name);
        else if (!pci_address_equal(before, d->address))
                note_event(m, HISTORY_MOVED, d->address, a,
                           "%s is the card that was %s, and is still allocated to '%s'; its domain must be defined "
                           "again, 'passthroughctl xml %s' prints it.",
                           is, was, a->name, a->name);
}

static void set_addresses(Manager *m, const Rematch *list, size_t n, bool on_disk) {
        Allocation *a = ledger_remove(m->host.ledger, list[0].allocation->name);
        _cleanup_free_ PciAddress *before = NULL;
        size_t n_before = 0;

        assert(a == list[0].allocation);
        for (size_t i = 0; i < n; i++) {
                AllocationDevice *d = &a->devices[list[i].index];

                (void) pci_address_append(&before, &n_before, d->address);
                if (list[i].now)
                        (void) allocation_device_identify(d, m->host.inventory, list[i].now);
        }
        adopt_moved(m, a, list, n);
        if (on_disk)
                (void) save(m, a);
        for (size_t i = 0; i < MIN(n, n_before); i++)
                record(m, a, &a->devices[list[i].index], before[i]);
}

/* Adds an entry to the quarantine again. now: the card of the entry, at its new address. on_disk: also write the file.
 * Takes ownership of `a`. Returns 0, or a negative errno when the entry could not be changed or written. */
static int requarantine(Manager *m, Allocation *a, const PciDevice *now, bool on_disk) {
        PciAddress before = a->devices[0].address;
        int r = allocation_device_identify(&a->devices[0], m->host.inventory, now);

        if (r >= 0 && on_disk)
                r = store_save_quarantined(m->store, a);
        if (r < 0)
                log_full(LOG_ERR, r,
                         (&(LogFields) { .id = MESSAGE_LEDGER_WRITE, .device = PCI_ADDRESS_STR(now->address) }),
                         "Failed to write the quarantine of %s to disk: %m", PCI_ADDRESS_STR(now->address));
        if (ledger_quarantine(m->host.ledger, a) == 0)
                note_event(m, HISTORY_MOVED, now->address, NULL,
                           "%s is the card that was %s, and is still in quarantine.", PCI_ADDRESS_STR(now->address),
                           PCI_ADDRESS_STR(before));
        else
                allocation_free(a);
        return r;
}

/* Corrects the addresses of devices in quarantine. The file of each device is named after its address. */
static void find_moved_quarantined(Manager *m) {
        Ledger *l = m->host.ledger;
        _cleanup_free_ Rematch *list = NULL;
        _cleanup_free_ PciAddress *before = NULL;
        size_t n = 0, n_before = 0;
        bool saved = true;

        if (l->n_quarantined == 0 || find_relocations(m, l->quarantined, l->n_quarantined, &list, &n) < 0)
                return;
        /* First remove all entries, then add them with the new addresses. The entry of a missing card is dropped if
         * another card in quarantine now has its address. */
        for (size_t i = 0; i < n; i++) {
                (void) pci_address_append(&before, &n_before, list[i].allocation->devices[0].address);
                (void) ledger_unquarantine(l, list[i].allocation->devices[0].address);
        }
        for (size_t i = 0; i < n; i++)
                if (list[i].now)
                        saved = requarantine(m, list[i].allocation, list[i].now, saved) >= 0 && saved;
                else
                        allocation_free(list[i].allocation);
        /* After a failed write, leave the other files as they are: each file records the identity of its card, by which
         * the next start finds the card again. */
        for (size_t i = 0; saved && i < n_before; i++)
                if (!ledger_find_quarantined(l, before[i]))
                        saved = store_remove_quarantined(m->store, before[i]) >= 0;
}

/* Two cards may have swapped addresses, and each allocation has a file of its own. So first all old addresses are
 * removed from the files, and then the new ones are written: no two files ever have the same address, even after a
 * crash in between, from which the next start continues. If an old address cannot be removed, no new one is written. */
void manager_find_moved(Manager *m) {
        _cleanup_free_ Rematch *list = NULL;
        size_t n = 0;
        Ledger *l = m->host.ledger;
        int r = 0;

        if (l->read_only)
                return;
        find_moved_quarantined(m);
        if (find_relocations(m, l->allocations, l->n_allocations, &list, &n) < 0)
                return;
        for (size_t i = 0, end; i < n; i = end) {
                int saved;

                end = end_of_allocation(list, n, i);
                saved = drop_addresses(m, &list[i], end - i);
                r = r < 0 ? r : saved;
        }
        for (size_t i = 0, end; i < n; i = end) {
                end = end_of_allocation(list, n, i);
                set_addresses(m, &list[i], end - i, r >= 0);
        }
        if (r < 0)
                (void) string_replace(&l->read_only,
                                      "Devices have other addresses than before, and the ledger could not be written: "
                                      "%s. Nothing can be allocated or released until the file system of the state "
                                      "directory is repaired and the daemon restarted.",
                                      strerror(-r));
}
