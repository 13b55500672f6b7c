/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Follows the guests that libvirt reports, and the devices that they use. */

#include "facts.h"
#include "operations.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

static void set_domain(Manager *m, Allocation *a, const char *domain) {
        if (streq_ptr(domain, a->status.domain) || string_copy(&a->status.domain, domain) < 0)
                return;
        if (domain)
                log_full(LOG_INFO, 0, (&(LogFields) { .allocation = a->name }), "The domain '%s' runs with '%s'.",
                         QUOTABLE(domain), a->name);
        else
                log_full(LOG_INFO, 0, (&(LogFields) { .allocation = a->name }), "No domain runs with '%s' any more.",
                         a->name);
        if (m->announced) {
                note_allocation(m, a);
                note_facts(m);
        }
        /* Write this to disk: if the domain ends while the daemon does not run, the next start must release the
         * allocation. */
        if (domain && a->release_with_domain && !a->had_domain) {
                a->had_domain = true;
                (void) manager_set_state(m, a, a->state, a->reason);
        }
}

/* Stores the places of the devices in the guest, on disk too: a restarted daemon needs them while libvirt does not
 * answer. */
static void set_places(Manager *m, Allocation *a, const Guest *guest) {
        bool differs = false;

        for (size_t i = 0; i < a->n_devices; i++) {
                AllocationDevice *d = &a->devices[i];
                GuestPlace place = guest ? guest_find_place(guest, ALLOCATION_DEVICE_SOURCE(d)) : (GuestPlace) { 0 };

                differs = differs || !guest_place_equal(&place, &d->guest);
                d->guest = place;
        }
        if (differs)
                (void) manager_set_state(m, a, a->state, a->reason);
}

static void set_foreign(Manager *m, PciAddress address, const char *domain) {
        const char *known = device_status_get(&m->host.status, address, DEVICE_FOREIGN);
        _cleanup_free_ char *message = NULL;

        if (domain && string_replace(&message, "The domain '%s' runs with %s, which is in no allocation.",
                                     QUOTABLE(domain), PCI_ADDRESS_STR(address)) < 0)
                return;
        if (streq_ptr(message, known) || device_status_set(&m->host.status, address, DEVICE_FOREIGN, message) < 0)
                return;
        if (domain)
                note_event(m, HISTORY_CONTESTED, address, NULL, "%s", message);
        else
                note_event(m, HISTORY_UNCONTESTED, address, NULL, "No domain runs with %s any more.",
                           PCI_ADDRESS_STR(address));
        note_device(m, address);
}

/* Records that a guest of Nova has the device; domain NULL: that none has it any more. In the pools of Nova it is
 * expected that a guest has a device without an allocation. */
static void set_assigned(Manager *m, PciAddress address, const char *domain) {
        const char *known = device_status_get(&m->host.status, address, DEVICE_ASSIGNED);
        _cleanup_free_ char *message = NULL;

        if (domain && string_replace(&message, "The domain '%s' of Nova runs with %s.", QUOTABLE(domain),
                                     PCI_ADDRESS_STR(address)) < 0)
                return;
        if (streq_ptr(message, known) || device_status_set(&m->host.status, address, DEVICE_ASSIGNED, message) < 0)
                return;
        if (message)
                manager_note_used(m, address, message);
        note_device(m, address);
}

/* Finds the device by a name in Guest.devices: the address of a function, or the UUID of a mediated device. NULL: there
 * is none. */
static const PciDevice *find_device(const Inventory *inv, const char *source) {
        PciAddress address;

        if (pci_address_parse(source, &address) >= 0)
                return inventory_find(inv, address);
        for (size_t i = 0; i < inv->n_devices; i++)
                if (streq(inv->devices[i].mdev, source))
                        return &inv->devices[i];
        return NULL;
}

