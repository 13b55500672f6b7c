/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The jobs that run or wait, the children of an earlier daemon that are still alive (orphans), and the services that
 * jobs have stopped.
 */

#include "job.h"
#include "ledger/allocation.h"

typedef struct Manager Manager;
typedef struct Orphans Orphans;

typedef struct ManagerJob {
        Job *job;
        const struct JobKind *kind;
        AllocationState before; /* state of the allocation before the job; restored when a release fails */
        bool starting;          /* belongs to the current StartPhase */
        bool resumed;           /* continues an earlier job, so its undo does not restore the state before that job */
        bool waited;            /* was held until another job ended */
        bool unsaved;           /* the quarantine of a device could not be written to disk */
        bool timed_out;         /* gone from the bus; its devices stay blocked until the child exits */
        PciAddress *devices;    /* blocked while the job runs; none of them is allocated */
        size_t n_devices;
} ManagerJob;

typedef struct JobQueue {
        ManagerJob *list;
        size_t n;
        uint32_t last_id;
        Orphans *orphans; /* orphans.c */
        char **stopped;   /* services.c: services stopped for jobs */
        size_t n_stopped;
} JobQueue;

/* jobs.c */
typedef struct JobKind {
        const char *verb;
        void (*begun)(Manager *m, const ManagerJob *mj); /* before JobNew; may be NULL */
        /* Checks again whether a job that waited may begin; NULL when its steps check that, as STEP_CHECK_IDLE does. */
        Verdict (*check)(Manager *m, const ManagerJob *mj, Refusal *ret);
        /* As on_found, on_all_found and on_device_failed of JobCallbacks; NULL when the steps never report them. */
        void (*found)(Manager *m, const ManagerJob *mj, const Step *step, const VfAttributes *found);
        int (*all_found)(Manager *m, const ManagerJob *mj);
        void (*device_failed)(Manager *m, const ManagerJob *mj, const Step *step, const char *message);
        /* Reads the devices again and returns the final result; calls job_set_message() when it is worse. */
        JobResult (*finished)(Manager *m, const ManagerJob *mj, JobResult result);
} JobKind;
/*
 * Starts a job; takes ownership of steps. devices (copied): unallocated devices that are blocked while the job runs.
 * Refuses, without any effect, when too many jobs run. A failed fork() later is a failed job, not a refusal.
 */
Verdict manager_start_job(Manager *m, const JobKind *kind, const char *subject, StepList *steps,
                          const PciAddress *devices, size_t n_devices, uint32_t *ret_id, Refusal *ret);
/* VERDICT_NONE when another job may start. */
Verdict manager_check_jobs(const Manager *m, Refusal *ret);
ManagerJob *manager_find_job(Manager *m, uint32_t id);
/* Whether a job has this subject. */
bool manager_has_job(const Manager *m, const char *subject);
/* The number of jobs that are not stuck. */
size_t manager_active_jobs(const Manager *m);

/* busy.c */
/*
 * The devices whose device lock a running job or an orphan may hold: reading driver_override would block, perhaps for
 * ever. The caller frees *ret.
 */
int manager_busy_devices(const Manager *m, PciAddress **ret, size_t *ret_n);
/* Whether the device is one of manager_busy_devices(); true when out of memory. */
bool manager_is_busy(const Manager *m, PciAddress address);

/* orphans.c */
/* Orphans are children of an earlier daemon that are still alive. Their devices are blocked until they exit. */
/* Finds orphans and blocks their devices. Call it before the first scan. Returns 0 or a negative errno. */
int manager_find_orphans(Manager *m, const char *state_dir);
void manager_forget_orphans(Manager *m);
/* The number of orphans. */
size_t manager_orphans(const Manager *m);
/* Whether an orphan works on this device, or did until it exited just now. */
bool manager_is_orphaned(const Manager *m, PciAddress address);
/* Appends the devices of all orphans. */
int manager_orphaned_devices(const Manager *m, PciAddress **devices, size_t *n);
/* Verb and subject of an orphan's job that may hold the kernel's lock for adding and removing VFs; NULL for none. */
const char *manager_find_orphan_at_vfs(const Manager *m);
/* Creates the lock by which a later daemon finds the job's child. Returns its descriptor, or a negative errno. */
int manager_lock_job(Manager *m, const Job *job);
/* Removes the lock of the job; its child has exited. */
void manager_unlock_job(Manager *m, const Job *job);

/* orphans-end.c */
/* Polls from the event loop for the exit of orphans, and queues their devices for manager_reconcile(). */
int manager_follow_orphans(Manager *m);

/* services.c */
/* Loads the services that an earlier daemon left stopped. text is from store_load(), and is modified. */
int manager_load_services(Manager *m, char *text);
/* Writes the noted services to disk. Returns 0 or a negative errno. */
int manager_save_services(Manager *m);
/* Notes in memory that the active service is about to be stopped. Returns 0 or -ENOMEM. */
int manager_service_active(Manager *m, const char *name);
/* asked: systemd was asked to start the service, so it is no longer noted. error: why the service is not active. */
void manager_service_started(Manager *m, const char *name, bool asked, int error);
bool manager_service_is_noted(const Manager *m, const char *name);
/* An earlier job stops or starts a service of this job, or creates or removes a shared memory region of it. */
bool manager_job_must_wait(const Manager *m, const Job *job);

/* services-job.c */
#define MANAGER_VERB_START_SERVICES "start-services"
/* Starts a job for the noted services that no running job will start. */
void manager_start_services(Manager *m);
