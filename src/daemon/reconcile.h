/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Reconcile: the only part that starts work which no caller asked for. Everything else notes here what may leave work
 * to do, and asks for reconcile to run in the next loop iteration.
 */

#include <systemd/sd-event.h>

#include "host/hoststate.h"

typedef struct Manager Manager;

/*
 * The phases of work for new devices, in order. Each phase has a queue of subjects, and runs a few jobs at a time. At
 * startup all devices are new; the daemon is announced after the last phase. A hot-plug later starts a new round of the
 * phases for the new devices.
 */
typedef enum StartPhase {
        START_CONNECTED,
        START_VFS,    /* VirtualFunctions=, and Bind=start where no VF has to be made for it */
        START_RESUME, /* allocations interrupted by a crash, a boot or a hot-plug */
        START_BIND,   /* Bind=start, what is left of it */
        START_DONE,
} StartPhase;

typedef struct Reconcile {
        sd_event_source *source; /* runs manager_reconcile() in the next loop iteration when enabled */
        StartPhase phase;
        char **queue; /* PCI addresses or allocation names that this phase has not started with */
        size_t n_queue;
        PciAddress *unread; /* PFs whose VFs were created at startup, and are not read yet */
        size_t n_unread;
        PciAddress *tried; /* the devices that this round has begun to bind */
        size_t n_tried;
        PciAddress *round; /* the new devices of the current round; unused at startup, when all devices are new */
        size_t n_round;
        PciAddress *arrived; /* the new devices of the next round */
        size_t n_arrived;
        sd_event_source *lease_timer;    /* the end of the lease that ends first; NULL: there is none */
        sd_event_source *cleaning_timer; /* the next try to clean devices that were in use; NULL: there are none */
        unsigned cleaning_delay;         /* seconds until that try */
        bool cleaning_due;               /* a guest of Nova may have left its devices */
        bool guests_read;        /* the guests were read: an allocation may be due for release with its domain */
        bool changes_due;        /* an allocation may have devices that are neither attached nor detached yet */
        bool services_due;       /* a job has ended: start the services that it left stopped */
        bool released;           /* a job's child or an orphan has exited, so its devices can be read */
        bool unmeasured;         /* facts may have changed since the capacity was measured */
        bool promises_unchecked; /* facts changed since the last check of promises */
} Reconcile;

/* reconcile.c */
/*
 * Starts the work that no caller asked for: services that a job left stopped, releases of allocations whose domain has
 * ended, cleaning of devices that Nova's guests have left, and the phases for new devices, after the last of which the
 * daemon is announced. Then checks promises. Ends the event loop when the daemon is stopping and no job runs.
 */
void manager_reconcile(Manager *m);

/* arrivals.c */
void reconcile_done(Reconcile *r);
/* Runs manager_reconcile() in the next loop iteration. Call it when facts changed, a job ended, or a call was handled.
 */
void reconcile_want(Reconcile *r);
/* Queues the device for the next round of the phases, as after a hot-plug. */
void reconcile_queue(Reconcile *r, PciAddress address);
/* Whether the current round is about the device; at startup all devices are new. */
bool manager_is_new(const Manager *m, PciAddress address);
/* A device of a is new, and its round is not finished. */
bool manager_is_arriving(const Manager *m, const Allocation *a);
/* Starts a round for the devices that arrived. Returns false when there are none. */
bool manager_begin_round(Manager *m);
/* The device is in a Bind=start pool, is available, and is not bound to a VFIO driver or may be suspended there. */
bool manager_wants_binding(const HostState *host, const PciDevice *dev);
/* Appends the devices for which manager_wants_binding() is true, in ascending order. */
int manager_list_unbound(const Manager *m, PciAddress **ret, size_t *ret_n);
/* After a change of drivers or policy: queues the devices that want binding and are not in unbound, the list from
 * before it.
 */
void manager_bind_late(Manager *m, const PciAddress *unbound, size_t n);

/* resume.c */
/* Whether a stop, crash or boot left work to do for a. */
bool manager_needs_resume(const Manager *m, const Allocation *a);
/* Does that work. Returns true when a job was started. An allocation that cannot be resumed fails, with the reason. */
bool manager_resume(Manager *m, Allocation *a, uint32_t *ret_job);
/* Queues the allocations whose resume was refused for a cause that has passed. Call it when facts changed. */
void manager_retry_resumes(Manager *m);
/* VERDICT_NONE when all devices of a are present, are the allocated cards, and are not used or needed by the host. */
Verdict manager_check_hardware(const Manager *m, const Allocation *a, Refusal *ret);
