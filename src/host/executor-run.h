/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A run of a list of steps. For executor*.c only: executor-chains.c divides the run among processes and watches them,
 * executor.c has what each of these processes does, and the others how each kind of step is run and undone.
 */

#include <stdatomic.h>

#include "guest/guestpci.h"
#include "host/executor.h"
#include "units.h"

/* The place of a device that STEP_PLUG plugs in. */
typedef struct PlugPlace {
        bool needless;       /* there is no domain */
        GuestFunction place; /* bus 0: libvirt chooses, or the domain has the device already */
        const char *iommufd; /* of the devices that the domain has, as domain_facts_iommufd() tells it */
} PlugPlace;

/* The state of a service that the run stops. */
typedef struct ServiceState {
        UnitUse use;      /* before the run, and reported if used; the run stops the service and starts it again */
        uint64_t stop_by; /* deadline for stopping; CLOCK_MONOTONIC, microseconds */
} ServiceState;

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
        bool reported; /* the result was reported: together with an earlier step, by a look before the first step, or by
                          run_fail() */
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

static inline StepResult *step_result(const Run *run, const Step *s) {
        return &run->done[s - run->steps->steps];
}

/* How the steps of a kind are run and undone. Both functions return 1 when they changed something, 0 when nothing had
 * to change, or a negative errno. */
typedef struct StepAction {
        int (*run)(const Run *run, const Step *s);
        int (*undo)(const Run *run, const Step *s); /* NULL: the step has no undo */
        /* A failed write can have taken effect all the same, so the failed step is undone too. true: the step cleans up
         * after its own failure. */
        bool undoes_itself;
} StepAction;
extern const StepAction step_actions[_STEP_KIND_MAX];

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
/* Whether an earlier step of the list condemned the device of the step, or the chain of the device was given up: a
 * process may still be at work on it. */
bool run_leaves_out(const Run *run, const Step *s);
bool run_device_has_failed(const Run *run, PciAddress device, const Step *before);
/* Tells the process that watches this one what it is about to do, and the receiver of the reports. */
void run_begin(const Run *run, const Step *s, Doing doing);
void run_report(const Run *run, const Step *s, Report report);
void run_report_device_failed(const Run *run, const Step *s, int error);
/* Reports the failure of a step in its own words, instead of those of step_failure(). Returns the error. */
int run_fail(const Run *run, const Step *s, int error, const char *format, ...) _printf_(4, 5);

/* executor-steps.c */

/* Reads the attributes of the VF of the step. The result is empty when the PF offers none. */
int step_read_attributes(const Run *run, const Step *s, VfAttributes *found);
int run_check_health(const Run *run, const Step *s);

/* executor-together.c: services, and steps that act on several devices at once. */

/* Report before the first write the services that are active or about to start, and the GPUs in persistence mode.
 * Return 1 when there are any, 0, or a negative errno after a report. */
int report_active_services(const Run *run);
int report_persistent_gpus(const Run *run);
int run_stop_service(const Run *run, const Step *s);
int run_start_service(const Run *run, const Step *s);
/* Starts the service of the step, and waits until it has started unless only its start was queued: that may wait for
 * the daemon itself. The result is only reported: a failure does not end the run. */
void service_start(const Run *run, const Step *s, UnitUse use);
int run_clean(const Run *run, const Step *s);
int run_check_gpu(const Run *run, const Step *s);
int run_persistence(const Run *run, const Step *s);
/* Sets the attributes of the VF of the step together with those of the steps that follow for VFs of the same PF. */
int run_try_attributes(const Run *run, const Step *s);

/* executor-plug.c: steps that plug devices into a guest and take them out. */

int run_find_ports(const Run *run, const Step *s);
int run_plug(const Run *run, const Step *s);
int undo_plug(const Run *run, const Step *s);
int run_unplug(const Run *run, const Step *s);

/* executor-idle.c: checks that devices are idle. */

/* Checks the device of the step together with those of the STEP_CHECK_IDLE steps that follow directly. */
int run_check_idle(const Run *run, const Step *s);
/* Waits until QEMU has closed the device. -EBUSY: it has not. */
int run_check_unused(const Run *run, const Step *s);
/* Directly before the device is unbound from a host driver: takes the unbind lock that NVIDIA's driver offers for a
 * GPU, and looks for users of the device. Returns 0, or a negative errno after a report. */
int idle_check_unbind(const Run *run, const Step *s, const char *driver);
/* Looks for a process that has the device open by VFIO. As above. */
int idle_check_closed(const Run *run, const Step *s);
