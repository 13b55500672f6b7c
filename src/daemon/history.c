/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes what happens to devices, and which allocation had them, to the journal and to the history file. */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "manager.h"
#include "util/clock.h"
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

void manager_open_history(Manager *m, const char *state_dir) {
        int r = history_open(state_dir, &m->publisher.history);

        if (r < 0)
                log_warning_errno(r, "Failed to open the history of devices, no history is written, ignoring: %m");
}

/* devices: their addresses, separated by ", ". a: the allocation that has them, or NULL. */
static void send_event(HistoryEvent event, const char *devices, const Allocation *a, const char *message) {
        char owner[16], generation[24];

        if (a) {
                (void) snprintf(owner, sizeof(owner), "%" PRIu32, a->owner);
                (void) snprintf(generation, sizeof(generation), "%" PRIu64, a->generation);
        }
        log_event(kinds[event].level,
                  &(LogFields){ .id = kinds[event].id,
                                .event = kinds[event].name,
                                .device = devices,
                                .allocation = a ? a->name : NULL,
                                .owner = a ? owner : NULL,
                                .generation = a ? generation : NULL },
                  message);
}

/* A failure is only logged. With a read-only ledger the history is read-only too. */
static void append_lines(Manager *m, const char *lines, size_t size) {
        int r;

        if (!m->publisher.history || m->host.ledger->read_only || size == 0)
                return;
        r = history_append(m->publisher.history, lines, size);
        if (r < 0 && !m->publisher.history_unwritten)
                log_warning_errno(r, "Failed to write the history of devices, ignoring: %m");
        m->publisher.history_unwritten = r < 0;
}

static void append_event(Manager *m, HistoryEvent event, PciAddress device, const Allocation *a, const char *message) {
        _cleanup_free_ char *line =
                history_format(&(HistoryEntry){ clock_usec(CLOCK_REALTIME), event, device, a, message });

        if (line)
                append_lines(m, line, strlen(line));
}

void manager_record(Manager *m, HistoryEvent event, PciAddress device, const Allocation *a, const char *format, ...) {
        _cleanup_free_ char *message = NULL;
        va_list ap;

        va_start(ap, format);
        message = string_vformat(format, ap);
        va_end(ap);
        if (!message)
                return;
        send_event(event, PCI_ADDRESS_STR(device), a, message);
        append_event(m, event, device, a, message);
}

static int format_message(char **ret, HistoryEvent event, PciAddress device, const Allocation *a, const char *why) {
        const char *address = PCI_ADDRESS_STR(device);

        if (event == HISTORY_RESERVED)
                return string_replace(ret, "%s is reserved for '%s' of uid %u.", address, a->name, a->owner);
        if (event == HISTORY_READY)
                return string_replace(ret, "%s is ready for '%s'.", address, a->name);
        if (event == HISTORY_RELEASED)
                return string_replace(ret, "%s is released from '%s'.", address, a->name);
        if (event == HISTORY_RESUMED)
                return string_replace(ret,
                                      a->state == ALLOCATION_RELEASING ? "%s is being released from '%s' again."
                                                                       : "%s is prepared for '%s' again.",
                                      address, a->name);
        return string_replace(ret, "%s, allocated to '%s': %s", address, a->name, why);
}

/* Writes all lines at once, so that Allocate waits for one write only. */
void manager_record_allocation(Manager *m, HistoryEvent event, const Allocation *a, const char *why) {
        _cleanup_free_ char *lines = NULL;
        uint64_t now = clock_usec(CLOCK_REALTIME);
        size_t size = 0;
        FILE *f = open_memstream(&lines, &size);

        for (size_t i = 0; f && i < a->n_devices; i++) {
                _cleanup_free_ char *message = NULL, *line = NULL;
                PciAddress device = a->devices[i].address;

                if (format_message(&message, event, device, a, why) < 0)
                        continue;
                send_event(event, PCI_ADDRESS_STR(device), a, message);
                line = history_format(&(HistoryEntry){ now, event, device, a, message });
                if (line)
                        (void) fputs(line, f);
        }
        if (f && fclose(f) == 0)
                append_lines(m, lines, size);
}

void manager_record_failure(Manager *m, const ManagerJob *mj) {
        const Allocation *a = mj->n_devices == 0 ? ledger_find(m->host.ledger, job_subject(mj->job)) : NULL;

        if (a)
                manager_record_allocation(m, HISTORY_FAILED, a, job_message(mj->job));
        for (size_t i = 0; i < mj->n_devices; i++)
                manager_record(m, HISTORY_FAILED, mj->devices[i], NULL, "%s: %s", PCI_ADDRESS_STR(mj->devices[i]),
                               job_message(mj->job));
}

/* Writes one journal entry, and a history entry for the device that why names, or else for all devices of a. */
void manager_record_promise(Manager *m, const Allocation *a, const Refusal *why) {
        HistoryEvent event = why ? HISTORY_PROMISE_BROKEN : HISTORY_PROMISE_KEPT;
        _cleanup_free_ char *message = why ? refusal_text(why) : NULL;

        /* The removal or replacement of the device was recorded already. */
        if (why && (why->verdict == VERDICT_MISSING || why->verdict == VERDICT_HARDWARE_CHANGED))
                return;
        if (!why)
                message = string_format("A guest can run with '%s' as promised again.", a->name);
        if (!message)
                return;
        send_event(event, why && why->has_device ? PCI_ADDRESS_STR(why->device) : NULL, a, message);
        for (size_t i = 0; i < a->n_devices; i++)
                if (!why || !why->has_device || pci_address_equal(why->device, a->devices[i].address))
                        append_event(m, event, a->devices[i].address, a, message);
}

void manager_record_deviation(Manager *m, const Allocation *a, const Refusal *why, bool stands) {
        _cleanup_free_ char *text = refusal_text(why);

        /* An earlier daemon has recorded this reason. */
        if (streq_ptr(a->reason, why->message) || streq_ptr(a->reason, text))
                return;
        for (size_t i = 0; why->verdict == VERDICT_MISSING && i < a->n_devices; i++)
                if (!inventory_find(m->host.inventory, a->devices[i].address))
                        manager_record(m, HISTORY_MISSING, a->devices[i].address, a,
                                       "%s, allocated to '%s', is not on this node any more.",
                                       PCI_ADDRESS_STR(a->devices[i].address), a->name);
        if (why->verdict == VERDICT_HARDWARE_CHANGED)
                manager_record(m, HISTORY_HARDWARE_CHANGED, why->device, a, "%s", why->message);
        if (!stands)
                manager_record_allocation(m, HISTORY_FAILED, a, why->message);
}

Verdict manager_history(Manager *m, PciAddress device, size_t max, char **ret, Refusal *ret_refusal) {
        _cleanup_history_list_ HistoryList l = { .max = max };
        int r = m->publisher.history ? history_read(m->publisher.history, device, &l) : 0;
        char *text;

        if (r < 0)
                return refuse(ret_refusal, VERDICT_LIMIT, NULL, "Check the file 'history' in the state directory.",
                              "The history of devices could not be read: %s.", strerror(-r));
        if (l.n == 0 && !inventory_find(m->host.inventory, device) && !ledger_holder(m->host.ledger, device))
                return refuse(ret_refusal, VERDICT_NO_SUCH_DEVICE, &device, NULL,
                              "%s is not on this node, and there is no history of it.", PCI_ADDRESS_STR(device));
        text = history_list_format(&l);
        if (!text)
                return refuse_no_memory(ret_refusal);
        *ret = text;
        return VERDICT_NONE;
}
