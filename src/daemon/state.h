/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The Manager: the host state (all known facts), and the state of notes, jobs, watches and settle. Operations
 * (operations.h) have no state here but two event sources: lease_timer, and Watches.shm for shared memory. The daemon
 * has one thread, so it needs no locks. */

#include <systemd/sd-event.h>

#include "host/hoststate.h"
#include "host/store.h"
#include "jobs.h"
#include "note.h"
#include "settle.h"
#include "util/sysfs.h"
#include "watch.h"

/* What NVIDIA's driver has told about one GPU. */
typedef struct ModuleEntry {
        uint64_t serial;
        unsigned module; /* NVLink module id; 0: none */
        ConfidentialMode mode;
} ModuleEntry;

typedef struct Manager {
        Sysfs *fs;
        const char *modprobe_dir;
        HostState host;
        Mlx4 options;                           /* facts-mlx4.c: the result of the last manager_write_options() */
        ModuleEntry modules[FABRIC_MODULE_MAX]; /* facts-modules.c: what NVIDIA's driver has told about GPUs */
        size_t n_modules;
        Store *store; /* the ledger on disk */
        sd_event *event;
        JobQueue jobs;
        Watches watches;
        sd_event_source *lease_timer; /* op-lease.c: fires when the next lease ends; NULL: not set */
        Notes notes;
        Settle settle;
        Told told;
        bool announced; /* startup has ended, and clients see the objects */
        bool ready;     /* systemd was told that the daemon is ready */
        bool stopping;  /* after SIGTERM or SIGINT: calls that change something are refused, running jobs finish */
} Manager;

/* state.c */
/* Lists the devices whose device lock a running job or an orphan may hold, and their VFs. On these, a read of
 * driver_override may block for ever. Before the first scan, also lists the devices of interrupted allocations. May
 * list a device twice. The caller frees *ret. Returns 0 or -ENOMEM. */
int manager_busy_devices(const Manager *m, PciAddress **ret, size_t *ret_n);
/* Returns true when the device is one of manager_busy_devices(), or when out of memory. Call it after the first scan.
 */
bool manager_is_busy(const Manager *m, PciAddress address);
/* Returns true when an orphan works on the device, or did so until it exited in this turn. */
bool orphans_have(const Orphans *o, PciAddress address);
/* Appends the devices of all orphans that have not exited. Returns 0 or -ENOMEM. */
int orphans_devices(const Orphans *o, PciAddress **devices, size_t *n);
/* Appends the devices on which a process of the job may work: the devices of all its steps, or if the result is known,
 * those on which it is stuck. Appends none while the job has no child. May sort the array and remove its duplicates.
 * Returns 0 or -ENOMEM. */
int job_busy_devices(const Job *job, PciAddress **devices, size_t *n);
