/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notes what has changed, and makes the texts of events. */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "state.h"
#include "util/fileio.h"
#include "util/log.h"
#include "util/strings.h"

/* If more devices than this are noted, all devices count as noted. */
#define DEVICES_MAX 1024U

static void noted_event_done(NotedEvent *e) {
        free(e->devices);
        free(e->message);
        free(e->allocation);
        free(e->tag);
}

void notes_drop_events(Notes *n) {
        for (size_t i = 0; i < n->n_events; i++)
                noted_event_done(&n->events[i]);
        n->n_events = 0;
}

void notes_done(Notes *n) {
        notes_drop_events(n);
        free(n->events);
        free(n->devices);
        (void) free_names(n->removed, n->n_removed);
        free(n->arrived);
        free(n->unread);
        free(n->unchecked);
        n->settle = sd_event_source_disable_unref(n->settle);
}

static void want_settle(Manager *m) {
        if (m->notes.settle)
                (void) sd_event_source_set_enabled(m->notes.settle, SD_EVENT_ONESHOT);
}

void note_turn(Manager *m) {
        m->notes.unmeasured = true;
        want_settle(m);
}

void note_all_devices(Manager *m) {
        m->notes.all_devices = true;
        note_turn(m);
}

void note_devices(Manager *m, const PciAddress *devices, size_t n) {
        Notes *notes = &m->notes;

        for (size_t i = 0; i < n && !notes->all_devices; i++)
                notes->all_devices = notes->n_devices >= DEVICES_MAX ||
                                     pci_address_append(&notes->devices, &notes->n_devices, devices[i]) < 0;
        note_turn(m);
}

void note_device(Manager *m, PciAddress device) {
        note_devices(m, &device, 1);
}

/* If a VF is gone, notes its PF too, because the inventory no longer tells settle which PF it had. */
void note_devices_of(Manager *m, const Allocation *a) {
        for (size_t i = 0; i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];

                note_device(m, d->address);
                if (d->is_vf && !inventory_find(m->host.inventory, d->address))
                        note_device(m, d->physfn);
        }
}

/* Notes the allocations that share a region with `a`, because each of them has a property that lists the members of the
 * region. */
static void note_members(Manager *m, const Allocation *a) {
        for (size_t i = 0; i < a->n_regions; i++) {
                const SharedRegion *s = ledger_find_region(m->host.ledger, a->regions[i].name);

                for (size_t j = 0; s && j < s->n_members; j++) {
                        Allocation *member = ledger_find(m->host.ledger, s->members[j]->name);

                        assert(member == s->members[j]);
                        member->status.is_noted = true;
                }
        }
        m->notes.allocations = true;
}

void note_allocation(Manager *m, Allocation *a) {
        assert(ledger_find(m->host.ledger, a->name) == a);
        a->status.is_noted = true;
        m->notes.allocations = true;
        if (!a->status.is_shown)
                note_members(m, a);
        note_devices_of(m, a);
        note_turn(m);
}

void note_removed(Manager *m, const Allocation *a) {
        Notes *n = &m->notes;

        note_members(m, a);
        note_devices_of(m, a);
        note_turn(m);
        if (!a->status.is_shown)
                return;
        if (ARRAY_RESERVE(n->removed, n->n_removed) >= 0)
                n->removed[n->n_removed] = strdup(a->name);
        if (n->removed && n->removed[n->n_removed])
                n->n_removed++;
        else
                log_warning("The removal of '%s' is not signalled, ignoring: Out of memory.", a->name);
}

void note_facts(Manager *m) {
        m->notes.promises_unchecked = true;
}

void note_arrived(Manager *m, PciAddress device) {
        if (pci_address_append(&m->notes.arrived, &m->notes.n_arrived, device) < 0)
                log_warning("The new device %s is not set up, ignoring: Out of memory.", PCI_ADDRESS_STR(device));
        note_turn(m);
}

void note_unchecked(Manager *m, PciAddress device) {
        /* If memory runs out, the next check of all devices includes this one. */
        (void) pci_address_append(&m->notes.unchecked, &m->notes.n_unchecked, device);
        note_turn(m);
}

void note_job(Job *job, JobNote what) {
        job->noted |= what;
        want_settle(job->manager);
}

bool manager_is_new(const Manager *m, PciAddress address) {
        return !m->announced || pci_addresses_have(m->settle.round, m->settle.n_round, address);
}

bool manager_is_arriving(const Manager *m, const Allocation *a) {
        for (size_t i = 0; i < m->notes.n_arrived; i++)
                if (allocation_find_device(a, m->notes.arrived[i]))
                        return true;
        for (size_t i = 0; m->settle.phase != START_DONE && i < a->n_devices; i++)
                if (manager_is_new(m, a->devices[i].address))
                        return true;
        return false;
}

/* Notes an event. devices: addresses, separated by ", "; takes ownership. `a`: the allocation that has the devices;
 * NULL: none. */
