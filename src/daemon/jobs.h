/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The queue of jobs, running or waiting; the processes that outlive their daemon or the child of their job (orphans);
 * and the services that jobs have stopped. */

#include "bus/server.h"
#include "host/joblock.h"
#include "host/store.h"
#include "jobs-job.h"

/* Processes of jobs that have outlived the daemon that started the job, or the child of the job
 * (manager_adopt_orphan()). Their devices are blocked until they exit. */
typedef struct Orphans {
        int dir_fd;     /* directory of the lock files; negative when it could not be opened */
        bool unwritten; /* it was logged that a lock could not be written */
        JobLock *locks;
        size_t n;
        sd_event_source *timer;
} Orphans;

typedef struct JobQueue {
        Job **list;
        size_t n;
        uint32_t last_id;
        Orphans orphans;
        char **stopped; /* names of the services that jobs stop, until systemd was asked to start them again */
        size_t n_stopped;
        bool stopped_saved;           /* the list on disk has the same names */
        JobTime times[JOB_TIMES_MAX]; /* number and total time of the jobs that have ended, by verb and result */
        size_t n_times;
} JobQueue;

/* jobs.c: what the jobs with the same verb have in common. */
typedef struct JobKind {
        const char *verb;
        void (*begun)(Manager *m, Job *job); /* called before the signal JobNew; may be NULL */
        /* Checks whether a job that had to wait may begin. NULL when no check is needed, for example because steps
         * of the job check the same. */
        Verdict (*check)(Manager *m, const Job *job, Refusal *ret);
        /* Called before the first write, for each step that sets attributes, with the present attributes of the VF
         * (StepList.reports_found_state). all_found() is called at REPORT_ALL_FOUND, also before the first write. It
         * saves what was found; if it returns a negative errno, the job ends. Both are NULL when the steps never report
         * attributes. */
        void (*found)(Manager *m, const Job *job, const Step *step, const VfAttributes *found);
        int (*all_found)(Manager *m, const Job *job);
        /* Called when the domain has the device of the step. place: where in the guest, as text of ledger/guestplace.h.
         * The member is NULL when the steps never report this. */
        void (*placed)(Manager *m, const Job *job, const Step *step, const char *place);
        /* Called when the step has failed and the job continues (REPORT_DEVICE_FAILED). In jobs that release devices,
         * no other guest may get the device. message: a sentence with the cause. The member is NULL when no step
         * reports this. */
        void (*device_failed)(Manager *m, Job *job, const Step *step, const char *message);
        /* Called with the result. Reads the devices again if the job may have changed them, and returns the final
         * result. If that is worse than `result`, calls job_set_message(), except when memory has run out. */
        JobResult (*finished)(Manager *m, Job *job, JobResult result);
} JobKind;
/* Starts a job. Takes ownership of steps, also on a refusal. devices (copied): devices without an allocation that are
 * blocked while the job runs. Refuses, and changes nothing, when too many jobs and orphans run; when a process of an
 * earlier job with this subject is stuck and may hold the lock of a device of the steps; or when memory runs out or the
 * event loop reports an error. If fork() fails later, the job fails. */
Verdict manager_start_job(Manager *m, const JobKind *kind, const char *subject, StepList *steps,
                          const PciAddress *devices, size_t n_devices, uint32_t *ret_id, Refusal *ret);
/* Refuses when no further job can be started because too many run. */
Verdict job_queue_check_room(const JobQueue *q, Refusal *ret);
Job *job_queue_find(const JobQueue *q, uint32_t id);
/* Returns true when the queue has a job with this subject that is not gone (Job.gone). */
bool job_queue_has(const JobQueue *q, const char *subject);
/* Returns the number of the job that has this subject and no result yet; 0 when there is none. */
uint32_t job_queue_find_subject(const JobQueue *q, const char *subject);
/* Returns true when a process that is stuck at the device may be plugging it into a guest or out of a guest. */
bool job_queue_may_plug(const JobQueue *q, PciAddress device);
/* Returns the number of jobs that are not stuck. */
size_t job_queue_active(const JobQueue *q);
/* Frees the jobs whose child has exited. Call it after their end was signalled to clients. */
void job_queue_drop_gone(JobQueue *q);
void job_queue_done(JobQueue *q);

/* Marks the device as stuck and records this in the history. message: a sentence; NULL: the device is no longer
 * stuck. */
void manager_set_stuck(Manager *m, PciAddress device, const char *message);

/* The verb of the jobs that may change the number of VFs. */
#define MANAGER_VERB_VFS "set-vfs"

/* jobs-orphans.c */
/* Finds orphans and blocks their devices. Call it before the first scan of the node. */
void manager_find_orphans(Manager *m, const char *state_dir);
void orphans_done(Orphans *o);
/* Returns true when the job of the orphan may hold the kernel's lock for adding and removing VFs. */
bool orphan_changes_vfs(const JobLock *lock);
/* Returns the verb and the subject of the job of an orphan for which orphan_changes_vfs() is true. NULL: there is no
 * such orphan. */
const char *orphans_find_at_vfs(const Orphans *o);
/* Creates the lock by which a later daemon finds the child of the job. Returns a descriptor or a negative errno. */
int orphans_lock_job(Orphans *o, const Job *job);
/* Call it when a job has ended and its child still runs. Removes from the job's lock file the devices on which none of
 * its processes is stuck, so that a later daemon does not block these devices. */
void orphans_narrow_lock(const Orphans *o, const Job *job);
/* Removes the lock of a job whose child has exited. */
void orphans_unlock_job(const Orphans *o, const Job *job);

/* Polls in the event loop whether orphans have exited. Notes the devices of an orphan that has exited as new for the
 * next round of settle.h. Returns 0 or a negative errno. */
int manager_follow_orphans(Manager *m);
/* Handles the death of a job's child. If a process that the child started is still blocked in the kernel, makes this
 * process an orphan, whose devices are blocked until it exits. Returns true if it did; false when no process runs, the
 * lock cannot be read, or memory has run out. */
bool manager_adopt_orphan(Manager *m, const Job *job);

/* jobs-services.c */
/* Loads the names of the services that an earlier daemon left stopped. text: from store_load(); it is modified. Returns
 * 0 or a negative errno. */
int services_load(JobQueue *q, char *text);
/* Writes the names of the stopped services to disk. Returns 0 or a negative errno. */
int services_save(JobQueue *q, Store *store);
/* Records in memory that a job is about to stop the service, or that an earlier daemon left it stopped. Returns 0 or
 * -ENOMEM. */
int services_add(JobQueue *q, const char *name);
/* Handles the end of an attempt to start a service. asked: another try is useless (root_start_unit()), so the service
 * is removed from the list. error: a negative errno if the start has failed; 0: the service is active, or systemd still
 * starts it. */
void services_started(JobQueue *q, Store *store, const char *name, bool asked, int error);
bool services_have(const JobQueue *q, const char *name);
#define MANAGER_VERB_START_SERVICES "start-services"
/* Starts a job that starts the stopped services, except those that a job of the queue will start. */
void manager_start_services(Manager *m);
