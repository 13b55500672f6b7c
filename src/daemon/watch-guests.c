/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Watches libvirt's status files for the guests that run, and the devices that they use. */

#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>

#include "host/guests.h"
#include "inventory.h"
#include "operations.h"
#include "util/log.h"
#include "util/strings.h"

#define CHANGES (IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF)

static const Guest *find_guest(const GuestList *guests, const Allocation *a) {
        for (size_t i = 0; i < guests->n; i++)
                if (allocation_find_device(a, guests->devices[i].address))
                        return &guests->guests[guests->devices[i].guest];
        /* For an allocation without devices: the domain document of the daemon has its id as UUID. */
        for (size_t i = 0; i < guests->n_guests; i++)
                if (streq_ptr(guests->guests[i].uuid, a->id))
                        return &guests->guests[i];
        return NULL;
}

static void set_domain(Manager *m, Allocation *a, const char *domain) {
        if (streq_ptr(domain, a->domain) || string_copy(&a->domain, domain) < 0)
                return;
        if (domain)
                log_full(LOG_INFO, 0, (&(LogFields){ .allocation = a->name }), "The domain '%s' runs with '%s'.",
                         QUOTABLE(domain), a->name);
        else
                log_full(LOG_INFO, 0, (&(LogFields){ .allocation = a->name }), "No domain runs with '%s' any more.",
                         a->name);
        if (m->announced) {
                server_allocation_changed(m->publisher.server, a->name);
                manager_check_promise(m, a);
        }
        /* Saved, so that a restarted daemon still releases the allocation when the domain has ended meanwhile. */
        if (domain && a->release_with_domain && !a->had_domain) {
                a->had_domain = true;
                manager_set_state(m, a, a->state, a->reason);
        }
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
                history_record(HISTORY_CONTESTED, address, NULL, "%s", message);
        else
                history_record(HISTORY_UNCONTESTED, address, NULL, "No domain runs with %s any more.",
                               PCI_ADDRESS_STR(address));
        manager_publish_devices(m, &address, 1);
}

static bool is_used(const GuestList *guests, PciAddress address) {
        for (size_t i = 0; i < guests->n; i++)
                if (pci_address_equal(guests->devices[i].address, address))
                        return true;
        return false;
}

/* Finds devices that guests use without an allocation. Devices in no pool are ignored. */
static void look_for_foreign(Manager *m, const GuestList *guests) {
        for (size_t i = m->host.status.n; i-- > 0;) {
                PciAddress address = m->host.status.devices[i].address;

                if (!is_used(guests, address) || ledger_holder(m->host.ledger, address))
                        set_foreign(m, address, NULL);
        }
        for (size_t i = 0; i < guests->n; i++) {
                PciAddress address = guests->devices[i].address;
                const PciDevice *dev = inventory_find(m->host.inventory, address);

                if (dev && policy_pool(m->host.policy, dev) && !ledger_holder(m->host.ledger, address))
                        set_foreign(m, address, guests->guests[guests->devices[i].guest].domain);
        }
}

void manager_find_guests(Manager *m) {
        _cleanup_(cleanup_guest_list_free) GuestList *guests = NULL;
        int r = guests_read(m->fs, &guests);

        if (r < 0) {
                /* Keep the last known domains: a refused release is better than a device removed from a guest. */
                if (!m->watches.guests.unread)
                        log_warning_errno(r, "Failed to read the running guests in /" GUESTS_DIR ", ignoring: %m");
                m->watches.guests.unread = true;
                /* The guest may have ended, and its memory may be free again. */
                for (size_t i = 0; i < m->host.ledger->n_allocations; i++)
                        ledger_set_running(m->host.ledger, m->host.ledger->allocations[i], false);
                return;
        }
        m->watches.guests.unread = false;
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                Allocation *a = m->host.ledger->allocations[i];

                const Guest *guest = find_guest(guests, a);

                set_domain(m, a, guest ? guest->domain : NULL);
                ledger_set_running(m->host.ledger, a, guest && !guest->starting);
        }
        look_for_foreign(m, guests);
        m->reconcile.guests_read = true;
        reconcile_want(&m->reconcile);
}

static int on_change(sd_event_source *source, const struct inotify_event *event, void *userdata);

/* Watches the directory of the status files, or the parent in which it will be created. */
static void watch(Manager *m) {
        static const char *const paths[] = { GUESTS_DIR, "run/libvirt", "run" };
        int r = -ENOENT;

        for (size_t i = 0; i < ELEMENTSOF(paths) && r == -ENOENT; i++) {
                _cleanup_free_ char *path = NULL;

                if (string_replace(&path, "%s/%s", sysfs_root(m->fs), paths[i]) < 0)
                        return;
                m->watches.guests.source = sd_event_source_disable_unref(m->watches.guests.source);
                r = sd_event_add_inotify(m->event, &m->watches.guests.source, path, CHANGES | IN_ONLYDIR, on_change, m);
                m->watches.guests.found = r >= 0 && i == 0;
        }
        if (r < 0)
                log_warning_errno(r, "Failed to watch for guests, they are noticed on a rescan only, ignoring: %m");
}

static int on_change(sd_event_source *source, const struct inotify_event *event, void *userdata) {
        Manager *m = userdata;
        const char *name = event->len > 0 ? event->name : "", *suffix = strrchr(name, '.');
        bool gone = event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED);

        /* Ignore names other than status files and the directories that lead to them. */
        if (!gone && (m->watches.guests.found ? !suffix || !streq(suffix, ".xml")
                                              : !streq(name, "libvirt") && !streq(name, "qemu")))
                return 0;
        if (!m->watches.guests.found || gone)
                watch(m);
        manager_find_guests(m);
        return 0;
}

void manager_follow_guests(Manager *m) {
        watch(m);
        manager_find_guests(m);
}
