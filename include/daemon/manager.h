/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon's state and what happens to it: facts (inventory), decisions (config, policy), promises (ledger, store) and work (jobs). Every
 * change goes through here, one at a time, so no lock is needed.
 */

#include <systemd/sd-event.h>

#include "bus/server.h"
#include "daemon/job.h"
#include "host/store.h"
#include "util/sysfs.h"

/* Jobs at once, those whose child never came back among them. */
#define MANAGER_JOBS_MAX SERVER_JOBS_MAX
/* VFs and Bind=start bindings at work at the same time at start. */
#define MANAGER_START_JOBS_MAX 8U

/* Exit status for a configuration that is refused, EX_CONFIG of sysexits.h: systemd must not try again. */
#define EXIT_CONFIG 78

typedef struct ManagerJob {
        Job *job;
        const struct JobKind *kind;
        AllocationState before; /* of the allocation, where a failed release goes back to */
        bool starting;          /* one of those that start waits for */
        bool timed_out;         /* its device is stuck until the child is gone */
        PciAddress *devices; /* out of circulation while it runs, when no allocation has them */
        size_t n_devices;
} ManagerJob;

typedef struct Manager {
        Sysfs *fs;
        const char *config_path;
        Config *config;
        Inventory *inventory;
        Locality *locality;
        Policy *policy;
        Ledger *ledger;
        Store *store;

        sd_event *event;
        Server *server;
        ManagerJob *jobs; /* in order of their ids */
        size_t n_jobs;
        uint32_t last_job;
        PciAddress *to_bind; /* devices of pools with Bind=start that still wait for their job */
        size_t n_to_bind;
        bool binding; /* VFs are done, devices are being bound */
        bool announced;
        bool stopping; /* SIGTERM came: no new work, the rest is brought to its end */
} Manager;

/*
 * Reads configuration, node and ledger; touches no hardware. Returns 0, a negative errno, or EXIT_CONFIG when the configuration would
 * offer hardware twice. sysroot, config_path and state_dir are borrowed.
 */
int manager_new(const char *sysroot, const char *config_path, const char *state_dir, Manager **ret);
Manager *manager_free(Manager *m);
DEFINE_CLEANUP(Manager *, manager_free)

/* Connects to the bus, brings interrupted work to its end, creates VFs, announces, and serves until SIGTERM. */
int manager_run(Manager *m);

PlanContext manager_context(const Manager *m);

/* manager-facts.c: facts and configuration. */
int manager_load_config(Manager *m, Config **ret);
/* Reads the node anew; signals what came and went. */
int manager_scan(Manager *m);
/* Reads driver and override of these devices anew. Returns whether any differed, or -ENOMEM. */
int manager_refresh(Manager *m, const PciAddress *devices, size_t n);
Verdict manager_reload(Manager *m, Refusal *ret);

/* manager-jobs.c */
typedef struct JobKind {
        const char *verb;
        void (*finished)(Manager *m, const ManagerJob *mj, JobResult result);
} JobKind;
/*
 * Starts a job; takes over steps. devices (copied): those that no allocation has and nobody may get meanwhile. Refused when there are
 * too many jobs or no process can be made; then nothing was done.
 */
Verdict manager_start_job(Manager *m, const JobKind *kind, const char *subject, StepList *steps, const PciAddress *devices, size_t n_devices,
                          uint32_t *ret_id, Refusal *ret);
ManagerJob *manager_find_job(Manager *m, uint32_t id);
size_t manager_active_jobs(const Manager *m);

/* manager-allocate.c */
Verdict manager_allocate(Manager *m, const char *name, const Request *request, uint32_t owner, uint32_t *ret_job, Refusal *ret);
Verdict manager_release(Manager *m, const char *name, uint64_t generation, uint32_t *ret_job, Refusal *ret);
/* Takes up what a stop or crash interrupted. */
void manager_resume(Manager *m);

/* manager-start.c: VFs, and devices bound from start. */
void manager_start_vfs(Manager *m);
void manager_start_binding(Manager *m);
Verdict manager_set_virtual_functions(Manager *m, PciAddress pf, unsigned count, uint32_t *ret_job, Refusal *ret);
/* Called whenever a job ended: announces the daemon once nothing is left that start waits for. */
void manager_check_started(Manager *m);
