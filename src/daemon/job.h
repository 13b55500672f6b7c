/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One piece of hardware work: a list of steps done by a child process, because a write to sysfs may never return. The
 * parent reads reports from a pipe and has a deadline. A child that does not die when killed costs its device, never
 * the event loop.
 */

#include <systemd/sd-event.h>

#include "steps/step.h"
#include "util/sysfs.h"

typedef enum JobResult {
        JOB_DONE,
        JOB_FAILED,       /* a step failed, everything is as before */
        JOB_FAILED_DIRTY, /* and could not be undone, or the child died */
        JOB_TIMEOUT,      /* killed at its deadline; see job_is_stuck() */
        _JOB_RESULT_MAX,
} JobResult;
/* The result of the JobRemoved signal. */
const char *job_result_to_string(JobResult r);

typedef struct Job Job;

typedef struct JobCallbacks {
        /* Called before the first step, when it is the job's turn. A negative errno fails the job before it changes
         * anything; job_set_message() says why. */
        int (*on_begin)(Job *job, void *userdata);
        void (*on_step)(Job *job, void *userdata);
        /*
         * What the VF of a step has that gives it attributes (StepList.tells_found), each before the first write; then
         * that this was all: negative when it could not be kept, which ends the job.
         */
        void (*on_found)(Job *job, const Step *step, const VfAttributes *found, void *userdata);
        int (*on_all_found)(Job *job, void *userdata);
        /* The service of a step is active and will be stopped; before on_all_found, which negative leaves out. */
        int (*on_active)(Job *job, const Step *step, void *userdata);
        /* It is started again, unless systemd could not be asked to; error: why it is not up. */
        void (*on_started)(Job *job, const Step *step, bool asked, int error, void *userdata);
        /* A device cannot be handed on: message is the sentence why. */
        void (*on_device_failed)(Job *job, const Step *step, const char *message, void *userdata);
        /* Whether the eswitch of a PF is in switchdev mode, as far as anybody knows. */
        bool (*is_switchdev)(Job *job, PciAddress pf, void *userdata);
        /* Once, when the result is known. The job lives on while its child does: job_is_stuck(). */
        void (*on_result)(Job *job, JobResult result, void *userdata);
        /* After on_result, when no child is left; the owner frees the job. */
        void (*on_gone)(Job *job, void *userdata);
} JobCallbacks;

/* verb: static text. Takes over steps. */
int job_new(uint32_t id, const char *verb, const char *subject, StepList *steps, Job **ret);
/* Kills a child that is still there. */
Job *job_free(Job *job);
DEFINE_CLEANUP(Job *, job_free)

/* The child is made at the next turn of the loop; without steps there is none, and the job is done then. */
int job_start(Job *job, sd_event *event, const Sysfs *fs, unsigned timeout_sec, const JobCallbacks *callbacks,
              void *userdata);

/* For the child to hold as long as it is there. At on_begin() only; takes over fd. */
void job_set_lock(Job *job, int fd);
/* One of its steps is not to be done after all, but stays one of those that other jobs have to wait for. At on_begin()
 * only. */
void job_leave_out(Job *job, size_t step);
/* It was started, and waits now until it is let begin. */
int job_hold(Job *job);
int job_let_begin(Job *job);
bool job_is_held(const Job *job);

uint32_t job_id(const Job *job);
const char *job_verb(const Job *job);
const char *job_subject(const Job *job);
/* What it does now, "" before the first step; why it failed, "" while it did not. */
const char *job_step(const Job *job);
const char *job_message(const Job *job);
void job_set_message(Job *job, const char *message);
unsigned job_steps_done(const Job *job);
unsigned job_steps_total(const Job *job);
/* The step it is at, for a job that is past its deadline; NULL when it never began one. */
const Step *job_current(const Job *job);
const StepList *job_steps(const Job *job);
/* The result is out. */
bool job_has_result(const Job *job);
/* The result is out but the child is still there. */
bool job_is_stuck(const Job *job);
/* The child is gone, or there never was one: no device is touched any more. */
bool job_is_gone(const Job *job);