/* Finds devices that a guest has without an allocation. Devices in no pool do not matter. */
static void look_for_foreign(Manager *m, const GuestList *guests) {
        for (size_t i = m->host.status.n; i-- > 0;) {
                PciAddress address = m->host.status.devices[i].address;
                const PciDevice *dev = inventory_find(m->host.inventory, address);
                const char *source = dev && *dev->mdev ? dev->mdev : PCI_ADDRESS_STR(address);

                if (!guest_list_find_device(guests, source) || ledger_holder(m->host.ledger, address)) {
                        set_foreign(m, address, NULL);
                        set_assigned(m, address, NULL);
                }
        }
        for (size_t i = 0; i < guests->n; i++)
                for (size_t j = 0; j < guests->guests[i].n_devices; j++) {
                        const PciDevice *dev = find_device(m->host.inventory, guests->guests[i].devices[j]);
                        const Pool *pool = dev ? policy_pool(m->host.policy, dev) : NULL;
                        bool expected = pool && pool->scheduler == POOL_SCHEDULER_NOVA;

                        if (!pool || ledger_holder(m->host.ledger, dev->address))
                                continue;
                        set_assigned(m, dev->address, expected ? guests->guests[i].domain : NULL);
                        set_foreign(m, dev->address, expected ? NULL : guests->guests[i].domain);
                }
}

void manager_find_guests(Manager *m) {
        const GuestList *guests = m->watches.guests ? guest_client_list(m->watches.guests) : NULL;
        bool known = manager_knows_guests(m);

        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                Allocation *a = m->host.ledger->allocations[i];
                const Guest *guest = known ? manager_find_guest(guests, a) : NULL;

                /* While libvirt does not report guests, keep the last known domain: it is better to refuse a release
                 * than to take a device from a running guest. */
                if (known) {
                        set_domain(m, a, guest ? guest->domain : NULL);
                        set_places(m, a, guest);
                }
                manager_mark_running(m, a, guest);
        }
        if (!known)
                return;
        look_for_foreign(m, guests);
        m->notes.guests_read = m->notes.cleaning_due = true;
        note_turn(m);
}

/* Logs once that libvirt no longer reports guests, and once that it reports them again. Does not log that libvirt does
 * not run or has not answered yet (GUEST_CLIENT_WAITS). */
static void note_status(LibvirtStatus *status, const char *unknown) {
        if (streq_ptr(status->reason, unknown))
                return;
        if (!status->reason)
                status->since = clock_usec(CLOCK_REALTIME) / 1000000;
        if (!unknown && status->logged)
                log_full(LOG_INFO, 0, (&(LogFields) { .id = MESSAGE_LIBVIRT_BACK }),
                         "libvirt reports the running domains again.");
        else if (unknown && !status->logged && !streq(unknown, GUEST_CLIENT_WAITS))
                log_full(LOG_WARNING, 0, (&(LogFields) { .id = MESSAGE_LIBVIRT_LOST }),
                         "The running domains are unknown, ignoring: %s", unknown);
        status->logged = unknown && (status->logged || !streq(unknown, GUEST_CLIENT_WAITS));
        (void) string_copy(&status->reason, unknown);
}

static void on_guests(void *userdata) {
        Manager *m = userdata;

        note_status(&m->host.libvirt, guest_client_unknown(m->watches.guests));
        m->host.inventory->libvirt = guest_client_list(m->watches.guests)->features;
        manager_find_guests(m);
        note_turn(m);
        m->notes.guests_answered = guest_client_answered(m->watches.guests);
}

void manager_ask_guests(Manager *m) {
        if (m->watches.guests)
                (void) guest_client_ask(m->watches.guests);
}

void manager_expect_guests(Manager *m) {
        if (m->watches.guests)
                guest_client_expect(m->watches.guests);
}

void manager_follow_guests(Manager *m) {
        LibvirtStatus *status = &m->host.libvirt;
        int r;

        if (!m->host.config->libvirt)
                return;
        status->configured = true;
        status->since = clock_usec(CLOCK_REALTIME) / 1000000;
        if (string_copy(&status->reason, GUEST_CLIENT_WAITS) < 0)
                return;
        r = guest_client_new(m->event, m->fs, m->host.config->libvirt, on_guests, m, &m->watches.guests);
        if (r < 0)
                log_warning_errno(r, "Failed to watch for libvirt, running domains are not noticed, ignoring: %m");
        manager_ask_guests(m);
}
