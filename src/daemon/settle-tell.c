/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tells the journal and clients what was noted: events, allocations, devices and jobs. */

#include <errno.h>

#include "settle.h"
#include "state.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/messages.h"

static const struct {
        const char *name; /* the value of the field PASSTHROUGH_EVENT= */
        int level;
        const char *id;
} kinds[_HISTORY_EVENT_MAX] = {
        [HISTORY_RESERVED] = { "reserved", LOG_INFO, MESSAGE_DEVICE_RESERVED },
        [HISTORY_READY] = { "ready", LOG_INFO, MESSAGE_DEVICE_READY },
        [HISTORY_RELEASED] = { "released", LOG_INFO, MESSAGE_DEVICE_RELEASED },
        [HISTORY_EXPIRED] = { "expired", LOG_NOTICE, MESSAGE_LEASE_EXPIRED },
        [HISTORY_FAILED] = { "failed", LOG_NOTICE, MESSAGE_DEVICE_FAILED },
        [HISTORY_RESUMED] = { "resumed", LOG_NOTICE, MESSAGE_DEVICE_RESUMED },
        [HISTORY_STUCK] = { "stuck", LOG_ERR, MESSAGE_DEVICE_STUCK },
        [HISTORY_UNSTUCK] = { "unstuck", LOG_NOTICE, MESSAGE_DEVICE_UNSTUCK },
        [HISTORY_CONTESTED] = { "contested", LOG_WARNING, MESSAGE_DEVICE_CONTESTED },
        [HISTORY_UNCONTESTED] = { "uncontested", LOG_NOTICE, MESSAGE_DEVICE_UNCONTESTED },
        [HISTORY_VFS_CREATED] = { "vfs-created", LOG_NOTICE, MESSAGE_VFS_CREATED },
        [HISTORY_VFS_CHANGED] = { "vfs-changed", LOG_NOTICE, MESSAGE_VFS_CHANGED },
        [HISTORY_VFS_REMOVED] = { "vfs-removed", LOG_NOTICE, MESSAGE_VFS_REMOVED },
        [HISTORY_HARDWARE_CHANGED] = { "hardware-changed", LOG_ERR, MESSAGE_HARDWARE_CHANGED },
        [HISTORY_MISSING] = { "missing", LOG_WARNING, MESSAGE_DEVICE_MISSING },
        [HISTORY_BACK] = { "back", LOG_NOTICE, MESSAGE_DEVICE_BACK },
        [HISTORY_MOVED] = { "moved", LOG_WARNING, MESSAGE_DEVICE_MOVED },
        [HISTORY_ACCEPTED] = { "accepted", LOG_NOTICE, MESSAGE_DEVICE_ACCEPTED },
        [HISTORY_QUARANTINED] = { "quarantined", LOG_ERR, MESSAGE_DEVICE_QUARANTINED },
        [HISTORY_CLEARED] = { "cleared", LOG_NOTICE, MESSAGE_DEVICE_CLEARED },
        [HISTORY_UNHEALTHY] = { "unhealthy", LOG_ERR, MESSAGE_DEVICE_UNHEALTHY },
        [HISTORY_HEALTHY] = { "healthy", LOG_NOTICE, MESSAGE_DEVICE_HEALTHY },
        [HISTORY_PROMISE_BROKEN] = { "promise-broken", LOG_ERR, MESSAGE_PROMISE_BROKEN },
        [HISTORY_PROMISE_KEPT] = { "promise-kept", LOG_NOTICE, MESSAGE_PROMISE_KEPT },
};

static void tell_events(Manager *m) {
        for (size_t i = 0; i < m->notes.n_events; i++) {
                const NotedEvent *e = &m->notes.events[i];

                log_event(kinds[e->kind].level,
                          &(LogFields) { .id = kinds[e->kind].id,
                                         .event = kinds[e->kind].name,
                                         .device = e->devices,
                                         .allocation = e->allocation,
                                         .owner = e->allocation ? e->owner : NULL,
                                         .generation = e->allocation ? e->generation : NULL,
                                         .tag = e->tag },
                          e->message);
        }
        notes_drop_events(&m->notes);
}

/* Signals changes of allocations; first the removed ones, because a new allocation may have the name of a removed
 * one. */
