/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Publisher: tells clients and the journal what is different from what they were told last. */

#include "bus/changes.h"
#include "bus/server.h"

typedef struct Manager Manager;
typedef struct Job Job;

typedef struct Publisher {
        Server *server;
        DeviceSnapshotList *shown; /* device properties as last published; NULL before the announcement */
} Publisher;

/* publish.c: each of these functions asks for reconcile, which tells the capacity. */
void publisher_done(Publisher *p);
/*
 * Emits signals for devices added and removed, and for each property whose value differs from the last one published.
 * Call it after a change of facts, ledger or policy. Does nothing before the announcement.
 */
void manager_publish(Manager *m);
/* Publishes only these devices and the devices whose state depends on them: IOMMU group members, PFs and VFs. */
void manager_publish_devices(Manager *m, const PciAddress *devices, size_t n);
void manager_publish_allocation(Manager *m, const Allocation *a);
/* Signals the object of a as added, or those of its properties that differ from what was signalled last. */
void manager_tell_allocation(Manager *m, Allocation *a);
/* Signals that the object of a, which is not in the ledger any more, is removed. Does nothing if its addition was not
 * signalled. */
void manager_tell_removed(Manager *m, const Allocation *a);
/* All allocations are known to clients from the announcement on. */
void manager_show_allocations(Manager *m);

/* history.c */
typedef enum HistoryEvent {
        HISTORY_RESERVED,
        HISTORY_READY,
        HISTORY_RELEASED,
        HISTORY_EXPIRED,
        HISTORY_FAILED,
        HISTORY_RESUMED,
        HISTORY_STUCK,
        HISTORY_UNSTUCK,
        HISTORY_CONTESTED,
        HISTORY_UNCONTESTED,
        HISTORY_VFS_CREATED,
        HISTORY_VFS_CHANGED,
        HISTORY_VFS_REMOVED,
        HISTORY_HARDWARE_CHANGED,
        HISTORY_MISSING,
        HISTORY_BACK,
        HISTORY_MOVED,
        HISTORY_ACCEPTED,
        HISTORY_QUARANTINED,
        HISTORY_CLEARED,
        HISTORY_UNHEALTHY,
        HISTORY_HEALTHY,
        HISTORY_PROMISE_BROKEN,
        HISTORY_PROMISE_KEPT,
        _HISTORY_EVENT_MAX,
} HistoryEvent;
/* Sends an event of a device to the journal. a: its allocation, or NULL. */
void history_record(HistoryEvent event, PciAddress device, const Allocation *a, const char *format, ...) _printf_(4, 5);
/* Sends one event for all devices of a. why: the reason, for HISTORY_FAILED. */
void history_record_allocation(HistoryEvent event, const Allocation *a, const char *why);
/* Records the failure of a job for the devices of its allocation, or for Job.devices. */
void history_record_failure(Manager *m, const Job *job);
/* Records that a cannot be resumed. stands: a stays ready. Call it before the state changes. */
void history_record_deviation(Manager *m, const Allocation *a, const Refusal *why, bool stands);
/* Records that the node cannot keep its promise to a, or (why NULL) can again. Call it before the reason changes. */
void history_record_promise(const Allocation *a, const Refusal *why);
