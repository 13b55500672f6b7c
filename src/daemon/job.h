/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A job runs a list of hardware steps in a child process, because a write to sysfs may never return. The parent reads
 * reports from a pipe and has a deadline. A child that does not die when killed blocks its device, but never the event
 * loop.
 */

#include <systemd/sd-event.h>

#include "steps/step.h"
#include "util/sysfs.h"

typedef enum JobResult {
        JOB_DONE,
        JOB_FAILED,       /* a step failed; the earlier steps were undone */
        JOB_FAILED_DIRTY, /* a step failed and the undo failed too, or the child died */
        JOB_TIMEOUT,      /* killed at its deadline; see job_is_stuck() */
        _JOB_RESULT_MAX,
} JobResult;
/* The result string of the JobRemoved signal. */
const char *job_result_to_string(JobResult r);

typedef struct Job Job;

typedef struct JobCallbacks {
        /* Called before the child is forked. A negative errno fails the job before it changes anything; the callback
         * says why with job_set_message(). */
        int (*on_begin)(Job *job, void *userdata);
        void (*on_step)(Job *job, void *userdata);
        /*
         * Before the first write: the present attributes of the VF of each step that sets attributes
         * (StepList.reports_found_state). on_all_found follows the last of them; a negative errno, when they could not
         * be saved, ends the job.
         */
        void (*on_found)(Job *job, const Step *step, const VfAttributes *found, void *userdata);
        int (*on_all_found)(Job *job, void *userdata);
        /* The service of the step is active and will be stopped. Called before on_all_found; a negative errno ends the
         * job without on_all_found. */
        int (*on_active)(Job *job, const Step *step, void *userdata);
        /* asked: systemd was asked to start the service of the step again. error: why the service is not active. */
        void (*on_started)(Job *job, const Step *step, bool asked, int error, void *userdata);
        /* The device of the step must not be given to another guest; message is the sentence that says why. */
        void (*on_device_failed)(Job *job, const Step *step, const char *message, void *userdata);
        /* Called once, when the result is known. At a timeout the child may still be alive: job_is_stuck(). */
        void (*on_result)(Job *job, JobResult result, void *userdata);
        /* Called after on_result, when the child has exited; the owner frees the job. */
        void (*on_gone)(Job *job, void *userdata);
} JobCallbacks;

/* verb is borrowed and must be static. Takes ownership of steps, also on failure. Returns 0 or -ENOMEM. */
int job_new(uint32_t id, const char *verb, const char *subject, StepList *steps, Job **ret);
/* Kills a running child. */
Job *job_free(Job *job);
DEFINE_CLEANUP(Job *, job_free)

/* Forks the child in the next loop iteration. A job without steps has no child and is done then. Returns 0 or a
 * negative errno. */
int job_start(Job *job, sd_event *event, const Sysfs *fs, unsigned timeout_sec, const JobCallbacks *callbacks,
              void *userdata);

/* A lock for the child, which holds it until it exits. In on_begin() only; takes ownership of fd, which may be
 * negative.
 */
void job_set_lock(Job *job, int fd);
/* Skips the step, which still counts for the jobs that have to wait for this one. In on_begin() only. */
void job_leave_out(Job *job, size_t step);
/* Delays the begin of a started job until job_let_begin(). */
int job_hold(Job *job);
int job_let_begin(Job *job);
bool job_is_held(const Job *job);

uint32_t job_id(const Job *job);
const char *job_verb(const Job *job);
const char *job_subject(const Job *job);
/* The description of the current step; "" before the first. */
const char *job_step(const Job *job);
/* Why the job failed; "" when it did not. */
const char *job_message(const Job *job);
void job_set_message(Job *job, const char *message);
unsigned job_steps_done(const Job *job);
unsigned job_steps_total(const Job *job);
/* The current step; NULL before the first. */
const Step *job_current(const Job *job);
const StepList *job_steps(const Job *job);
/* The result is known. */
bool job_has_result(const Job *job);
/* The result is known, and the child has not exited. */
bool job_is_stuck(const Job *job);
/* No child exists: none was forked yet, or it has exited. */
bool job_is_gone(const Job *job);
