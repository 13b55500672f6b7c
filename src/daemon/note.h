/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Notes: what has changed in this turn of the event loop. Operations, jobs and watches note changes, and settle.h tells
 * the journal and clients about them. A note only stores what has changed. Each note except note_facts() also asks for
 * a run of manager_settle() at the end of the turn. */

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

/* An event for the history in the journal. Its texts are from the time when it was noted. */
typedef struct NotedEvent {
        HistoryEvent kind;
        char *devices; /* addresses, separated by ", " */
        char *message;
        char *allocation, *tag; /* both NULL: no allocation has the devices; tag NULL: the allocation has no tag */
        char owner[16], generation[24]; /* uid and generation of the allocation */
} NotedEvent;

typedef struct Notes {
        sd_event_source *settle; /* when enabled, runs manager_settle() before the loop waits again */
        bool all_devices;        /* all devices may have changed; the array `devices` is not complete */
        PciAddress *devices;     /* devices that may have changed, in any order, with duplicates */
        size_t n_devices;
        bool allocations; /* an allocation has status.is_noted set */
        char **removed;   /* names of removed allocations whose objects clients know */
        size_t n_removed;
        NotedEvent *events;
        size_t n_events;
        PciAddress *arrived; /* new devices for the next round (settle.h) */
        size_t n_arrived;
        PciAddress *unread; /* PFs whose VFs a job of startup has changed, and that were not read since */
        size_t n_unread;
        PciAddress *unchecked; /* devices whose health is to be checked */
        size_t n_unchecked;
        bool reloaded;            /* a new configuration was loaded, which the watches must follow */
        bool guests_due;          /* the allocations and devices of the guests must be found again */
        uint64_t guests_answered; /* number of the last request to libvirt that was answered; 0: none in this turn */
        bool guests_read;         /* guests were read, so an allocation may be due for release with its domain */
        bool cleaning_due;        /* a guest of Nova may have ended and left its devices */
        bool changes_due;         /* an allocation may have devices whose attach or detach was interrupted */
        bool services_due;        /* a job has ended, so services that it left stopped must be started */
        bool released;            /* a process of a job or an orphan has exited, so its devices can be read */
        bool unmeasured;          /* facts may have changed since the last measurement of the capacity */
        bool promises_unchecked;  /* facts have changed since the last check of promises */
} Notes;
void notes_done(Notes *n);
/* Frees the events; call it when they were sent. */
void notes_drop_events(Notes *n);

/* Asks for a run of settle, when work may be due or something has changed for which there is no other function. */
void note_turn(Manager *m);
/* Notes that the state of the device may have changed. Settle then also looks for changes of its PF, its VFs and the
 * members of its IOMMU group. */
void note_device(Manager *m, PciAddress device);
void note_devices(Manager *m, const PciAddress *devices, size_t n);
/* Notes all devices of `a`. `a` need not be in the ledger any more. */
void note_devices_of(Manager *m, const Allocation *a);
/* Notes all devices, after a change of the inventory, the policy or the whole ledger. */
void note_all_devices(Manager *m);
/* Notes the allocation and its devices. */
void note_allocation(Manager *m, Allocation *a);
/* Notes that `a` was removed from the ledger. */
void note_removed(Manager *m, const Allocation *a);
/* Notes that facts on which promises depend have changed. The next run of settle checks the promises; does not ask for
 * a run. */
void note_facts(Manager *m);
/* Notes a device as new. The next round of settle.h handles it. */
void note_arrived(Manager *m, PciAddress device);

/* Notes that the health of the device must be checked. */
void note_unchecked(Manager *m, PciAddress device);

typedef enum JobNote {
        JOB_NOTE_BEGUN = 1U << 0U,
        JOB_NOTE_CHANGED = 1U << 1U, /* a property of the job's object may have changed */
        JOB_NOTE_ENDED = 1U << 2U,   /* the job has ended; Job.result is the result */
} JobNote;
void note_job(Job *job, JobNote what);

/* Returns true when the device is new in the current round of settle.h; between two rounds, when it was new in the last
 * one. At startup all devices are new. */
bool manager_is_new(const Manager *m, PciAddress address);
/* Returns true when a device of `a` is new, and its round has not ended. */
bool manager_is_arriving(const Manager *m, const Allocation *a);

/* Notes an event of a device. `a`: the allocation that has the device; NULL: none. */
void note_event(Manager *m, HistoryEvent event, PciAddress device, const Allocation *a, const char *format, ...)
        _printf_(5, 6);
/* Notes one event for all devices of `a`. why: the reason, for HISTORY_FAILED. */
void note_allocation_event(Manager *m, HistoryEvent event, const Allocation *a, const char *why);
/* Notes the failure of a job for Job.devices; if there are none, for the allocation of the job, if it has one. */
void note_failure(Manager *m, const Job *job);
/* Notes that the work on `a` cannot be resumed: an event for each missing device or for the replaced one, if that is
 * why, and the failure of `a`. Does nothing if a->reason says the same already. stands: `a` stays or becomes ready, so
 * no failure is noted. Call it before a->reason changes. */
void note_deviation(Manager *m, const Allocation *a, const Refusal *why, bool stands);
/* Notes that the node cannot keep its promise to `a`. If `why` is NULL, notes that it can again. Does nothing if a
 * device is missing or was replaced, which other events tell. */
void note_promise(Manager *m, const Allocation *a, const Refusal *why);
