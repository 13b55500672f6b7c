/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Publishes changes of devices and allocations on the bus: the differences from the properties published last. */

#include <errno.h>

#include "manager.h"
#include "util/log.h"

void publisher_done(Publisher *p) {
        device_snapshot_list_free(p->shown);
        server_free(p->server);
}

static void on_removed(PciAddress address, void *userdata) {
        server_device_removed(userdata, address);
}

static void on_added(PciAddress address, void *userdata) {
        server_device_added(userdata, address);
}

static void on_changed(PciAddress address, unsigned properties, void *userdata) {
        server_device_changed(userdata, address, properties);
}

void manager_publish(Manager *m) {
        static const ChangeHandler handler = { on_removed, on_added, on_changed };
        HostView view = host_state_view(&m->host);
        DeviceSnapshotList *now;

        if (!m->publisher.shown)
                return;
        reconcile_want(&m->reconcile);
        now = device_snapshot_list_new(&view);
        if (!now) {
                log_warning_errno(-ENOMEM, "Failed to signal changes of devices, ignoring: %m");
                return;
        }
        device_snapshot_lists_compare(m->publisher.shown, now, &handler, m->publisher.server);
        device_snapshot_list_free(m->publisher.shown);
        m->publisher.shown = now;
}

/* Returns -ESTALE when the device was added, removed or replaced, which manager_publish() has to handle. */
static int publish_device(Manager *m, PciAddress address) {
        HostView view = host_state_view(&m->host);
        const PciDevice *dev = inventory_find(m->host.inventory, address);
        DeviceSnapshot *shown = device_snapshot_list_find(m->publisher.shown, address), now;
        unsigned properties;

        if (!dev || !shown)
                return dev || shown ? -ESTALE : 0;
        now = device_snapshot(&view, dev);
        if (now.identity != shown->identity)
                return -ESTALE;
        properties = device_snapshot_differences(shown, &now);
        *shown = now;
        if (properties != 0)
                server_device_changed(m->publisher.server, address, properties);
        return 0;
}

/* Publishes each device once; publishes all devices when that fails, or when r is negative. */
static void publish_all_of(Manager *m, PciAddress *devices, size_t n, int r) {
        pci_addresses_sort(devices, &n);
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = publish_device(m, devices[i]);
        if (r < 0)
                manager_publish(m);
}

void manager_publish_devices(Manager *m, const PciAddress *devices, size_t n) {
        _cleanup_free_ PciAddress *concerned = NULL;
        size_t n_concerned = 0;
        int r = 0;

        if (!m->publisher.shown)
                return;
        reconcile_want(&m->reconcile);
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = changes_append_relatives(m->host.inventory, devices[i], NULL, &concerned, &n_concerned);
        publish_all_of(m, concerned, n_concerned, r);
}

void manager_publish_allocation(Manager *m, const Allocation *a) {
        _cleanup_free_ PciAddress *concerned = NULL;
        size_t n_concerned = 0;
        int r = 0;

        if (!m->publisher.shown)
                return;
        reconcile_want(&m->reconcile);
        for (size_t i = 0; r >= 0 && i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];

                r = changes_append_relatives(m->host.inventory, d->address, d->is_vf ? &d->physfn : NULL, &concerned,
                                             &n_concerned);
        }
        publish_all_of(m, concerned, n_concerned, r);
}

/* A region's members are a property of each of them. */
static void tell_members(Manager *m, const Allocation *a) {
        for (size_t i = 0; i < a->n_regions; i++) {
                const SharedRegion *s = ledger_find_region(m->host.ledger, a->regions[i].name);

                for (size_t j = 0; s && j < s->n_members; j++) {
                        Allocation *member = ledger_find(m->host.ledger, s->members[j]->name);

                        if (member != a && member->is_shown)
                                server_allocation_changed(m->publisher.server, member->name,
                                                          allocation_note_shown(member));
                }
        }
}

void manager_tell_allocation(Manager *m, Allocation *a) {
        unsigned properties;

        if (!m->publisher.shown)
                return;
        reconcile_want(&m->reconcile);
        properties = allocation_note_shown(a);
        if (a->is_shown) {
                server_allocation_changed(m->publisher.server, a->name, properties);
                return;
        }
        a->is_shown = true;
        server_allocation_new(m->publisher.server, a->name);
        tell_members(m, a);
}

void manager_tell_removed(Manager *m, const Allocation *a) {
        if (!m->publisher.shown || !a->is_shown)
                return;
        reconcile_want(&m->reconcile);
        server_allocation_removed(m->publisher.server, a->name);
        tell_members(m, a);
}

void manager_show_allocations(Manager *m) {
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                (void) allocation_note_shown(m->host.ledger->allocations[i]);
                m->host.ledger->allocations[i]->is_shown = true;
        }
}
