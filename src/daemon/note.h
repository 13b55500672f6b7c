/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What changed in this turn of the event loop. Operations, jobs and watches note changes here, and settle.h signals
 * them. A note only sets a mark, and asks for manager_settle() in the next turn.
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

/* An event for the journal, with the texts of the time when it was noted. */
typedef struct NotedEvent {
        HistoryEvent kind;
        char *devices; /* addresses, separated by ", " */
        char *message;
        char *allocation, *tag;         /* both NULL: the devices belong to no allocation */
        char owner[16], generation[24]; /* uid and generation of the allocation */
} NotedEvent;

typedef struct Notes {
        sd_event_source *settle; /* when enabled, runs manager_settle() before the loop waits again */
        bool all_devices;        /* all devices may have changed; devices is then not complete */
        PciAddress *devices;     /* in any order, with duplicates */
        size_t n_devices;
        bool allocations; /* is_noted of an allocation is set */
        char **removed;   /* names of removed allocations whose objects clients know */
        size_t n_removed;
        NotedEvent *events;
        size_t n_events;
        PciAddress *arrived; /* new devices for the next round, see settle.h */
        size_t n_arrived;
        PciAddress *unread; /* PFs whose VFs were created at startup and have not been read yet */
        size_t n_unread;
        PciAddress *unchecked; /* devices whose health is to be checked */
        size_t n_unchecked;
        bool reloaded;            /* a new configuration was loaded, which the watches must follow */
        bool guests_due;          /* the allocations and devices of the guests must be found again */
        uint64_t guests_answered; /* last request that libvirt has answered; 0: none since the last turn */
        bool guests_read;         /* the guests were read, so an allocation may have to be released with its domain */
        bool cleaning_due;        /* a guest of Nova may have ended and left its devices */
        bool changes_due;         /* an allocation may have devices whose attach or detach was interrupted */
        bool services_due;        /* a job has ended, so services that it left stopped must be started */
        bool released;            /* a job's child or an orphan has exited, so its devices can be read */
        bool unmeasured;          /* facts may have changed since the capacity was measured */
        bool promises_unchecked;  /* facts changed since the last check of promises */
} Notes;
void notes_done(Notes *n);
/* Drops the events; call it when they were sent. */
void notes_drop_events(Notes *n);

/* Asks for a turn of settle, for a change that the other functions do not name or for work that may be due. */
void note_turn(Manager *m);
/* Notes that the state of the device may have changed, and with it that of its IOMMU group members, PF and VFs. */
void note_device(Manager *m, PciAddress device);
void note_devices(Manager *m, const PciAddress *devices, size_t n);
/* Notes all devices of `a`, which may no longer be in the ledger. */
void note_devices_of(Manager *m, const Allocation *a);
/* Notes all devices, after a change of the inventory, the policy or the whole ledger. */
void note_all_devices(Manager *m);
/* Notes the allocation and its devices. */
void note_allocation(Manager *m, Allocation *a);
/* Notes that `a` was removed from the ledger. */
void note_removed(Manager *m, const Allocation *a);
/* Notes that facts have changed on which promises depend: the next settle checks the promises. Does not ask for a
 * settle. */
void note_facts(Manager *m);
/* Notes a new device, which waits for the next round of settle.h. */
void note_arrived(Manager *m, PciAddress device);

/* Notes that the health of the device must be checked. */
void note_unchecked(Manager *m, PciAddress device);

typedef enum JobNote {
        JOB_NOTE_BEGUN = 1U << 0U,
        JOB_NOTE_CHANGED = 1U << 1U, /* a property of the job's object may have changed */
        JOB_NOTE_ENDED = 1U << 2U,   /* the job has ended with Job.result */
} JobNote;
void note_job(Job *job, JobNote what);

/* Returns whether the device is new in the current round of settle.h; at startup all devices are new. */
bool manager_is_new(const Manager *m, PciAddress address);
/* Returns true when a device of `a` is new and its round is not finished. */
bool manager_is_arriving(const Manager *m, const Allocation *a);

/* Notes an event of a device. a: its allocation, or NULL. */
void note_event(Manager *m, HistoryEvent event, PciAddress device, const Allocation *a, const char *format, ...)
        _printf_(5, 6);
/* Notes one event for all devices of `a`. why: the reason, for HISTORY_FAILED. */
void note_allocation_event(Manager *m, HistoryEvent event, const Allocation *a, const char *why);
/* Notes the failure of a job, for the devices of its allocation or for Job.devices. */
void note_failure(Manager *m, const Job *job);
/* Notes that `a` cannot be resumed. stands: `a` stays ready. Call it before the state changes. */
void note_deviation(Manager *m, const Allocation *a, const Refusal *why, bool stands);
/* Notes that the node cannot keep its promise to `a`, or with why NULL, that it can again. Call it before the reason
 * changes. */
void note_promise(Manager *m, const Allocation *a, const Refusal *why);
