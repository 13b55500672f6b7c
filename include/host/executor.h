/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Runs a list of steps, in the child process of a job. The chains of the list run in parallel, each in a process of its
 * own; steps that run alone are barriers between them. When the failure of a step ends the run, no further step begins.
 * When all processes have ended or were given up, the changes of the run are undone in reverse order, again with the
 * chains in parallel.
 *
 * A process whose step has not ended by the step's limit (step_timeout_sec()) is killed and given up. The process lives
 * on until the kernel returns from the step. What follows depends on the step:
 * - If its kind has STEP_FAILS_DEVICE, as a reset has, the device has failed, and so have the other devices of the
 *   chain that have steps left. The run continues.
 * - If step_may_lack() accepts the step, no further step begins, and the run counts as done.
 * - Any other step makes the run fail (RUN_TIMED_OUT), and no further step begins. But if it is a step of a chain and
 *   StepList.outlives_stuck is set, the other chains continue.
 *
 * The steps of a chain that was given up are not undone. After a STEP_PLUG that was given up nothing is undone, because
 * the guest may have the device.
 */

#include <net/if.h>

#include "host/holders.h"
#include "model/health.h"
#include "steps/step.h"
#include "util/sysfs.h"

typedef enum ReportKind {
        REPORT_STEP,    /* step is about to run, or is left out because its device has failed */
        REPORT_FAILED,  /* step failed with error, so the run will be undone */
        REPORT_LACKING, /* step and those after it are not done, because of error; the run counts as done without them:
                           step_may_lack() */
        REPORT_UNDO,    /* the undo of step is about to run */
        REPORT_UNDO_FAILED,   /* the undo of step failed with error: the device is not as it was before the run */
        REPORT_DEVICE_FAILED, /* step failed with error, or with -ECANCELED was left out because its chain hangs. The
                                 run continues. The device gets no further steps, unless the step is of a kind with
                                 STEP_FAILS_ALONE */
        REPORT_READING, /* about to read, which may block: attributes of the VF of step, config space of the device of a
                           STEP_BIND, or persistence mode of the GPU of a STEP_UNBIND */
        REPORT_FOUND,   /* the attributes of the VF of step, read before the first write */
        REPORT_ACTIVE,  /* the service of step is active or starting, so the run will stop it; sent before the first
                           write */
        REPORT_ALL_FOUND, /* all reports of the kinds FOUND, ACTIVE and PERSISTENT were sent; the run continues when the
                             report function returns 0. Not sent if no report is ACTIVE or PERSISTENT and each FOUND is
                             empty */
        REPORT_STARTED, /* systemd was asked to start the service of step. error: 0, also if the start has not ended in
                           time; otherwise why the start failed */
        REPORT_NOT_STARTED, /* systemd could not be asked to start the service of step, because of error */
        REPORT_IOMMUFD,     /* the domain of step uses iommufd for its devices */
        REPORT_HEALTH,      /* the health of the device of step */
        REPORT_PLACED, /* the domain of step has the device; message is its place in the guest (ledger/guestplace.h) */
        REPORT_GIVEN_UP,    /* the process that ran step was given up, or has died (status is RUN_DIRTY then) */
        REPORT_RETURNED,    /* the process that was given up at step has returned from the kernel and exited */
        REPORT_CHAIN_ENDED, /* the process of step's chain, which was not given up, has exited */
        REPORT_ENDED, /* the run has ended except for processes that were given up. executor_run() will return status
                         when these have exited */
        REPORT_PERSISTENT, /* the GPU of a STEP_UNBIND is in persistence mode; sent before the first write */
} ReportKind;

/* What a process of the run does with a step. */
typedef enum Doing {
        DOING_STEP,
        DOING_READ, /* a read that may block: REPORT_READING */
        DOING_UNDO,
} Doing;

/* A report of the child to its parent. Two reports together fit into PIPE_BUF, so writes to the pipe are atomic. */
typedef struct Report {
        uint32_t kind;
        uint32_t step;        /* index into the list */
        int32_t error;        /* negative errno */
        int32_t status;       /* REPORT_DEVICE_FAILED of STEP_CLEAN: exit status of the command, 0 when there is none;
                                 REPORT_ENDED: the RunResult of the run; REPORT_GIVEN_UP: RUN_DIRTY when the process
                                 died, RUN_TIMED_OUT when the run fails because of it, else RUN_DONE */
        uint32_t doing;       /* of REPORT_GIVEN_UP and REPORT_RETURNED: what the process did with step */
        HealthReading health; /* REPORT_HEALTH */
        VfAttributes found;   /* REPORT_FOUND; REPORT_FAILED, REPORT_DEVICE_FAILED of a step that sets attributes */
        /* REPORT_FAILED: for some steps, sentences with the cause and the remedy; REPORT_PLACED: the place; otherwise
         * "" */
        char message[HOLDER_SUBJECT_MAX + 2 * HOLDER_TEXT_MAX + 32];
        bool switchdev; /* REPORT_FAILED with -EOPNOTSUPP of a step that sets attributes: the PF's eswitch is in
                           switchdev mode */
        char representor[IF_NAMESIZE]; /* if switchdev is set: the representor of the VF; "" when none was found */
} Report;

/* Receives a report. `r` is NULL when a process of the run is about to end. Returns 0; only for REPORT_ALL_FOUND may it
 * also return a negative value, which ends the run before the first write. */
typedef int (*ReportFunction)(const Report *r, void *userdata);

typedef enum RunResult {
        RUN_DONE,      /* all steps are done, except those of failed devices and those from a REPORT_LACKING on */
        RUN_FAILED,    /* a step failed or the run could not begin, and all changes that have an undo are undone */
        RUN_DIRTY,     /* a step failed and an undo failed too, or a process died */
        RUN_TIMED_OUT, /* a process was given up at a step that the run needs. The changes of the other processes were
                          undone or, with StepList.outlives_stuck, kept */
} RunResult;

/* Runs the list. Returns when all processes of the run have exited. lock: the descriptor of the job's lock file
 * (host/joblock.h), in which the process of a chain locks only its chain; negative: no lock file. report() is called in
 * several processes, each with its own memory. */
RunResult executor_run(const Sysfs *fs, const StepList *steps, int lock, ReportFunction report, void *userdata);
