/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The jobs that run or wait, the children of an earlier daemon that are still alive (orphans), and the services that
 * jobs have stopped.
 */

#include "bus/server.h"
#include "host/joblock.h"
#include "host/store.h"
#include "jobs-job.h"

/* Child processes of an earlier daemon that still run. Their devices are blocked until they exit. */
typedef struct Orphans {
        int dir_fd;     /* directory of the locks; negative when it could not be opened */
        bool unwritten; /* a failure to write a lock was logged */
        JobLock *locks;
        size_t n;
        sd_event_source *timer;
} Orphans;

typedef struct JobQueue {
        Job **list;
        size_t n;
        uint32_t last_id;
        Orphans orphans;
        char **stopped; /* names of the services that jobs have stopped */
        size_t n_stopped;
        bool stopped_saved;           /* the list on disk is the same */
        JobTime times[JOB_TIMES_MAX]; /* statistics of the jobs that have ended */
        size_t n_times;
} JobQueue;

/* jobs.c */
typedef struct JobKind {
        const char *verb;
        void (*begun)(Manager *m, Job *job); /* called before the signal JobNew; may be NULL */
        /* Checks again whether a job that waited may begin; NULL when its steps check that, as STEP_CHECK_IDLE does. */
        Verdict (*check)(Manager *m, const Job *job, Refusal *ret);
        /*
         * Called before the first write, for each step that sets attributes, with the present attributes of the VF
         * (StepList.reports_found_state). all_found() follows the last call; if it returns a negative errno, because
         * they could not be saved, the job ends. NULL when the steps never report attributes; device_failed is NULL
         * likewise.
         */
        void (*found)(Manager *m, const Job *job, const Step *step, const VfAttributes *found);
        int (*all_found)(Manager *m, const Job *job);
        /* Called when the guest has the device of the step. place: a text as in ledger/guestplace.h. */
        void (*placed)(Manager *m, const Job *job, const Step *step, const char *place);
        /* Called when the device of the step must not be given to another guest; message: a sentence that says why. */
        void (*device_failed)(Manager *m, Job *job, const Step *step, const char *message);
        /* Called with the result. Reads the devices again and returns the final result; calls job_set_message() when it
         * is worse. */
        JobResult (*finished)(Manager *m, Job *job, JobResult result);
} JobKind;
/*
 * Starts a job; takes ownership of steps. devices (copied): unallocated devices that are blocked while the job runs.
 * Refuses, without any effect, when too many jobs run. A failed fork() later is a failed job, not a refusal.
 */
Verdict manager_start_job(Manager *m, const JobKind *kind, const char *subject, StepList *steps,
                          const PciAddress *devices, size_t n_devices, uint32_t *ret_id, Refusal *ret);
/* Refuses when too many jobs run to start another. */
Verdict job_queue_check_room(const JobQueue *q, Refusal *ret);
Job *job_queue_find(const JobQueue *q, uint32_t id);
/* Returns whether a job has this subject. */
bool job_queue_has(const JobQueue *q, const char *subject);
/* Returns the number of the job with this subject that has no result yet; 0 when there is none. */
uint32_t job_queue_find_subject(const JobQueue *q, const char *subject);
/* Returns true when a process that is stuck with the device may be giving it to a guest, or taking it from one. */
bool job_queue_may_plug(const JobQueue *q, PciAddress device);
/* Returns the number of jobs that are not stuck. */
size_t job_queue_active(const JobQueue *q);
/* Frees the jobs whose child has exited and whose end clients were told. */
void job_queue_drop_gone(JobQueue *q);
void job_queue_done(JobQueue *q);

/* Marks the device as stuck, with the sentence message, or as no longer stuck (NULL), and records it in the history. */
void manager_set_stuck(Manager *m, PciAddress device, const char *message);

/* The verb of jobs that may change the number of VFs. */
#define MANAGER_VERB_VFS "set-vfs"

/* jobs-orphans.c */
/* Finds orphans and blocks their devices. Call it before the first scan. */
void manager_find_orphans(Manager *m, const char *state_dir);
void orphans_done(Orphans *o);
/* Returns true when the orphan's job may hold the kernel's lock for adding and removing VFs. */
bool orphan_changes_vfs(const JobLock *lock);
/* Returns verb and subject of an orphan's job that may hold that lock; NULL for none. */
const char *orphans_find_at_vfs(const Orphans *o);
/* Creates the lock by which a later daemon finds the job's child. Returns its descriptor, or a negative errno.
 */
int orphans_lock_job(Orphans *o, const Job *job);
/* Removes from the lock file of an ended job the devices on which no process of it is stuck, so that a later daemon
 * does not block them. */
void orphans_narrow_lock(const Orphans *o, const Job *job);
/* Removes the lock of the job, whose child has exited. */
void orphans_unlock_job(const Orphans *o, const Job *job);

/* Polls from the event loop for the exit of orphans, and then notes their devices as new for the next round of
 * settle.h. */
int manager_follow_orphans(Manager *m);
/* Handles the death of a job's child. If one of its processes still runs, blocked in the kernel, its devices are
 * blocked as those of an orphan until it exits. Returns false when no process runs. */
bool manager_adopt_orphan(Manager *m, const Job *job);

/* jobs-services.c */
/* Loads the services that an earlier daemon left stopped. text is from store_load(), and is modified. */
int services_load(JobQueue *q, char *text);
/* Writes the names of the stopped services to disk. Returns 0 or a negative errno. */
int services_save(JobQueue *q, Store *store);
/* Records in memory that the active service is about to be stopped. Returns 0 or -ENOMEM. */
int services_add(JobQueue *q, const char *name);
/* Handles the attempt to start a service. asked: systemd was asked to start the service, so its name is removed. error:
 * why the service is not active. */
void services_started(JobQueue *q, Store *store, const char *name, bool asked, int error);
bool services_have(const JobQueue *q, const char *name);
#define MANAGER_VERB_START_SERVICES "start-services"
/* Starts a job that starts the stopped services which no running job will start. */
void manager_start_services(Manager *m);
