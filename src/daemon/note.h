/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What changed in this turn of the event loop. Operations, jobs and watches note it here, and settle.h tells it: a note
 * has no effect but a mark, and asks for manager_settle() in the next turn.
 */

#include <systemd/sd-event.h>

#include "ledger/allocation.h"
#include "model/pciaddr.h"
#include "model/refusal.h"

typedef struct Manager Manager;
typedef struct Job Job;

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

/* An event for the journal. Its texts are those of the moment when it was noted. */
typedef struct NotedEvent {
        HistoryEvent kind;
        char *devices; /* their addresses, separated by ", " */
        char *message;
        char *allocation, *tag;         /* NULL: the devices are of no allocation */
        char owner[16], generation[24]; /* of the allocation */
} NotedEvent;

typedef struct Notes {
        sd_event_source *settle; /* runs manager_settle() before the loop waits again, when enabled */
        bool all_devices;        /* devices is not complete */
        PciAddress *devices;     /* in any order, perhaps twice */
        size_t n_devices;
        bool allocations; /* an allocation has Allocation.is_noted */
        char **removed;   /* names of allocations whose objects clients know */
        size_t n_removed;
        NotedEvent *events;
        size_t n_events;
        PciAddress *arrived; /* the new devices of the next round, see settle.h */
        size_t n_arrived;
        PciAddress *unread; /* PFs whose VFs were created at startup, and are not read yet */
        size_t n_unread;
        PciAddress *unchecked; /* the health of these is to be checked */
        size_t n_unchecked;
        bool reloaded;            /* the watches are to follow the new configuration */
        bool guests_due;          /* the allocations and devices of the guests are to be found again */
        uint64_t guests_answered; /* libvirt has answered the requests up to this one; 0: none since the last turn */
        bool guests_read;         /* the guests were read: an allocation may be due for release with its domain */
        bool cleaning_due;        /* a guest of Nova may have left its devices */
        bool changes_due;         /* an allocation may have devices that are neither attached nor detached yet */
        bool services_due;        /* a job has ended: start the services that it left stopped */
        bool released;            /* a job's child or an orphan has exited, so its devices can be read */
        bool unmeasured;          /* facts may have changed since the capacity was measured */
        bool promises_unchecked;  /* facts changed since the last check of promises */
} Notes;
void notes_done(Notes *n);
/* The events were sent. */
void notes_drop_events(Notes *n);

/* Something changed that the other functions do not name, or work may be due. */
void note_turn(Manager *m);
/* The state of the device, and of those whose state depends on it: IOMMU group members, PF and VFs. */
void note_device(Manager *m, PciAddress device);
void note_devices(Manager *m, const PciAddress *devices, size_t n);
/* All devices of a, which may be in the ledger no more. */
void note_devices_of(Manager *m, const Allocation *a);
/* The inventory, the policy or the whole ledger. */
void note_all_devices(Manager *m);
/* The allocation and its devices. */
void note_allocation(Manager *m, Allocation *a);
/* a has left the ledger. */
void note_removed(Manager *m, const Allocation *a);
/* Facts changed that promises depend on: the next settle checks them. It asks for none. */
void note_facts(Manager *m);
/* The device is new: it waits for the next round of settle.h. */
void note_arrived(Manager *m, PciAddress device);

/* The health of the device is to be checked. */
void note_unchecked(Manager *m, PciAddress device);

typedef enum JobNote {
        JOB_NOTE_BEGUN = 1U << 0U,
        JOB_NOTE_CHANGED = 1U << 1U, /* a property of its object may differ */
        JOB_NOTE_ENDED = 1U << 2U,   /* with Job.result */
} JobNote;
void note_job(Job *job, JobNote what);

/* Whether the current round of settle.h is about the device; at startup all devices are new. */
bool manager_is_new(const Manager *m, PciAddress address);
/* A device of a is new, and its round is not finished. */
bool manager_is_arriving(const Manager *m, const Allocation *a);

/* An event of a device. a: its allocation, or NULL. */
void note_event(Manager *m, HistoryEvent event, PciAddress device, const Allocation *a, const char *format, ...)
        _printf_(5, 6);
/* One event for all devices of a. why: the reason, for HISTORY_FAILED. */
void note_allocation_event(Manager *m, HistoryEvent event, const Allocation *a, const char *why);
/* The failure of a job, for the devices of its allocation, or for Job.devices. */
void note_failure(Manager *m, const Job *job);
/* a cannot be resumed. stands: a stays ready. Call it before the state changes. */
void note_deviation(Manager *m, const Allocation *a, const Refusal *why, bool stands);
/* The node cannot keep its promise to a, or (why NULL) can again. Call it before the reason changes. */
void note_promise(Manager *m, const Allocation *a, const Refusal *why);
