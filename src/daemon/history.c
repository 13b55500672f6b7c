/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events: what happens to devices, and which allocation has them. Each is one journal entry, sent right after the fact.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "manager.h"
#include "util/log.h"
#include "util/messages.h"
#include "util/strings.h"

static const struct {
        const char *name; /* in PASSTHROUGH_EVENT= */
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

/* devices: their addresses, separated by ", ". a: the allocation that has them, or NULL. */
static void send_event(HistoryEvent event, const char *devices, const Allocation *a, const char *message) {
        char owner[16], generation[24];

        if (a) {
                (void) snprintf(owner, sizeof(owner), "%" PRIu32, a->owner);
                (void) snprintf(generation, sizeof(generation), "%" PRIu64, a->generation);
        }
        log_event(kinds[event].level,
                  &(LogFields) { .id = kinds[event].id,
                                 .event = kinds[event].name,
                                 .device = devices,
                                 .allocation = a ? a->name : NULL,
                                 .owner = a ? owner : NULL,
                                 .generation = a ? generation : NULL,
                                 .tag = a ? a->tag : NULL },
                  message);
}

void history_record(HistoryEvent event, PciAddress device, const Allocation *a, const char *format, ...) {
        _cleanup_free_ char *message = NULL;
        va_list ap;

        va_start(ap, format);
        message = string_vformat(format, ap);
        va_end(ap);
        if (message)
                send_event(event, PCI_ADDRESS_STR(device), a, message);
}

/* The addresses of the devices of a, separated by ", ". The caller frees; NULL when out of memory. */
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
        return string_format("'%s' failed: %s", a->name, why);
}

void history_record_allocation(HistoryEvent event, const Allocation *a, const char *why) {
        _cleanup_free_ char *devices = format_devices(a), *message = NULL;

        if (devices)
                message = format_message(event, devices, a, why);
        if (message)
                send_event(event, devices, a, message);
}

void history_record_failure(Manager *m, const Job *job) {
        const Allocation *a = job->n_devices == 0 ? ledger_find(m->host.ledger, job->subject) : NULL;

        if (a)
                history_record_allocation(HISTORY_FAILED, a, job->message);
        for (size_t i = 0; i < job->n_devices; i++)
                history_record(HISTORY_FAILED, job->devices[i], NULL, "%s: %s", PCI_ADDRESS_STR(job->devices[i]),
                               job->message);
}

void history_record_promise(const Allocation *a, const Refusal *why) {
        _cleanup_free_ char *devices =
                why && why->has_device ? string_format("%s", PCI_ADDRESS_STR(why->device)) : format_devices(a);
        _cleanup_free_ char *message = why ? refusal_text(why) : NULL;

        /* The removal or replacement of the device was recorded already. */
        if (why && (why->verdict == VERDICT_MISSING || why->verdict == VERDICT_HARDWARE_CHANGED))
                return;
        if (!why)
                message = string_format("A guest can run with '%s' as promised again.", a->name);
        if (devices && message)
                send_event(why ? HISTORY_PROMISE_BROKEN : HISTORY_PROMISE_KEPT, devices, a, message);
}

void history_record_deviation(Manager *m, const Allocation *a, const Refusal *why, bool stands) {
        _cleanup_free_ char *text = refusal_text(why);

        /* An earlier daemon has recorded this reason. */
        if (streq_ptr(a->reason, why->message) || streq_ptr(a->reason, text))
                return;
        for (size_t i = 0; why->verdict == VERDICT_MISSING && i < a->n_devices; i++)
                if (!inventory_find(m->host.inventory, a->devices[i].address))
                        history_record(HISTORY_MISSING, a->devices[i].address, a,
                                       "%s, allocated to '%s', is not on this node any more.",
                                       PCI_ADDRESS_STR(a->devices[i].address), a->name);
        if (why->verdict == VERDICT_HARDWARE_CHANGED)
                history_record(HISTORY_HARDWARE_CHANGED, why->device, a, "%s", why->message);
        if (!stands)
                history_record_allocation(HISTORY_FAILED, a, why->message);
}
