/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Settle: once per turn of the event loop, does what follows from the notes (note.h). Only settle starts work that no
 * caller has asked for, and only settle sends the noted events to the journal and the signals to clients. */

#include <systemd/sd-event.h>

#include "bus/changes.h"
#include "bus/server.h"

typedef struct Manager Manager;

/* The phases of the work on new devices, in order. Each phase has a queue of subjects, and runs some jobs at a time. A
 * round goes through all phases. At startup all devices are new, and the daemon is announced after the first round.
 * Later a round begins when devices were noted as new (note_arrived()), for example by a hot-plug. */
typedef enum StartPhase {
        START_CONNECTED, /* the round has not begun its work; has no queue */
        START_VFS,       /* VirtualFunctions=, and binding devices that are no VFs (manager_wants_binding()) */
        START_RESUME,    /* allocations whose work a crash, a boot or a hot-plug interrupted; at startup also devices
                            whose quarantine was being cleared */
        START_BIND,      /* binding the remaining devices */
        START_DONE,
} StartPhase;

typedef struct Settle {
        StartPhase phase;
        char **queue; /* addresses or allocation names for which the phase has not started work yet */
        size_t n_queue;
        PciAddress *tried; /* the devices for which this round has begun a bind */
        size_t n_tried;
        PciAddress *round; /* the new devices of this round; unused at startup, when all devices are new */
        size_t n_round;
        sd_event_source *cleaning_timer; /* for the next try to clean devices that were in use; NULL: no try is due */
        unsigned cleaning_delay;         /* seconds until that try */
} Settle;
void settle_done(Settle *s);

/* What clients were told last. */
typedef struct Told {
        Server *server;
        DeviceSnapshotList *devices; /* the properties of devices as last signalled; NULL before the announcement */
} Told;
void told_done(Told *t);

/*
 * Does the work of one turn, in this order: updates the watches and does work that had to wait; starts work that no
 * caller has asked for (starts services that a job left stopped, releases allocations whose domain has ended, cleans
 * devices that guests of Nova have left, continues interrupted attaches and detaches, runs the phases for new devices);
 * checks promises; tells the journal and clients what has changed; after the last phase of startup, announces the
 * daemon. Ends the event loop when the daemon is stopping and all jobs have ended or are stuck.
 */
void manager_settle(Manager *m);

/* The functions below are only for the files settle*.c. */

/* settle.c: if `a` is ready, compares it with the known facts, and sets its reason: why no guest can run with it, or
 * NULL. */
void settle_promise(Manager *m, Allocation *a);
/* settle-start.c: has the next round resume allocations whose resumption was refused for a cause that has passed. */
void settle_retry_resumes(Manager *m);
void settle_continue_start(Manager *m);
/* Announces the daemon to clients, at the end of the first round. */
void settle_announce(Manager *m);
/* settle-tell.c */
void settle_tell(Manager *m);
/* Makes all devices and allocations visible to clients: later signals tell differences from the present properties.
 * Returns 0 or -ENOMEM. */
int settle_show(Manager *m);
