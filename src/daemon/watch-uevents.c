/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Follows changes of the node by the events of udev. An event only tells what to read again: a device, the
 * drivers, or the CPUs and memory. Events are collected until there is a pause, so that many events in a row cost one
 * read. */

#include <assert.h>
#include <errno.h>

#include "facts.h"
#include "host/uevent.h"
#include "util/log.h"
#include "util/strings.h"

/* The most devices with events in the queue. If there are more, the whole node is scanned. */
#define EVENTS_MAX      256U
/* The events in the queue are handled when none has arrived for QUIET_USEC, and at the latest PATIENCE_USEC after the
 * first. */
#define QUIET_USEC      (100U * 1000U)
#define PATIENCE_USEC   (500U * 1000U)
/* The most events that are read in one turn of the event loop. */
#define EVENTS_PER_TURN 256U
#define TIMER_ACCURACY  (10U * 1000U)

/* All events of a device since it was last read. */
typedef struct Event {
        PciAddress address;
        bool removed; /* there was a remove event, so a device that is now at the address is new */
        bool bound;   /* the last event, not counting changes, was bind, so the driver's probe has finished */
        bool unbound; /* the last event was unbind */
        bool changed; /* all events were changes or unbinds, so the device has the driver that was read last, or none */
} Event;

struct UeventQueue {
        UeventMonitor *monitor;
        sd_event_source *io, *timer;
        Event events[EVENTS_MAX]; /* events of a device on which a job works stay until the job has ended */
        size_t n_events;
        bool everything; /* events were lost or did not fit, so the whole node must be scanned */
        bool drivers;    /* a driver was registered or unregistered */
        bool capacity;   /* CPUs or memory were added or removed */
        uint64_t first;  /* when the first event in the queue arrived, CLOCK_MONOTONIC usec; 0: none */
};

void manager_open_uevents(Manager *m) {
        UeventQueue *uevents = calloc(1, sizeof(*uevents));
        int r = uevents ? uevent_monitor_new(&uevents->monitor) : -ENOMEM;

        if (r >= 0) {
                m->watches.uevents = uevents;
                return;
        }
        free(uevents);
        log_warning_errno(r,
                          "Failed to listen to udev, changes of the node are noticed on a rescan only, ignoring: %m");
}

UeventQueue *uevent_queue_free(UeventQueue *q) {
        if (!q)
                return NULL;
        sd_event_source_disable_unref(q->io);
        sd_event_source_disable_unref(q->timer);
        uevent_monitor_free(q->monitor);
        free(q);
        return NULL;
}

/* Sets the timer to QUIET_USEC from now, but at most PATIENCE_USEC after the first event. */
static void arm_timer(Manager *m) {
        UeventQueue *uevents = m->watches.uevents;
        uint64_t now;

        if (sd_event_now(m->event, CLOCK_MONOTONIC, &now) < 0)
                return;
        if (uevents->first == 0)
                uevents->first = now;
        (void) sd_event_source_set_time(uevents->timer, MIN(now + QUIET_USEC, uevents->first + PATIENCE_USEC));
        (void) sd_event_source_set_enabled(uevents->timer, SD_EVENT_ONESHOT);
}

static void add_event(UeventQueue *uevents, UeventAction action, PciAddress address) {
        Event *e = uevents->events, *end = e + uevents->n_events;

        while (e < end && !pci_address_equal(e->address, address))
                e++;
        if (e == end && uevents->n_events == EVENTS_MAX) {
                uevents->everything = true;
                return;
        }
        if (e == end) {
                *e = (Event) { .address = address, .changed = true };
                uevents->n_events++;
        }
        e->removed = e->removed || action == UEVENT_REMOVE;
        e->bound = action == UEVENT_BIND || (e->bound && action == UEVENT_CHANGE);
        e->unbound = action == UEVENT_UNBIND;
        e->changed = e->changed && (action == UEVENT_CHANGE || action == UEVENT_UNBIND);
}

