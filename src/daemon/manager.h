/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon in parts: the host state (what is known), notes, jobs, watches and settle. Operations (operations.h) have
 * no state of their own. The daemon has one thread, so no lock is needed.
 */

#include <systemd/sd-event.h>

#include "host/hoststate.h"
#include "host/store.h"
#include "jobs.h"
#include "note.h"
#include "settle.h"
#include "util/sysfs.h"
#include "watch.h"

typedef struct Manager {
        Sysfs *fs;
        const char *modprobe_dir;
        HostState host;
        Mlx4 options; /* mlx4.c: module options and problem as of the last write */
        struct {
                uint64_t serial;
                unsigned module;
        } modules[FABRIC_MODULE_MAX]; /* modules.c: NVLink module ids of GPUs */
        size_t n_modules;
        Store *store; /* the ledger on disk */
        sd_event *event;
        JobQueue jobs;
        Watches watches;
        sd_event_source *lease_timer; /* op-lease.c: the end of the lease that ends first; NULL: there is none */
        Notes notes;
        Settle settle;
        Told told;
        bool announced; /* startup is finished, and clients see the daemon */
        bool ready;     /* systemd was told so */
        bool stopping;  /* after SIGTERM: no new jobs, running jobs finish */
} Manager;

/*
 * Reads configuration, node and ledger; changes no hardware. Returns 0, a negative errno, or EX_CONFIG when the
 * configuration would offer hardware twice. sysroot, config_path (NULL: default search, see host/configfiles.h),
 * state_dir and modprobe_dir (NULL: the default below sysroot, see host/modprobe.h) are borrowed.
 */
int manager_new(const char *sysroot, const char *config_path, const char *state_dir, const char *modprobe_dir,
                Manager **ret);
Manager *manager_free(Manager *m);
DEFINE_CLEANUP(Manager *, manager_free)

/*
 * Creates VFs, resumes interrupted allocations, announces the daemon, and serves until SIGTERM, with or without a bus.
 * Returns 0, else a failure that was logged.
 */
int manager_run(Manager *m);
