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

typedef struct Settle {
        StartPhase phase;
        char **queue; /* PCI addresses or allocation names that this phase has not started with */
        size_t n_queue;
        PciAddress *tried; /* the devices that this round has begun to bind */
        size_t n_tried;
        PciAddress *round; /* the new devices of the current round; unused at startup, when all devices are new */
        size_t n_round;
        sd_event_source *cleaning_timer; /* the next try to clean devices that were in use; NULL: there are none */
        unsigned cleaning_delay;         /* seconds until that try */
} Settle;
void settle_done(Settle *s);

/* What clients were told. */
typedef struct Told {
        Server *server;
        DeviceSnapshotList *devices; /* their properties as last signalled; NULL before the announcement */
} Told;
void told_done(Told *t);

/*
 * Does, in this order, what was put off; work that no caller asked for: services that a job left stopped, releases of
 * allocations whose domain has ended, cleaning of devices that Nova's guests have left, the phases for new devices,
 * after the last of which the daemon is announced; the check of promises; and tells what has changed. Ends the event
 * loop when the daemon is stopping and no job runs.
 */
void manager_settle(Manager *m);

/* For the files of settle alone. */

/* settle.c: compares a, when it is ready, with the known facts, and sets its reason to why no guest can run with it. */
void settle_promise(Manager *m, Allocation *a);
/* settle-start.c: queues the allocations whose resume was refused for a cause that has passed. */
void settle_retry_resumes(Manager *m);
void settle_continue_start(Manager *m);
/* After the first round of the phases. */
void settle_announce(Manager *m);
/* settle-tell.c */
void settle_tell(Manager *m);
/* Clients see all devices and allocations from now on. Returns 0 or -ENOMEM. */
int settle_show(Manager *m);