static int on_event(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Manager *m = userdata;

        for (unsigned i = 0; i < EVENTS_PER_TURN; i++) {
                UeventAction action;
                PciAddress address;
                int r = uevent_monitor_read(m->watches.uevents->monitor, &action, &address);

                if (r == 0)
                        break;
                if (r > 0 && action == UEVENT_DRIVERS)
                        m->watches.uevents->drivers = true;
                else if (r > 0 && action == UEVENT_CAPACITY)
                        m->watches.uevents->capacity = true;
                else if (r > 0) {
                        add_event(m->watches.uevents, action, address);
                        /* Forget the minor, which is read again when the job has ended. Until then any process with an
                         * NVIDIA device node open counts as a user of the GPU. */
                        if (action == UEVENT_BIND && manager_is_busy(m, address))
                                manager_forget_gpu(m, address);
                } else
                        m->watches.uevents->everything = true;
                if (r < 0 && r != -ENOBUFS) {
                        log_warning_errno(r, "Failed to read events of udev, from now on changes of the node are "
                                             "noticed on a rescan only, ignoring: %m");
                        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
                        break;
                }
        }
        if (m->watches.uevents->everything || m->watches.uevents->drivers || m->watches.uevents->capacity ||
            m->watches.uevents->n_events > 0)
                arm_timer(m);
        return 0;
}

/* The devices to read, sorted by how to read them. */
typedef struct ReadList {
        PciAddress *fresh; /* new devices, to be scanned */
        size_t n_fresh;
        PciAddress *bound; /* known or new devices whose driver has finished its probe, and GPUs that may have types of
                              mediated devices */
        size_t n_bound;
        PciAddress *other; /* known devices whose driver may have changed and may still be in its probe */
        size_t n_other;
} ReadList;

static void read_list_done(ReadList *l) {
        free(l->fresh);
        free(l->bound);
        free(l->other);
}

/*
 * Returns true when the types and the mediated devices of a GPU must be read, because there was a change event of the
 * GPU. The kernel sends one when the driver registers types, as NVIDIA's driver does when nvidia-vgpud runs; and an
 * event of a mediated device counts as a change of its GPU. The types and the mediated devices are only read where
 * vGPUs are offered or allocated. Those of a VF are left to the next request: an unbind counts as a change too, and
 * after it the next driver of the VF may hold the device lock.
 */
static bool may_have_types(const Manager *m, const Event *e) {
        const PciDevice *gpu = e->changed ? inventory_find(m->host.inventory, e->address) : NULL;
        const PciDevice *offered = gpu && gpu->n_vfs > 0 ? inventory_find(m->host.inventory, gpu->vfs[0]) : gpu;
        const Pool *pool = offered ? policy_pool(m->host.policy, offered) : NULL;

        return gpu && gpu->driver && gpu->type == PCI_TYPE_DEVICE &&
               ((pool && pool->vgpu_type) || ledger_pf_use(m->host.ledger, e->address) > 0);
}

static int add_to_list(Manager *m, const Event *e, ReadList *l) {
        bool fresh = e->removed || !inventory_find(m->host.inventory, e->address);
        bool bound = e->bound || may_have_types(m, e);
        int r;

        if (!fresh && manager_is_busy(m, e->address)) {
                assert(m->watches.uevents->n_events < EVENTS_MAX);
                m->watches.uevents->events[m->watches.uevents->n_events++] = *e;
                return 0;
        }
        if (!fresh && !bound)
                return pci_address_append(&l->other, &l->n_other, e->address);
        r = fresh ? pci_address_append(&l->fresh, &l->n_fresh, e->address) : 0;
        return r < 0 || !bound ? r : pci_address_append(&l->bound, &l->n_bound, e->address);
}