static void tell_allocations(Manager *m) {
        Notes *n = &m->notes;

        for (size_t i = 0; i < n->n_removed; i++)
                server_allocation_removed(m->told.server, n->removed[i]);
        n->removed = free_names(n->removed, n->n_removed);
        n->n_removed = 0;
        for (size_t i = 0; n->allocations && i < m->host.ledger->n_allocations; i++) {
                Allocation *a = m->host.ledger->allocations[i];
                unsigned properties;

                if (!a->status.is_noted)
                        continue;
                a->status.is_noted = false;
                properties = allocation_note_shown(a);
                if (a->status.is_shown)
                        server_allocation_changed(m->told.server, a->name, properties);
                else
                        server_allocation_new(m->told.server, a->name);
                a->status.is_shown = true;
        }
        n->allocations = false;
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

/* Signals each device that was added or removed, and each property whose value differs from the last signalled one. */
static void tell_all_devices(Manager *m) {
        static const ChangeHandler handler = { on_removed, on_added, on_changed };
        HostView view = host_state_view(&m->host);
        DeviceSnapshotList *now = device_snapshot_list_new(&view);

        if (!now) {
                log_warning_errno(-ENOMEM, "Failed to signal changes of devices, ignoring: %m");
                return;
        }
        device_snapshot_lists_compare(m->told.devices, now, &handler, m->told.server);
        device_snapshot_list_free(m->told.devices);
        m->told.devices = now;
}

/* Signals the changes of one device. Returns 0; or -ESTALE when the device was added, removed or replaced, so that
 * tell_all_devices() has to signal it. */
static int tell_device(Manager *m, PciAddress address) {
        HostView view = host_state_view(&m->host);
        const PciDevice *dev = inventory_find(m->host.inventory, address);
        DeviceSnapshot *told = device_snapshot_list_find(m->told.devices, address), now;
        unsigned properties;

        if (!dev || !told)
                return dev || told ? -ESTALE : 0;
        now = device_snapshot(&view, dev);
        if (now.identity != told->identity)
                return -ESTALE;
        properties = device_snapshot_differences(told, &now);
        *told = now;
        if (properties != 0)
                server_device_changed(m->told.server, address, properties);
        return 0;
}

/* Signals the changes of the noted devices and their relatives (changes_append_relatives()), at a cost that grows with
 * the number of these devices. Returns 0 or a negative errno. */
static int tell_noted_devices(Manager *m) {
        _cleanup_free_ PciAddress *concerned = NULL;
        size_t n = 0;

        for (size_t i = 0; i < m->notes.n_devices; i++) {
                int r = changes_append_relatives(m->host.inventory, m->notes.devices[i], NULL, &concerned, &n);

                if (r < 0)
                        return r;
        }
        pci_addresses_sort(concerned, &n);
        for (size_t i = 0; i < n; i++) {
                int r = tell_device(m, concerned[i]);

                if (r < 0)
                        return r;
        }
        return 0;
}

static void tell_job(Manager *m, Job *job) {
        const unsigned noted = job->noted;

        job->noted = 0;
        if (noted == 0 || job->removed)
                return;
        if (noted & JOB_NOTE_BEGUN)
                server_job_new(m->told.server, job->id);
        else if (noted & JOB_NOTE_CHANGED)
                server_job_changed(m->told.server, job->id);
        if (noted & JOB_NOTE_ENDED) {
                server_job_removed(m->told.server, job->id, job_result_to_string(job->result));
                job->removed = true;
        }
}

void settle_tell(Manager *m) {
        Notes *n = &m->notes;

        tell_events(m);
        if (m->told.devices) {
                tell_allocations(m);
                if (n->all_devices || tell_noted_devices(m) < 0)
                        tell_all_devices(m);
        }
        n->all_devices = false;
        n->n_devices = 0;
        for (size_t i = 0; i < m->jobs.n; i++)
                tell_job(m, m->jobs.list[i]);
        job_queue_drop_gone(&m->jobs);
        server_settle(m->told.server);
}

int settle_show(Manager *m) {
        HostView view = host_state_view(&m->host);

        m->told.devices = device_snapshot_list_new(&view);
        if (!m->told.devices)
                return -ENOMEM;
        for (size_t i = 0; i < m->host.ledger->n_allocations; i++) {
                (void) allocation_note_shown(m->host.ledger->allocations[i]);
                m->host.ledger->allocations[i]->status.is_shown = true;
        }
        return 0;
}

void told_done(Told *t) {
        device_snapshot_list_free(t->devices);
        server_free(t->server);
}
