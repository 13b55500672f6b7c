/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Settle: once a turn of the event loop, it does what follows from the notes (note.h). It is the only part that starts
 * work which no caller asked for, and the only one that tells the journal and the clients what changed.
 */

#include <systemd/sd-event.h>

#include "bus/changes.h"
#include "bus/server.h"

typedef struct Manager Manager;

/*
 * The phases of work for new devices, in order. Each phase has a queue of subjects, and runs a few jobs at a time. At
 * startup all devices are new, and the daemon is announced after the last phase. A later hot-plug starts a new round of
 * the phases for the new devices.
 */
typedef enum StartPhase {
        START_CONNECTED,
        START_VFS,    /* VirtualFunctions=, and Bind=start for devices that are no VFs */
        START_RESUME, /* allocations interrupted by a crash, a boot or a hot-plug */
        START_BIND,   /* Bind=start for the remaining devices */
        START_DONE,
} StartPhase;

typedef struct Settle {
        StartPhase phase;
        char **queue; /* PCI addresses or allocation names for which this phase has not started work yet */
        size_t n_queue;
        PciAddress *tried; /* the devices that this round has begun to bind */
        size_t n_tried;
        PciAddress *round; /* the new devices of the current round; unused at startup, when all devices are new */
        size_t n_round;
        sd_event_source *cleaning_timer; /* next try to clean devices that were in use; NULL: there are none */
        unsigned cleaning_delay;         /* seconds until that try */
} Settle;
void settle_done(Settle *s);

/* The state that clients were told last. */
typedef struct Told {
        Server *server;
        DeviceSnapshotList *devices; /* their properties as last signalled; NULL before the announcement */
} Told;
void told_done(Told *t);

/*
 * Does the work of a turn, in this order. First deferred work. Then work that no caller asked for: starts services that
 * a job left stopped, releases allocations whose domain has ended, cleans devices that Nova's guests have left, runs
 * the phases for new devices. Then it checks promises, signals what has changed, and announces the daemon after the
 * last phase of startup. Ends the event loop when the daemon is stopping and no job runs.
 */
void manager_settle(Manager *m);

/* Only for the files settle*.c. */

/* settle.c: compares `a`, if it is ready, with the known facts, and sets its reason to why no guest can run with it. */
void settle_promise(Manager *m, Allocation *a);
/* settle-start.c: queues the allocations whose resume was refused for a cause that has passed. */
void settle_retry_resumes(Manager *m);
void settle_continue_start(Manager *m);
/* Announces the daemon, after the first round of the phases. */
void settle_announce(Manager *m);
/* settle-tell.c */
void settle_tell(Manager *m);
/* Makes all devices and allocations visible to clients. Returns 0 or -ENOMEM. */
int settle_show(Manager *m);