static int refresh_devices(Manager *m, const PciAddress *devices, size_t n, bool locked) {
        int r = manager_refresh(m, devices, n, locked);

        if (r > 0)
                note_devices(m, devices, n);
        return r;
}

static int read_devices(Manager *m, const Event *events, size_t n) {
        _cleanup_(read_list_done) ReadList l = { 0 };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = add_to_list(m, &events[i], &l);
        log_debug("Events of %zu devices: scanning %zu, refreshing %zu.", n, l.n_fresh, l.n_bound + l.n_other);
        if (r >= 0 && l.n_fresh > 0)
                r = manager_scan_devices(m, l.fresh, l.n_fresh, true);
        if (r < 0)
                return r;
        r = refresh_devices(m, l.bound, l.n_bound, false);
        if (r < 0)
                return r;
        return refresh_devices(m, l.other, l.n_other, true);
}

/* Has GPUs probed again, because even the same driver may have given a GPU another minor, or may have lost the GPU. A
 * bind or an unbind is no reason to suspect a loss: when an unbind is handled late, the GPU may be bound again already.
 */
static void probe_gpus(Manager *m, const Event *events, size_t n) {
        for (size_t i = 0; i < n; i++)
                manager_doubt_gpu(m, events[i].address, !events[i].bound && !events[i].unbound);
        manager_probe_gpus(m);
}

/* Checks the health of the changed devices, because the kernel also sends an event when it has tried to recover a
 * device from an error. */
static void check_health(Manager *m, const Event *events, size_t n) {
        PciAddress devices[EVENTS_MAX];

        for (size_t i = 0; i < n; i++)
                devices[i] = events[i].address;
        manager_check_health_of(m, devices, n);
}

/* Notes as new the PFs that need VFs and were bound to a driver just now, because only now can the VFs be created. */
static void find_late_pfs(Manager *m, const Event *events, size_t n) {
        for (size_t i = 0; i < n; i++) {
                const PciDevice *dev = inventory_find(m->host.inventory, events[i].address);

                if (dev && events[i].bound && dev->n_vfs == 0 && policy_vf_pool(m->host.policy, dev))
                        note_arrived(m, dev->address);
        }
}

static int on_quiet(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;
        UeventQueue *uevents = m->watches.uevents;
        Event events[EVENTS_MAX];
        size_t n = uevents->n_events;
        bool everything = uevents->everything;
        int r;

        memcpy(events, uevents->events, n * sizeof(*events));
        uevents->n_events = 0;
        uevents->everything = false;
        uevents->first = 0;
        if (uevents->drivers && !everything)
                (void) manager_refresh_drivers(m);
        if (uevents->capacity && !everything)
                (void) manager_refresh_nodes(m);
        uevents->drivers = uevents->capacity = false;
        r = everything ? -ENOBUFS : read_devices(m, events, n);
        if (r < 0) {
                log_info("Uevents were lost or do not suffice, scanning the whole node.");
                (void) manager_scan(m);
        }
        find_late_pfs(m, events, n);
        probe_gpus(m, events, n);
        if (everything)
                manager_check_health(m, HEALTH_DUE_EVENT);
        else
                check_health(m, events, n);
        note_turn(m);
        return 0;
}

void manager_handle_kept_uevents(Manager *m) {
        if (m->watches.uevents && m->watches.uevents->n_events > 0)
                arm_timer(m);
}

int manager_follow_uevents(Manager *m) {
        int r;

        if (!m->watches.uevents)
                return 0;
        r = sd_event_add_time(m->event, &m->watches.uevents->timer, CLOCK_MONOTONIC, 0, TIMER_ACCURACY, on_quiet, m);
        if (r >= 0)
                r = sd_event_source_set_enabled(m->watches.uevents->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_io(m->event, &m->watches.uevents->io, uevent_monitor_fd(m->watches.uevents->monitor),
                                    EPOLLIN, on_event, m);
        return r < 0 ? log_error_errno(r, "Failed to listen to udev: %m") : 0;
}