static void note_text(Manager *m, HistoryEvent event, char *devices, const Allocation *a, const char *message) {
        NotedEvent e = { .kind = event, .devices = devices, .message = message ? strdup(message) : NULL };
        Notes *n = &m->notes;
        int r = e.devices && e.message ? 0 : -ENOMEM;

        if (a) {
                (void) snprintf(e.owner, sizeof(e.owner), "%" PRIu32, a->owner);
                (void) snprintf(e.generation, sizeof(e.generation), "%" PRIu64, a->generation);
                e.allocation = strdup(a->name);
                if (!e.allocation || string_copy(&e.tag, a->tag) < 0)
                        r = -ENOMEM;
        }
        if (r == 0)
                r = ARRAY_RESERVE(n->events, n->n_events);
        if (r < 0) {
                log_warning_errno(r, "An event is missing in the history: %m");
                noted_event_done(&e);
                return;
        }
        n->events[n->n_events++] = e;
        want_settle(m);
}

void note_event(Manager *m, HistoryEvent event, PciAddress device, const Allocation *a, const char *format, ...) {
        _cleanup_free_ char *message = FORMAT_ARGUMENTS(format);

        note_text(m, event, string_format("%s", PCI_ADDRESS_STR(device)), a, message);
}

/* Formats the addresses of all devices of `a`, separated by ", ". The caller frees; NULL when out of memory. */
static char *format_devices(const Allocation *a) {
        _cleanup_free_ char *list = string_format("%s", "");

        for (size_t i = 0; list && i < a->n_devices; i++)
                if (string_append(&list, ", ", "%s", PCI_ADDRESS_STR(a->devices[i].address)) < 0)
                        return NULL;
        return TAKE_PTR(list);
}

static char *format_message(HistoryEvent event, const char *devices, const Allocation *a, const char *why) {
        if (!*devices)
                devices = "no devices";
        if (event == HISTORY_RESERVED)
                return string_format("Reserved '%s' for uid %u: %s, %zu CPU%s, %s of memory.", a->name, a->owner,
                                     devices, a->n_pins, PLURAL(a->n_pins), FORMAT_SIZE(allocation_memory(a)));
        if (event == HISTORY_READY)
                return string_format("'%s' is ready: %s.", a->name, devices);
        if (event == HISTORY_RELEASED)
                return string_format("Released '%s': %s.", a->name, devices);
        if (event == HISTORY_EXPIRED)
                return string_format("The lease of '%s' has ended: %s.", a->name, devices);
        if (event == HISTORY_RESUMED)
                return string_format("%s '%s' again: %s.", a->state == ALLOCATION_RELEASING ? "Releasing" : "Preparing",
                                     a->name, devices);
        assert(event == HISTORY_FAILED);
        return string_format("'%s' failed: %s", a->name, why);
}

void note_allocation_event(Manager *m, HistoryEvent event, const Allocation *a, const char *why) {
        _cleanup_free_ char *devices = format_devices(a), *message = NULL;

        if (devices)
                message = format_message(event, devices, a, why);
        note_text(m, event, TAKE_PTR(devices), a, message);
}

void note_failure(Manager *m, const Job *job) {
        const Allocation *a = job->n_devices == 0 ? ledger_find(m->host.ledger, job->subject) : NULL;

        if (a)
                note_allocation_event(m, HISTORY_FAILED, a, job->message);
        for (size_t i = 0; i < job->n_devices; i++)
                note_event(m, HISTORY_FAILED, job->devices[i], NULL, "%s: %s", PCI_ADDRESS_STR(job->devices[i]),
                           job->message);
}

void note_promise(Manager *m, const Allocation *a, const Refusal *why) {
        _cleanup_free_ char *devices =
                why && why->has_device ? string_format("%s", PCI_ADDRESS_STR(why->device)) : format_devices(a);
        _cleanup_free_ char *message = why ? refusal_text(why) : NULL;

        /* The removal or replacement of the device is in the history already. */
        if (why && (why->verdict == VERDICT_MISSING || why->verdict == VERDICT_HARDWARE_CHANGED))
                return;
        if (!why)
                message = string_format("A guest can run with '%s' as promised again.", a->name);
        note_text(m, why ? HISTORY_PROMISE_BROKEN : HISTORY_PROMISE_KEPT, TAKE_PTR(devices), a, message);
}

void note_deviation(Manager *m, const Allocation *a, const Refusal *why, bool stands) {
        _cleanup_free_ char *text = refusal_text(why);

        /* The same reason was recorded already, perhaps by an earlier daemon. */
        if (streq_ptr(a->reason, why->message) || streq_ptr(a->reason, text))
                return;
        for (size_t i = 0; why->verdict == VERDICT_MISSING && i < a->n_devices; i++)
                if (!inventory_find(m->host.inventory, a->devices[i].address))
                        note_event(m, HISTORY_MISSING, a->devices[i].address, a,
                                   "%s, allocated to '%s', is not on this node any more.",
                                   PCI_ADDRESS_STR(a->devices[i].address), a->name);
        if (why->verdict == VERDICT_HARDWARE_CHANGED)
                note_event(m, HISTORY_HARDWARE_CHANGED, why->device, a, "%s", why->message);
        if (!stands)
                note_allocation_event(m, HISTORY_FAILED, a, why->message);
}
