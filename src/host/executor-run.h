/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A run of a list of steps. For executor*.c only: executor-chains.c divides the run among processes and watches them,
 * executor.c has what each of these processes does, and the other files how each kind of step is run and undone.
 */

#include <stdatomic.h>

#include "guest/guestpci.h"
#include "host/executor.h"
#include "units.h"

/* Where in the guest a STEP_PLUG puts its device. */
typedef struct PlugPlace {
        bool needless;       /* libvirt has no such domain, so nothing is plugged */
        GuestFunction place; /* bus 0: libvirt chooses, or the domain has the device already */
        const char *iommufd; /* result of domain_facts_iommufd(); NULL also if libvirt has no such domain */
} PlugPlace;

/* What a run knows about a service that it stops. */
typedef struct ServiceState {
        UnitUse use;      /* before the run; a used service is stopped and started again */
        uint64_t stop_by; /* time limit of the stop: CLOCK_MONOTONIC, microseconds */
} ServiceState;

/* What a step has done, for later steps and for the undo. */
typedef struct StepResult {
        bool begun;
        bool failed; /* the step failed, which ended the run */
        bool changed;
        bool device_failed;
        VfAttributes found;
        ServiceState service;
        bool shared; /* a command or question for several steps has done this step, too, and set result and status */
        int result, status;
        bool reported; /* the result was reported or needs no report, for example after run_fail() or together with an
                          earlier step; run_forward() does not run the step again */
        PlugPlace place;
} StepResult;

/* What a process of the run does now. The watching process (executor-chains.c) reads this. */
typedef struct Position {
        _Atomic uint64_t since; /* when the process began to do this: CLOCK_MONOTONIC, microseconds */
        _Atomic uint32_t step;  /* index into the list */
        _Atomic uint32_t doing; /* a Doing */
} Position;

typedef struct Run {
        const Sysfs *fs;
        const StepList *steps;
        ReportFunction report;
        void *userdata;
        StepResult *done;  /* by step; shared by all processes of the run */
        atomic_bool *stop; /* true: no further step is run, but steps may be undone; shared by all processes, too */
        bool *given_up;    /* by chain: it was given up, so its steps are neither run nor undone */
        Position *at;      /* position of this process, shared with the one that watches it */
} Run;

static inline StepResult *step_result(const Run *run, const Step *s) {
        return &run->done[s - run->steps->steps];
}

/* How the steps of a kind are run and undone. run() returns a positive value when there is something to undo, otherwise
 * 0 or a negative errno. undo() returns a negative errno when it fails. */
typedef struct StepAction {
        int (*run)(const Run *run, const Step *s);
        int (*undo)(const Run *run, const Step *s); /* NULL: nothing to undo */
        /* A failed write can have taken effect all the same, so a step that failed is undone, too. If undoes_itself is
         * true, it is not undone, because a run() that fails leaves nothing changed. */
        bool undoes_itself;
} StepAction;
extern const StepAction step_actions[_STEP_KIND_MAX];

/* Steps that a process runs or undoes: of the steps from index first to before end, those of one chain, or with
 * ALL_CHAINS all. */
typedef struct Part {
        size_t first, end;
        unsigned chain;
        bool looks; /* the process first checks the health of devices and reports the present state, if the list asks
                       for it */
} Part;
#define ALL_CHAINS 0U

/* The exit status of a process of the run. */
typedef enum LaneEnd {
        LANE_DONE = 0,
        LANE_FAILED = 10, /* a step failed, or a check or a read before the first write, which was reported; or the
                             receiver of the reports ended the run before the first write */
        LANE_LACKING,     /* a step failed, and the run counts as done without it: step_may_lack() */
        LANE_NOT_UNDONE,  /* the undo of a step failed */
        LANE_KEPT,        /* the undo of a STEP_PLUG failed: the guest may have the device, so nothing else is undone */
} LaneEnd;

/* Runs the steps of the part in order, until a failure ends the run or Run.stop is set. */
LaneEnd run_forward(const Run *run, const Part *part);
/* Undoes the steps of the part that were begun, backwards. A step that changed nothing is not undone, nor is a failed
 * one after which the run continued. A step whose failure ended the run is undone, unless undoes_itself is set. Starts
 * the service of each STEP_STOP_SERVICE again, if the service was in use before the run. */
LaneEnd run_backward(const Run *run, const Part *part);
/* Returns true when the step must be left out: its device has failed in an earlier step, or the step runs alone and its
 * device's chain was given up, so that a process may still work on the device. */
bool run_leaves_out(const Run *run, const Step *s);
bool run_device_has_failed(const Run *run, PciAddress device, const Step *before);
/* Tells the process that watches this one, and the receiver of the reports, what this process is about to do. */
void run_begin(const Run *run, const Step *s, Doing doing);
void run_report(const Run *run, const Step *s, Report report);
void run_report_device_failed(const Run *run, const Step *s, int error);
/* Reports a step's failure with this message, which replaces that of step_failure() unless empty. Returns error. */
int run_fail(const Run *run, const Step *s, int error, const char *format, ...) _printf_(4, 5);

/* executor-steps.c */

/* Reads the attributes of the VF of the step. Returns 0 with an empty *found if the PF offers none, otherwise as
 * vf_attributes_read(). */
int step_read_attributes(const Run *run, const Step *s, VfAttributes *found);
int run_check_health(const Run *run, const Step *s);

/* executor-together.c: services, and steps that act on several devices at once. */

/* Report, before the first write, the services that are active or about to start, and the GPUs in persistence mode.
 * Return 1 when there are any, otherwise 0. report_active_services() may also return a negative errno, which it has
 * reported. */
int report_active_services(const Run *run);
int report_persistent_gpus(const Run *run);
int run_stop_service(const Run *run, const Step *s);
int run_start_service(const Run *run, const Step *s);
/* Starts the service of the step. The result is only reported: a failure does not end the run. use: the use of the
 * service before it was stopped. If that was UNIT_QUEUED, waits only one second, because the start may wait for the
 * daemon itself. */
void service_start(const Run *run, const Step *s, UnitUse use);
int run_clean(const Run *run, const Step *s);
int run_check_gpu(const Run *run, const Step *s);
int run_persistence(const Run *run, const Step *s);
/* Sets the attributes of the VF of the step together with those of the steps that directly follow for VFs of the same
 * PF. */
int run_try_attributes(const Run *run, const Step *s);

/* executor-plug.c: steps that plug devices into a guest and take them out. */

int run_find_ports(const Run *run, const Step *s);
int run_plug(const Run *run, const Step *s);
int undo_plug(const Run *run, const Step *s);
int run_unplug(const Run *run, const Step *s);

/* executor-idle.c: checks that no program uses devices. */

/* Checks the device of this step, and those of the STEP_CHECK_IDLE that directly follow. */
int run_check_idle(const Run *run, const Step *s);
/* Waits up to 5 s until no process has the device open; with Step.may_lack checks only once. Returns 0; -EBUSY when a
 * process still has the device open; or a negative errno of holders_find(). */
int run_check_unused(const Run *run, const Step *s);
/* Directly before the device is unbound from a host driver: takes the unbind lock that NVIDIA's driver offers for a
 * GPU, and looks for users of the device. Returns 0, or a negative errno after a report. */
int idle_check_unbind(const Run *run, const Step *s, const char *driver);
/* Looks for a process that has the device open by VFIO. Returns as idle_check_unbind(). */
int idle_check_closed(const Run *run, const Step *s);
