/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A run of a list of steps. executor-chains.c divides the run among processes and watches them, executor.c has what
 * each of these processes does. For these two files only.
 */

#include <stdatomic.h>

#include "executor-plug.h"
#include "executor-steps.h"
#include "host/executor.h"

/* The result of a step, which later steps and the undo need. */
typedef struct StepResult {
        bool begun;
        bool failed; /* and ended the run */
        bool changed;
        bool device_failed;
        VfAttributes found;
        ServiceState service;
        bool shared; /* done together with an earlier step, with this result and exit status */
        int result, status;
        bool reported; /* done and reported before: together with an earlier step, or by a look or check before the step
                        */
        PlugPlace place;
} StepResult;

/* Which step a process of the run is at. */
typedef struct Position {
        _Atomic uint64_t since; /* CLOCK_MONOTONIC, microseconds: when it began to do this */
        _Atomic uint32_t step;  /* index into the list */
        _Atomic uint32_t doing; /* a Doing */
} Position;

typedef struct Run {
        const Sysfs *fs;
        const StepList *steps;
        ReportFunction report;
        void *userdata;
        StepResult *done;  /* of each step; all processes of the run share it */
        atomic_bool *stop; /* no further step may begin; shared as well */
        bool *given_up;    /* of each chain: its steps are neither run nor undone */
        Position *at;      /* of this process; shared with the one that watches it */
} Run;

/* The steps from first to before end, of one chain or of ALL_CHAINS. */
typedef struct Part {
        size_t first, end;
        unsigned chain;
        bool looks; /* the process first reads and reports the present state */
} Part;
#define ALL_CHAINS 0U

/* How a process of the run ends: its exit status. */
typedef enum LaneEnd {
        LANE_DONE = 0,
        LANE_FAILED = 10, /* a step failed; a report told it */
        LANE_LACKING,     /* step_may_lack() */
        LANE_NOT_UNDONE,  /* the undo of a step failed */
        LANE_KEPT,        /* the undo of a STEP_PLUG failed: the guest may have the device, so nothing more is undone */
} LaneEnd;

/* Runs the steps of the part in order, until one fails. */
LaneEnd run_forward(const Run *run, const Part *part);
/* Undoes the steps of the part that were begun, backwards. A step that changed nothing is not undone. A failed step is,
 * unless it cleans up after itself. */
LaneEnd run_backward(const Run *run, const Part *part);
/* Whether an earlier step of the list condemned the device of step at. */
bool run_device_has_failed(const Run *run, PciAddress device, size_t at);
void run_report_device_failed(const Run *run, size_t i, int error);
