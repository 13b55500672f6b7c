/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A job runs a list of hardware steps in a child process, because a write to sysfs may never return. A child that does
 * not die when killed blocks its device, but never the event loop. jobs.h has the queue of jobs.
 */

#include "bus/server.h"
#include "host/executor.h"
#include "jobs-worker.h"
#include "ledger/allocation.h"

typedef struct Manager Manager;

typedef enum JobResult {
        JOB_DONE,
        JOB_FAILED,       /* a step failed; the earlier steps were undone */
        JOB_FAILED_DIRTY, /* a step failed and the undo failed too, or a process of the job died */
        JOB_TIMEOUT,      /* a process of the job was given up; see job_is_stuck() */
        _JOB_RESULT_MAX,
} JobResult;
/* The result string of the JobRemoved signal. */
const char *job_result_to_string(JobResult r);

/* A process of the job that was given up, and has not exited. */
typedef struct JobStuck {
        const Step *step; /* NULL: the step is not known */
        Doing doing;
        PciAddress *devices; /* whose locks the process may hold; without a known step all of the job */
        size_t n_devices;
} JobStuck;

/* What a process of the job does at present. */
typedef struct Ongoing {
        const Step *step; /* NULL: nothing */
        Doing doing;
} Ongoing;

/* All members belong to the job; other files set only those from before on. */
typedef struct Job {
        Manager *manager;
        const struct JobHandlers *handlers;
        const struct JobKind *kind;
        uint32_t id;
        char *subject; /* name of the allocation, address of the device, or other text */
        StepList *steps;
        char *step, *message; /* the current step, "" before the first; why the job failed, or what to know; else "" */
        char *counted_step;   /* as step, but only of steps that n_begun counts: not of reads; NULL before the first */
        bool iommufd;         /* the guest that gets a device has its devices by iommufd */
        int error;            /* of the failed or lacking step: a negative errno; else 0 */
        const Step *lacking;  /* the first step that the job is done without, see step_may_lack(); NULL: none */
        size_t current;       /* index of the step that began last; steps->n before the first */
        bool *begun;          /* of each step */
        unsigned n_begun;
        Ongoing *ongoing; /* [n]: of chain n; [0]: of the process of all chains */
        JobStuck *stuck;
        size_t n_stuck;
        uint64_t since;    /* CLOCK_MONOTONIC, when the job was started */
        uint64_t deadline; /* CLOCK_REALTIME, when all its steps will be done or given up, for clients; 0 until it
                              begins */
        bool held;         /* until job_let_begin() */
        bool has_result;   /* the result is known */
        bool lost;         /* the child was killed or has died, so the state of its processes is unknown */
        bool unlocked;     /* its lock is removed, or an orphan's */
        Worker worker;
        sd_event_source *defer;

        AllocationState before; /* state of the allocation before the job; restored when a release fails */
        bool unnoted;           /* a service that will be stopped could not be noted */
        bool starting;          /* belongs to the current StartPhase */
        bool resumed;           /* continues an earlier job, so its undo does not restore the state before that job */
        bool waited;            /* was held until another job ended */
        bool unsaved;           /* the quarantine of a device could not be written to disk */
        bool removed;           /* gone from the bus; what it is stuck on stays blocked until the child exits */
        bool gone;              /* the child has exited, and the job is to be freed */
        unsigned noted;         /* of JobNote */
        JobResult result;       /* when has_result */
        PciAddress *devices;    /* blocked while the job runs; none of them is allocated */
        size_t n_devices;
} Job;

typedef struct JobHandlers {
        /* Before the child is forked. A negative errno fails the job before it changes anything; the handler sets the
         * message. */
        int (*begin)(Job *job);
        /* A report of the child, after step and message are up to date. For REPORT_ALL_FOUND it calls
         * job_may_write(). */
        void (*reported)(Job *job, Step *step, const Report *report);
        /* A process of the job was given up. */
        void (*given_up)(Job *job, const JobStuck *stuck);
        /* A process that was given up has exited. */
        void (*returned)(Job *job, const JobStuck *stuck);
        /* Called once, when the result is known. The child may still be alive: job_is_stuck(). */
        void (*ended)(Job *job, JobResult result);
        /* Called after ended and returned, when the child has exited: the owner frees the job later. */
        void (*gone)(Job *job);
} JobHandlers;

/* Takes ownership of steps, also on failure. NULL: out of memory. */
Job *job_new(Manager *m, const struct JobKind *kind, uint32_t id, const char *subject, StepList *steps);
/* Kills a running child. */
Job *job_free(Job *job);
DEFINE_CLEANUP(Job *, job_free)

/* Forks the child in the next loop iteration. A job without steps has no child and is done then. Returns 0 or a
 * negative errno. */
int job_start(Job *job, const JobHandlers *handlers);
/* Delays the begin of a started job until job_let_begin(). */
int job_hold(Job *job);
int job_let_begin(Job *job);

/* Allows the child to begin its writes, or ends the job before them. */
void job_may_write(Job *job, bool may);
void job_set_message(Job *job, const char *message);
unsigned job_steps_done(const Job *job);

/* The step that began last; NULL before the first. */
static inline const Step *job_current(const Job *job) {
        return job->current < job->steps->n ? &job->steps->steps[job->current] : NULL;
}

/* A process of the job begins this. A process that runs alone begins when all others have ended. */
void job_note_begun(Job *job, const Step *step, Doing doing);
/* The process that began this step has ended, or was given up. */
void job_note_ended(Job *job, const Step *step);
/* What the job does with its devices, sorted by device. The caller frees with device_steps_free(). 0 or -ENOMEM. */
int job_device_steps(const Job *job, DeviceStep **ret, size_t *ret_n);
/* What the process was to do, as a phrase. The caller frees; NULL when out of memory. */
char *job_stuck_describe(const JobStuck *stuck);

/* No child exists: none was forked yet, or it has exited. */
static inline bool job_is_gone(const Job *job) {
        return job->worker.pid == 0;
}

/* The result is known, and the child has not exited. */
static inline bool job_is_stuck(const Job *job) {
        return job->has_result && !job_is_gone(job);
}
