/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The Manager: the host state (the known facts), and the state of the notes, jobs, watches and settle. Operations
 * (operations.h) have no state of their own. The daemon has one thread, so no lock is needed.
 */

#include <systemd/sd-event.h>

#include "host/hoststate.h"
#include "host/store.h"
#include "jobs.h"
#include "note.h"
#include "settle.h"
#include "util/sysfs.h"
#include "watch.h"

/* What NVIDIA's driver told of a GPU. */
typedef struct ModuleEntry {
        uint64_t serial;
        unsigned module; /* 0: none */
        ConfidentialMode mode;
} ModuleEntry;

typedef struct Manager {
        Sysfs *fs;
        const char *modprobe_dir;
        HostState host;
        Mlx4 options;                           /* facts-mlx4.c: module options and problem of the last write */
        ModuleEntry modules[FABRIC_MODULE_MAX]; /* facts-modules.c: NVLink module ids and confidential modes of GPUs */
        size_t n_modules;
        Store *store; /* the ledger on disk */
        sd_event *event;
        JobQueue jobs;
        Watches watches;
        sd_event_source *lease_timer; /* op-lease.c: fires when the first lease ends; NULL: there is none */
        Notes notes;
        Settle settle;
        Told told;
        bool announced; /* startup is finished, and clients see the daemon */
        bool ready;     /* systemd was told that the daemon is ready */
        bool stopping;  /* after SIGTERM: no new jobs, running jobs finish */
} Manager;

/* state.c */
/*
 * Lists the devices whose device lock a running job or an orphan may hold: reading driver_override would block, perhaps
 * for ever. The caller frees *ret.
 */
int manager_busy_devices(const Manager *m, PciAddress **ret, size_t *ret_n);
/* Returns whether the device is one of manager_busy_devices(); true when out of memory. */
bool manager_is_busy(const Manager *m, PciAddress address);
/* Returns whether an orphan works on this device, or did until it exited just now. */
bool orphans_have(const Orphans *o, PciAddress address);
/* Appends the devices of all orphans. */
int orphans_devices(const Orphans *o, PciAddress **devices, size_t *n);
/* Appends the devices on which a process of the job may work: those of all its steps, or when the result is known,
 * those on which it is stuck. Adds no address twice, but the array may have it already. 0 or -ENOMEM. */
int job_busy_devices(const Job *job, PciAddress **devices, size_t *n);
