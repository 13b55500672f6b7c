/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A job runs a list of hardware steps in a child process, because a write to sysfs may never return. A child that
 * cannot be killed blocks its devices, but never the event loop. jobs.h has the queue of jobs. */

#include "bus/server.h"
#include "host/executor.h"
#include "jobs-worker.h"
#include "ledger/allocation.h"

typedef struct Manager Manager;

typedef enum JobResult {
        JOB_DONE,
        JOB_FAILED, /* the job could not begin; or a step failed, and all changes that have an undo were undone; or the
                       steps were done, but JobKind.finished() failed */
        JOB_FAILED_DIRTY, /* a step failed and the undo failed too; or a process of the job died; or JobKind.finished()
                             failed, and devices stay changed */
        JOB_TIMEOUT, /* a process of the job was given up, and the job failed because of that; see job_is_stuck() */
        _JOB_RESULT_MAX,
} JobResult;
/* Returns the string for the result in the signal JobRemoved. */
const char *job_result_to_string(JobResult r);

/* A process that the job has given up because it ran past its limit, and that has not exited yet. */
typedef struct JobStuck {
        const Step *step; /* the step in which it is stuck; NULL: unknown */
        Doing doing;
        PciAddress *devices; /* devices whose locks the process may hold; if the step is not known, all devices of the
                                job */
        size_t n_devices;
} JobStuck;

/* What a process of a job is doing now. */
typedef struct Ongoing {
        const Step *step; /* NULL: the process has no step */
        Doing doing;
} Ongoing;

/* One job. Only jobs-job.c sets the members before `before`, except that jobs.c sets worker.lock and unlocked. Other
 * files set the members from `before` on. */
typedef struct Job {
        Manager *manager;
        const struct JobHandlers *handlers;
        const struct JobKind *kind;
        uint32_t id;
        char *subject; /* name of the allocation, address of the device, or other text */
        StepList *steps;
        char *step, *message; /* step: description of the step or of the read for a step that began last; "" before the
                                 first. message: the cause of the failure, or other information; else "" */
        char *counted_step;  /* description of the last step that n_begun counts; reads are not counted; NULL before the
                                first step */
        bool iommufd;        /* a device is plugged into a guest that uses iommufd */
        int error;           /* error of the failed or lacking step, a negative errno; else 0 */
        const Step *lacking; /* the first step that the job went without, see step_may_lack(); NULL: none */
        size_t current; /* index of the step that was reported last, as begun or as read for; steps->n before the first
                           report */
        bool *begun;    /* for each step, whether it has begun */
        unsigned n_begun;
        Ongoing *ongoing; /* [n]: what the process of chain n does; [0]: the process for steps that run alone */
        JobStuck *stuck;
        size_t n_stuck;
        uint64_t since;    /* when the job was created: CLOCK_MONOTONIC, microseconds */
        uint64_t deadline; /* for clients: when all steps will be done or given up: CLOCK_REALTIME, microseconds; 0
                              until the job begins */
        bool held;         /* the job waits for a call of job_let_begin() */
        bool has_result;   /* the job has ended, and JobHandlers.ended() was called or is being called */
        bool lost;         /* the child was killed or died, so what its processes did is unknown */
        bool unlocked;     /* the lock of the job was removed, or belongs to an orphan now */
        Worker worker;
        sd_event_source *defer;

        AllocationState before; /* of a release: the state to which the allocation returns after JOB_FAILED
                                   (release_finished()) */
        bool unnoted;   /* services_add() failed for a service to be stopped, so the job must not begin to write */
        bool starting;  /* the job belongs to the current StartPhase */
        bool resumed;   /* an earlier job may have changed the devices already, so the undo of this job does not restore
                           their state from before the allocation */
        bool waited;    /* the job had to wait until another job ended */
        bool unsaved;   /* the quarantine of a device could not be written to disk */
        bool removed;   /* JobRemoved was signalled; processes of the job may still be stuck */
        bool gone;      /* the child has exited, or none was forked; the job is about to be freed */
        unsigned noted; /* bits of JobNote */
        JobResult result;    /* valid when JobHandlers.ended() has returned */
        PciAddress *devices; /* unallocated devices that are blocked while the job runs */
        size_t n_devices;
} Job;

typedef struct JobHandlers {
        /* Called before the child is forked. Returns 0; or calls job_set_message() and returns a negative errno, and
         * the job fails before it changes anything. */
        int (*begin)(Job *job);
        /* Called for each report of the child except REPORT_GIVEN_UP, REPORT_RETURNED and REPORT_ENDED, when the step
         * and the message of the job are up to date. After the result is known, it is only called for reports of
         * failures. For REPORT_ALL_FOUND, the handler calls job_may_write(). */
        void (*reported)(Job *job, Step *step, const Report *report);
        /* Called when the job has given up a process that ran past its limit. */
        void (*given_up)(Job *job, const JobStuck *stuck);
        /* Called when such a process has exited after all. */
        void (*returned)(Job *job, const JobStuck *stuck);
        /* Called once, when the result is known. The child may still run then (job_is_stuck()). */
        void (*ended)(Job *job, JobResult result);
        /* Called last: when the child has exited; or right after ended() if no child was forked. The owner frees the
         * job later, not in this call. */
        void (*gone)(Job *job);
} JobHandlers;

/* Creates a job. Takes ownership of steps, also on failure. NULL when out of memory. */
Job *job_new(Manager *m, const struct JobKind *kind, uint32_t id, const char *subject, StepList *steps);
/* Frees the job. Kills the child if it still runs. */
Job *job_free(Job *job);
DEFINE_CLEANUP(Job *, job_free)

/* Has the job begin in the next turn of the loop, when its child is forked. A job without steps needs no child, and is
 * done then. Returns 0 or a negative errno. */
int job_start(Job *job, const JobHandlers *handlers);
/* Delays the start of the child until job_let_begin() is called. Both return 0 or a negative errno. */
int job_hold(Job *job);
int job_let_begin(Job *job);

/* Answers REPORT_ALL_FOUND: lets the child begin its writes (may), or ends the job before them. */
void job_may_write(Job *job, bool may);
void job_set_message(Job *job, const char *message);
unsigned job_steps_done(const Job *job);

/* Returns the step that began last, or for which a read began last; NULL before the first. */
static inline const Step *job_current(const Job *job) {
        return job->current < job->steps->n ? &job->steps->steps[job->current] : NULL;
}

/* Records that a process of the job begins the step. If that process is the one for steps that run alone, the processes
 * of all chains have ended. */
void job_note_begun(Job *job, const Step *step, Doing doing);
/* Records that the process of this step has ended, or was given up. */
void job_note_ended(Job *job, const Step *step);
/* Lists what the job does with each of its devices, sorted by device. The caller frees the list with
 * device_steps_free(). Returns 0 or -ENOMEM. */
int job_device_steps(const Job *job, DeviceStep **ret, size_t *ret_n);
/* Returns a phrase for the step in which the process is stuck. The caller frees; NULL when out of memory. */
char *job_stuck_describe(const JobStuck *stuck);

/* Returns true when the job has no child, because none was forked yet, or because it has exited. */
static inline bool job_is_gone(const Job *job) {
        return job->worker.pid == 0;
}

/* Returns true when the result is known but the child still runs. */
static inline bool job_is_stuck(const Job *job) {
        return job->has_result && !job_is_gone(job);
}
